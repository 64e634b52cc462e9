import type { Pipeline, Queryable } from "../../db/client.ts";
import type { Query } from "../../db/query.ts";
import { codeOf } from "../../errors.ts";
import { saveAuditsStatements } from "../../forecasts/readings/audit-store.ts";
import { saveFormatsStatement } from "../../houses/reading/format-store.ts";
import { saveNoticesStatement } from "../../rounds/notices/notices-store.ts";
import { closeUnknownGapsStatement, fillGapsStatement } from "../../rounds/gaps/gaps-store.ts";
import { arraysArray, hexArray, plainArray, textArray } from "./arrays.ts";
import type { SnapshotRow } from "../compute/rows.ts";
import type { CompletePassRows as PassRows } from "../compute/state.ts";

/** A lease under which passes were made. */
export interface HeldLease {
  house: string;
  shard: number;
  epoch: bigint;
}

/** A response of a table that had nothing new, when its head had this version. */
export interface NotedResponse {
  tableId: number;
  version: bigint;
  respondedAt: string | null;
}

/**
 * Why the database refused passes. `late`: a forecast set is too late: write again without sets. `moved`: a head has another
 * version: drop the cached states. `lease_lost`: another worker has the lease. `untrue`: a row contradicts stored rows,
 * which is a bug.
 */
export type Refusal = "late" | "moved" | "lease_lost" | "untrue";

const REFUSALS: Readonly<Record<string, Refusal>> = {
  RH001: "untrue",
  RH002: "late",
  RH008: "lease_lost",
  RH009: "moved",
};

/** Why the database refused the rows of {@link writePasses}; null for any other error. */
export function refusalOf(error: unknown): Refusal | null {
  return REFUSALS[codeOf(error)] ?? null;
}

/**
 * Writes passes of different tables in one transaction, in about one round trip: all of them or none. `leases` are
 * those under which they were made; empty if the responses were stored before.
 *
 * @throws the database's error, see {@link refusalOf}; ConnectionLostError if the outcome is unknown
 */
export async function writePasses(
  pipeline: Pipeline,
  passes: readonly PassRows[],
  leases: readonly HeldLease[],
): Promise<void> {
  if (passes.length > 0) await pipeline.transact(passStatements(pipeline, passes, leases));
}

type Statement = Query<readonly unknown[]>;
type Sql = Queryable;

/** The statements of {@link writePasses} in their order: locks, then one per kind of row that there is. */
export function passStatements(
  sql: Queryable,
  passes: readonly PassRows[],
  leases: readonly HeldLease[],
  noted: readonly NotedResponse[] = [],
): Statement[] {
  const ordered = passes.toSorted((a, b) => a.tableId - b.tableId);
  const statements = [
    lockPasses(sql, [...ordered, ...noted], leases),
    insertPayloads(
      sql,
      rowsOf(ordered, ({ payloads }) => payloads),
    ),
    markPayloads(
      sql,
      rowsOf(ordered, ({ marks }) => marks),
    ),
    insertRounds(
      sql,
      rowsOf(ordered, ({ rounds }) => rounds),
    ),
    openGaps(
      sql,
      rowsOf(ordered, ({ gaps }) => gaps),
    ),
    fillGaps(
      sql,
      rowsOf(ordered, ({ lateNumbers }) => lateNumbers),
    ),
    closeUnknownGaps(
      sql,
      rowsOf(ordered, ({ shownGaps }) => shownGaps),
    ),
    saveConflicts(
      sql,
      rowsOf(ordered, ({ conflicts }) => conflicts),
    ),
    saveQuarantine(
      sql,
      rowsOf(ordered, ({ quarantine }) => quarantine),
    ),
    // before the forecast sets: a window that was voided is followed by another
    insertScoreSets(
      sql,
      rowsOf(ordered, ({ scoreSets }) => scoreSets),
    ),
    insertForecastSets(
      sql,
      rowsOf(ordered, ({ forecastSet }) => (forecastSet === null ? [] : [forecastSet])),
    ),
    saveSnapshots(
      sql,
      rowsOf(ordered, ({ snapshot }) => (snapshot === null ? [] : [snapshot])),
    ),
    publishReadings(
      sql,
      rowsOf(ordered, ({ reading }) => (reading === null ? [] : [reading])),
    ),
    saveNotices(sql, ordered),
    saveFormats(sql, ordered),
    ...saveAuditsStatements(
      sql,
      ordered.map(({ tableId, audits }) => ({ tableId, rows: audits })),
    ),
    moveHeads(
      sql,
      ordered.filter(({ isQuiet }) => !isQuiet),
    ),
    noteResponses(sql, [
      ...ordered.flatMap(({ isQuiet, tableId, version, head: { respondedAt } }) =>
        isQuiet ? [{ tableId, version, respondedAt }] : [],
      ),
      ...noted,
    ]),
  ];
  return statements.filter((statement) => statement !== null);
}

/** Rows of one kind, each with its table. */
interface Rows<Row> {
  tables: readonly number[];
  /** The same as the text of an array. */
  tableIds: string;
  rows: readonly Row[];
  /** A column as the text of an array. */
  plain(value: (row: Row) => number | bigint | boolean | string | null): string;
  text(value: (row: Row) => string | null): string;
  arrays(value: (row: Row) => readonly (number | bigint | null)[]): string;
  hex(value: (row: Row) => string | null): string;
  /** Hashes of 32 bytes, one after the other. */
  hashes(value: (row: Row) => string): Buffer;
}

function rowsOf<Pass extends Pick<PassRows, "tableId">, Row>(
  passes: readonly Pass[],
  of: (pass: Pass) => readonly Row[],
): Rows<Row> {
  const tableIds: number[] = [];
  const rows: Row[] = [];
  for (const pass of passes) {
    for (const row of of(pass)) {
      tableIds.push(pass.tableId);
      rows.push(row);
    }
  }
  return {
    tables: tableIds,
    tableIds: plainArray(tableIds),
    rows,
    plain: (value) => plainArray(rows.map(value)),
    text: (value) => textArray(rows.map(value)),
    arrays: (value) => arraysArray(rows.map(value)),
    hex: (value) => hexArray(rows.map(value)),
    hashes: (value) => Buffer.from(rows.map(value).join(""), "hex"),
  };
}

function lockPasses(
  sql: Sql,
  passes: readonly Pick<PassRows, "tableId" | "version">[],
  leases: readonly HeldLease[],
): Statement {
  return sql`
    select lock_passes(
      ${textArray(leases.map(({ house }) => house))}::text[],
      ${plainArray(leases.map(({ shard }) => shard))}::integer[],
      ${plainArray(leases.map(({ epoch }) => epoch))}::bigint[],
      ${plainArray(passes.map(({ tableId }) => tableId))}::integer[],
      ${plainArray(passes.map(({ version }) => version))}::bigint[]
    )`;
}

function insertPayloads(sql: Sql, p: Rows<PassRows["payloads"][number]>): Statement | null {
  if (p.rows.length === 0) return null;
  const bodies = packBodies(p);
  return sql`
    insert into payloads (
      table_id, received_at, kind, requested_at, previous_requested_at, path, status, content_type, bytes, sha256, body,
      body_of, served, state, read_at, refused_reason, error, items, new_rounds, quarantined
    )
    select
      table_id, received_at, kind, requested_at, previous_requested_at, path, status, content_type, bytes,
      substr(${p.hashes(({ sha256 }) => sha256)}, (32 * place - 31)::integer, 32),
      case when body_of is null then substr(${bodies.bytes}, body_end - body_length + 1, body_length) end, body_of,
      served::integer[], state, case state when 'unread' then null else clock_timestamp() end, refused_reason, error,
      items, new_rounds, quarantined
    from unnest(
      ${p.tableIds}::integer[],
      ${p.plain(({ receivedAt }) => receivedAt)}::timestamptz[],
      ${p.plain(({ kind }) => kind)}::text[],
      ${p.plain(({ requestedAt }) => requestedAt)}::timestamptz[],
      ${p.plain((row) => row.previousRequestedAt)}::timestamptz[],
      ${p.text(({ path }) => path)}::text[],
      ${p.plain(({ status }) => status)}::integer[],
      ${p.text(({ contentType }) => contentType)}::text[],
      ${p.plain(({ bytes }) => bytes)}::integer[],
      ${plainArray(bodies.ends)}::integer[],
      ${p.plain(({ body }) => body.length)}::integer[],
      ${plainArray(bodies.of)}::integer[],
      ${p.arrays(({ served }) => served ?? [])}::text[],
      ${p.plain(({ state }) => state)}::text[],
      ${p.text(({ refusedReason }) => refusedReason)}::text[],
      ${p.text(({ error }) => error)}::text[],
      ${p.plain(({ items }) => items)}::integer[],
      ${p.plain(({ newRounds }) => newRounds)}::integer[],
      ${p.plain(({ quarantined }) => quarantined)}::integer[]
    ) with ordinality as p (
      table_id, received_at, kind, requested_at, previous_requested_at, path, status, content_type, bytes, body_end,
      body_length, body_of, served, state, refused_reason, error, items, new_rounds, quarantined, place
    )`;
}

/** Bodies of payloads, concatenated; a shared one is included once, and `of` is the table that holds it. */
function packBodies({ tables, rows }: Rows<PassRows["payloads"][number]>): {
  bytes: Buffer;
  ends: number[];
  of: (number | null)[];
} {
  const holders = new Map<string, { body: Uint8Array; end: number; table: number }>(); // by time of receipt
  const packed = { bodies: [] as Uint8Array[], ends: [] as number[], of: [] as (number | null)[] };
  let end = 0;
  for (const [place, { body, receivedAt }] of rows.entries()) {
    const holder = holders.get(receivedAt);
    const isHeld = holder?.body === body;
    if (!isHeld) {
      end += body.length;
      packed.bodies.push(body);
      holders.set(receivedAt, { body, end, table: tables[place] ?? 0 });
    }
    packed.ends.push(isHeld ? holder.end : end);
    packed.of.push(isHeld ? holder.table : null);
  }
  return { bytes: Buffer.concat(packed.bodies), ends: packed.ends, of: packed.of };
}

/** Updates stored payloads: unread ones are read now, others were read again. */
function markPayloads(sql: Sql, m: Rows<PassRows["marks"][number]>): Statement | null {
  if (m.rows.length === 0) return null;
  return sql`
    update payloads p
    set
      state = m.state,
      read_at = coalesce(p.read_at, clock_timestamp()),
      reread_at = case p.state when 'unread' then p.reread_at else clock_timestamp() end,
      refused_reason = m.refused_reason,
      error = null,
      items = m.items,
      new_rounds = m.new_rounds,
      quarantined = m.quarantined
    from unnest(
      ${m.tableIds}::integer[],
      ${m.plain(({ receivedAt }) => receivedAt)}::timestamptz[],
      ${m.plain(({ state }) => state)}::text[],
      ${m.text(({ refusedReason }) => refusedReason)}::text[],
      ${m.plain(({ items }) => items)}::integer[],
      ${m.plain(({ newRounds }) => newRounds)}::integer[],
      ${m.plain(({ quarantined }) => quarantined)}::integer[]
    ) as m (table_id, received_at, state, refused_reason, items, new_rounds, quarantined)
    where p.table_id = m.table_id
      and p.received_at = m.received_at`;
}

function saveNotices(sql: Sql, passes: readonly PassRows[]): Statement | null {
  const changes = passes.flatMap(({ tableId, notices }) =>
    notices.map(({ kind, text, since }) => ({ tableId, kind, text, ...(since !== null && { since }) })),
  );
  return changes.length === 0 ? null : saveNoticesStatement(sql, changes);
}

function saveFormats(sql: Sql, passes: readonly PassRows[]): Statement | null {
  const changes = passes.flatMap(({ tableId, format }) => (format === null ? [] : [{ tableId, ...format.to }]));
  return changes.length === 0 ? null : saveFormatsStatement(sql, changes);
}

function insertRounds(sql: Sql, r: Rows<PassRows["rounds"][number]>): Statement | null {
  if (r.rows.length === 0) return null;
  return sql`
    insert into rounds (
      table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at,
      occurred_at, absent_at, after_gap, late, verified, proof_hash, history_hash
    )
    select
      table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at,
      occurred_at, absent_at, after_gap, late, verified, proof_hash,
      substr(${r.hashes(({ historyHash }) => historyHash)}, (32 * place - 31)::integer, 32)
    from unnest(
      ${r.tableIds}::integer[],
      ${r.plain(({ seq }) => seq)}::bigint[],
      ${r.plain(({ ordinal }) => ordinal)}::bigint[],
      ${r.text(({ roundId }) => roundId)}::text[],
      ${r.plain(({ hundredths }) => hundredths)}::bigint[],
      ${r.text(({ rawValue }) => rawValue)}::text[],
      ${r.plain(({ palette }) => palette)}::smallint[],
      ${r.plain(({ color }) => color)}::smallint[],
      ${r.plain(({ source }) => source)}::smallint[],
      ${r.plain(({ requestedAt }) => requestedAt)}::timestamptz[],
      ${r.plain(({ receivedAt }) => receivedAt)}::timestamptz[],
      ${r.plain(({ occurredAt }) => occurredAt)}::timestamptz[],
      ${r.plain(({ absentAt }) => absentAt)}::timestamptz[],
      ${r.plain(({ afterGap }) => afterGap)}::boolean[],
      ${r.plain(({ late }) => late)}::boolean[],
      ${r.plain(({ verified }) => verified)}::boolean[],
      ${r.hex(({ proofHash }) => proofHash)}::bytea[]
    ) with ordinality as r (
      table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at,
      occurred_at, absent_at, after_gap, late, verified, proof_hash, place
    )`;
}

function insertForecastSets(sql: Sql, s: Rows<NonNullable<PassRows["forecastSet"]>>): Statement | null {
  if (s.rows.length === 0) return null;
  return sql`
    insert into forecast_sets (
      table_id, cutoff_seq, cutoff_ordinal, model, first_seq, issued_at, pause_ms, absent_at, cutoff_round_id,
      target_round_id, history_hash, features, horizons, p_ppm, base_ppm, reference_ppm, ends, prev_hash, hashes
    )
    select
      table_id, cutoff_seq, cutoff_ordinal, model, first_seq, issued_at, pause_ms, absent_at, cutoff_round_id,
      target_round_id, substr(${s.hashes(({ historyHash }) => historyHash)}, (32 * place - 31)::integer, 32),
      features::smallint[], horizons::smallint[], p_ppm::integer[], base_ppm::integer[], reference_ppm::integer[],
      ends::bigint[], substr(${s.hashes(({ prevHash }) => prevHash)}, (32 * place - 31)::integer, 32), hashes
    from unnest(
      ${s.tableIds}::integer[],
      ${s.plain(({ cutoffSeq }) => cutoffSeq)}::bigint[],
      ${s.plain(({ cutoffOrdinal }) => cutoffOrdinal)}::bigint[],
      ${s.text(({ model }) => model)}::text[],
      ${s.plain(({ firstSeq }) => firstSeq)}::bigint[],
      ${s.plain(({ issuedAt }) => issuedAt)}::timestamptz[],
      ${s.plain(({ pauseMs }) => pauseMs)}::integer[],
      ${s.plain(({ absentAt }) => absentAt)}::timestamptz[],
      ${s.text(({ cutoffRoundId }) => cutoffRoundId)}::text[],
      ${s.text(({ targetRoundId }) => targetRoundId)}::text[],
      ${s.arrays(({ features }) => features)}::text[],
      ${s.arrays(({ horizons }) => horizons)}::text[],
      ${s.arrays(({ pPpm }) => pPpm)}::text[],
      ${s.arrays(({ basePpm }) => basePpm)}::text[],
      ${s.arrays(({ referencePpm }) => referencePpm)}::text[],
      ${s.arrays(({ ends }) => ends)}::text[],
      ${s.hex(({ hashes }) => hashes)}::bytea[]
    ) with ordinality as s (
      table_id, cutoff_seq, cutoff_ordinal, model, first_seq, issued_at, pause_ms, absent_at, cutoff_round_id,
      target_round_id, features, horizons, p_ppm, base_ppm, reference_ppm, ends, hashes, place
    )`;
}

function insertScoreSets(sql: Sql, s: Rows<PassRows["scoreSets"][number]>): Statement | null {
  if (s.rows.length === 0) return null;
  return sql`
    insert into score_sets (
      table_id, settled_seq, settled_ordinal, target_requested_at, scored_at, forecast_seqs, cutoff_seqs, features,
      statuses, reasons, outcomes, prev_hash, hashes
    )
    select
      table_id, settled_seq, settled_ordinal, target_requested_at, scored_at, forecast_seqs::bigint[],
      cutoff_seqs::bigint[], features::smallint[], statuses::smallint[], reasons::smallint[], outcomes::smallint[],
      substr(${s.hashes(({ prevHash }) => prevHash)}, (32 * place - 31)::integer, 32), hashes
    from unnest(
      ${s.tableIds}::integer[],
      ${s.plain(({ settledSeq }) => settledSeq)}::bigint[],
      ${s.plain(({ settledOrdinal }) => settledOrdinal)}::bigint[],
      ${s.plain((row) => row.targetRequestedAt)}::timestamptz[],
      ${s.plain(({ scoredAt }) => scoredAt)}::timestamptz[],
      ${s.arrays(({ forecastSeqs }) => forecastSeqs)}::text[],
      ${s.arrays(({ cutoffSeqs }) => cutoffSeqs)}::text[],
      ${s.arrays(({ features }) => features)}::text[],
      ${s.arrays(({ statuses }) => statuses)}::text[],
      ${s.arrays(({ reasons }) => reasons)}::text[],
      ${s.arrays(({ outcomes }) => outcomes)}::text[],
      ${s.hex(({ hashes }) => hashes)}::bytea[]
    ) with ordinality as s (
      table_id, settled_seq, settled_ordinal, target_requested_at, scored_at, forecast_seqs, cutoff_seqs, features,
      statuses, reasons, outcomes, hashes, place
    )`;
}

/** Stores a snapshot of a table, in the place of the one of its model. The caller holds the lock of the head. */
export async function saveSnapshot(tx: Sql, tableId: number, snapshot: SnapshotRow): Promise<void> {
  await saveSnapshots(
    tx,
    rowsOf([{ tableId }], () => [snapshot]),
  );
}

function saveSnapshots(sql: Sql, s: Rows<NonNullable<PassRows["snapshot"]>>): Statement | null {
  if (s.rows.length === 0) return null;
  let end = 0;
  const ends = s.rows.map(({ state }) => (end += state.length));
  return sql`
    insert into model_snapshots (table_id, model, ordinal, seq, state, state_hash, reading, reading_hash, refs)
    select
      table_id, model, ordinal, seq,
      substr(${Buffer.concat(s.rows.map(({ state }) => state))}, state_end - state_length + 1, state_length),
      state_hash, reading, reading_hash, refs
    from unnest(
      ${s.tableIds}::integer[],
      ${s.text(({ model }) => model)}::text[],
      ${s.plain(({ ordinal }) => ordinal)}::bigint[],
      ${s.plain(({ seq }) => seq)}::bigint[],
      ${plainArray(ends)}::integer[],
      ${s.plain(({ state }) => state.length)}::integer[],
      ${s.hex(({ stateHash }) => stateHash)}::bytea[],
      ${s.text(({ reading }) => reading)}::text[],
      ${s.hex(({ readingHash }) => readingHash)}::bytea[],
      ${s.text(({ refs }) => JSON.stringify(refs))}::jsonb[]
    ) as s (table_id, model, ordinal, seq, state_end, state_length, state_hash, reading, reading_hash, refs)
    on conflict (table_id, model) do update
    set
      ordinal = excluded.ordinal,
      seq = excluded.seq,
      state = excluded.state,
      state_hash = excluded.state_hash,
      reading = excluded.reading,
      reading_hash = excluded.reading_hash,
      refs = excluded.refs,
      updated_at = clock_timestamp()`;
}

function publishReadings(sql: Sql, r: Rows<NonNullable<PassRows["reading"]>>): Statement | null {
  if (r.rows.length === 0) return null;
  return sql`
    insert into published_readings (table_id, seq, reading)
    select *
    from unnest(
      ${r.tableIds}::integer[],
      ${r.plain(({ seq }) => seq)}::bigint[],
      ${r.text(({ reading }) => JSON.stringify(reading))}::jsonb[]
    )
    on conflict (table_id) do update
    set
      seq = excluded.seq,
      reading = excluded.reading,
      published_at = clock_timestamp()`;
}

function openGaps(sql: Sql, g: Rows<PassRows["gaps"][number]>): Statement | null {
  if (g.rows.length === 0) return null;
  return sql`
    insert into gaps (table_id, from_number, to_number, missing, after_round_id, before_round_id, state, closed_at)
    select
      table_id, from_number, to_number, missing, after_round_id, before_round_id,
      case missing when 0 then 'filled' else 'open' end, case missing when 0 then clock_timestamp() end
    from unnest(
      ${g.tableIds}::integer[],
      ${g.plain(({ fromNumber }) => fromNumber)}::bigint[],
      ${g.plain(({ toNumber }) => toNumber)}::bigint[],
      ${g.plain(({ missing }) => missing)}::bigint[],
      ${g.text(({ afterRoundId }) => afterRoundId)}::text[],
      ${g.text(({ beforeRoundId }) => beforeRoundId)}::text[]
    ) as g (table_id, from_number, to_number, missing, after_round_id, before_round_id)
    on conflict on constraint gap_is_opened_once do nothing`;
}

function fillGaps(sql: Sql, late: Rows<bigint>): Statement | null {
  return late.rows.length === 0 ? null : fillGapsStatement(sql, late.tableIds, plainArray(late.rows));
}

function closeUnknownGaps(sql: Sql, shown: Rows<PassRows["shownGaps"][number]>): Statement | null {
  if (shown.rows.length === 0) return null;
  const beforeRoundIds = shown.text(({ beforeRoundId }) => beforeRoundId);
  return closeUnknownGapsStatement(
    sql,
    shown.tableIds,
    beforeRoundIds,
    shown.plain(({ found }) => found),
  );
}

function saveConflicts(sql: Sql, c: Rows<PassRows["conflicts"][number]>): Statement | null {
  if (c.rows.length === 0) return null;
  // a response may repeat a conflict; both count, but a statement may change a row only once
  return sql`
    insert into conflicts as c (
      table_id, round_id, kept_hundredths, other_hundredths, other_raw, payload_received_at, times
    )
    select table_id, round_id, min(kept), other, min(other_raw), min(payload_received_at), count(*)
    from unnest(
      ${c.tableIds}::integer[],
      ${c.text(({ roundId }) => roundId)}::text[],
      ${c.plain(({ keptHundredths }) => keptHundredths)}::bigint[],
      ${c.plain(({ otherHundredths }) => otherHundredths)}::bigint[],
      ${c.text(({ otherRaw }) => otherRaw)}::text[],
      ${c.plain((row) => row.payloadReceivedAt)}::timestamptz[]
    ) as r (table_id, round_id, kept, other, other_raw, payload_received_at)
    group by table_id, round_id, other
    order by table_id, round_id, other
    on conflict on constraint conflict_is_listed_once do update
    set
      times = c.times + excluded.times,
      last_seen_at = clock_timestamp()`;
}

function saveQuarantine(sql: Sql, q: Rows<PassRows["quarantine"][number]>): Statement | null {
  if (q.rows.length === 0) return null;
  return sql`
    insert into quarantine as q (
      table_id, payload_received_at, code, reason, round_id, item, item_sha256, times
    )
    select table_id, min(payload_received_at), code, min(reason), min(round_id), min(item), item_sha256, count(*)
    from unnest(
      ${q.tableIds}::integer[],
      ${q.plain((row) => row.payloadReceivedAt)}::timestamptz[],
      ${q.plain(({ code }) => code)}::text[],
      ${q.text(({ reason }) => reason)}::text[],
      ${q.text(({ roundId }) => roundId)}::text[],
      ${q.text(({ item }) => item)}::text[],
      ${q.plain(({ itemSha256 }) => itemSha256)}::text[]
    ) as r (table_id, payload_received_at, code, reason, round_id, item, item_sha256)
    group by table_id, item_sha256, code
    order by table_id, item_sha256, code
    on conflict on constraint quarantined_item_is_listed_once do update
    set
      times = q.times + excluded.times,
      reason = excluded.reason,
      last_seen_at = clock_timestamp()`;
}

/** Palette, model and pause are written by changes of a table's settings, never by a pass. */
function moveHeads(sql: Sql, passes: readonly PassRows[]): Statement | null {
  if (passes.length === 0) return null;
  const h = rowsOf(passes, ({ head }) => [head]);
  return sql`
    update table_heads h
    set
      version = n.version,
      changed_at = clock_timestamp(),
      last_seq = n.last_seq,
      last_ordinal = n.last_ordinal,
      newest_seq = n.newest_seq,
      newest_round_id = n.newest_round_id,
      newest_number = n.newest_number,
      newest_occurred_at = n.newest_occurred_at,
      same_hundredths = n.same_hundredths,
      same_count = n.same_count,
      history_hash = substr(${h.hashes(({ historyHash }) => historyHash)}, (32 * n.place - 31)::integer, 32),
      forecast_seq = n.forecast_seq,
      forecast_hash = substr(${h.hashes(({ forecastHash }) => forecastHash)}, (32 * n.place - 31)::integer, 32),
      score_hash = substr(${h.hashes(({ scoreHash }) => scoreHash)}, (32 * n.place - 31)::integer, 32),
      first_forecast_at = n.first_forecast_at,
      first_forecast_ordinal = n.first_forecast_ordinal,
      proof_number = n.proof_number,
      proof_hash = n.proof_hash,
      proof_of = n.proof_of,
      responded_at = n.responded_at,
      payload_sha256 = n.payload_sha256,
      part_sha256 = n.part_sha256,
      payload_path = n.payload_path,
      open_sets = n.open_sets::bigint[],
      set_seq = n.set_seq,
      now_ppm = n.now_ppm::integer[],
      has_ended = n.has_ended,
      last_round_at = n.last_round_at,
      last_polled_round_at = n.last_polled_round_at
    from unnest(
      ${h.tableIds}::integer[],
      ${plainArray(passes.map(({ version }) => version + 1n))}::bigint[],
      ${h.plain(({ lastSeq }) => lastSeq)}::bigint[],
      ${h.plain(({ lastOrdinal }) => lastOrdinal)}::bigint[],
      ${h.plain(({ newestSeq }) => newestSeq)}::bigint[],
      ${h.text(({ newestRoundId }) => newestRoundId)}::text[],
      ${h.plain(({ newestNumber }) => newestNumber)}::bigint[],
      ${h.plain((row) => row.newestOccurredAt)}::timestamptz[],
      ${h.plain(({ sameHundredths }) => sameHundredths)}::bigint[],
      ${h.plain(({ sameCount }) => sameCount)}::integer[],
      ${h.plain(({ forecastSeq }) => forecastSeq)}::bigint[],
      ${h.plain(({ firstForecastAt }) => firstForecastAt)}::timestamptz[],
      ${h.plain((row) => row.firstForecastOrdinal)}::bigint[],
      ${h.plain(({ proofNumber }) => proofNumber)}::bigint[],
      ${h.hex(({ proofHash }) => proofHash)}::bytea[],
      ${h.text(({ proofOf }) => proofOf)}::text[],
      ${h.plain(({ respondedAt }) => respondedAt)}::timestamptz[],
      ${h.hex(({ payloadSha256 }) => payloadSha256)}::bytea[],
      ${h.hex(({ partSha256 }) => partSha256)}::bytea[],
      ${h.text(({ payloadPath }) => payloadPath)}::text[],
      ${h.arrays(({ openSets }) => openSets)}::text[],
      ${h.plain(({ setSeq }) => setSeq)}::bigint[],
      ${h.arrays(({ nowPpm }) => nowPpm)}::text[],
      ${h.plain(({ hasEnded }) => hasEnded)}::boolean[],
      ${h.plain(({ lastRoundAt }) => lastRoundAt)}::timestamptz[],
      ${h.plain((row) => row.lastPolledRoundAt)}::timestamptz[]
    ) with ordinality as n (
      table_id, version, last_seq, last_ordinal, newest_seq, newest_round_id, newest_number, newest_occurred_at,
      same_hundredths, same_count, forecast_seq, first_forecast_at, first_forecast_ordinal, proof_number, proof_hash,
      proof_of, responded_at, payload_sha256, part_sha256, payload_path, open_sets, set_seq, now_ppm,
      has_ended, last_round_at, last_polled_round_at, place
    )
    where h.table_id = n.table_id`;
}

/** Times of responses with nothing new; the version stays, so that no reader reloads. */
function noteResponses(sql: Sql, noted: readonly NotedResponse[]): Statement | null {
  if (noted.length === 0) return null;
  return sql`
    update table_heads h
    set responded_at = n.responded_at
    from unnest(
      ${plainArray(noted.map(({ tableId }) => tableId))}::integer[],
      ${plainArray(noted.map(({ respondedAt }) => respondedAt))}::timestamptz[]
    ) as n (table_id, responded_at)
    where h.table_id = n.table_id`;
}
