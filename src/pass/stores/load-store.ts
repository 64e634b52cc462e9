import type { PublishedReadingJson } from "../../forecasts/readings/reading-state.ts";
import type { Pipeline, Queryable, Transaction } from "../../db/client.ts";
import type { Fragment } from "../../db/statement.ts";
import type { Color } from "../../rounds/colors.ts";
import type { FormatState } from "../../rounds/notices/format-watch.ts";
import type { UnknownGap } from "../../rounds/gaps/gaps.ts";
import { listUnknownGaps } from "../../rounds/gaps/gaps-store.ts";
import type { NoticeKind } from "../../rounds/notices/notices.ts";
import type { HeldBack } from "../../rounds/intake.ts";
import type { ForecastSetRow, HeadRow, SnapshotRow } from "../compute/rows.ts";
import { fromDatabase as asTime } from "../compute/times.ts";

/** Rounds of a table that a response may list again: more than any house lists. */
const KNOWN_ROUNDS = 128;
/** Rounds per replay query; a snapshot is at most 64 on-time rounds old, a window covers at most 400. */
const REPLAYED_AT_ONCE = 1_024;
/** Quarantined items of a table that a response may bring again. */
const HELD_ITEMS = 256;

/** The parts of a stored round that a later response needs. */
export interface KnownRoundRow {
  seq: bigint;
  roundId: string;
  hundredths: number;
  late: boolean;
  verified: boolean | null;
  proofHash: string | null;
  /** When the response with it was received. */
  receivedAt: string;
}

/** A stored round as a replay reads it. */
export interface ReplayRow {
  seq: bigint;
  /** Null when it is late. */
  ordinal: bigint | null;
  roundId: string;
  hundredths: number;
  palette: number;
  color: number;
  source: number;
  requestedAt: string | null;
  occurredAt: string | null;
  afterGap: boolean;
  late: boolean;
  verified: boolean | null;
  receivedAt: string;
  /** 3: received with another result, 5: revised manually (3 if both), 0: neither. No forecast on a disputed one counts. */
  dispute: 0 | 3 | 5;
}

/** The stored rows that the state of a table is made from. */
export interface StoredTable {
  tableId: number;
  house: string;
  game: string;
  market: string;
  roundIds: "consecutive" | "opaque";
  /** Entries of the houses file. */
  settings: object;
  bands: readonly Color[];
  version: bigint;
  head: HeadRow;
  /** Of the head's model; null before the first. */
  snapshot: SnapshotRow | null;
  /** Rounds after the snapshot and after the oldest open set, by seq; see {@link listReplayRows} for more. */
  replay: ReplayRow[];
  /** False when `replay` does not reach the head. */
  isWhole: boolean;
  /** The open sets and the newest one, by cutoff. */
  sets: ForecastSetRow[];
  /** Forecasts of the open sets that are settled. */
  settled: ReadonlySet<bigint>;
  /** The newest rounds, newest first. */
  known: KnownRoundRow[];
  /** Rounds with a quarantined item, by round id. */
  heldBack: Map<string, HeldBack>;
  /** A payload is unread, so no set may be issued. */
  hasUnread: boolean;
  /** Bands of the cutoffs of `sets` with another palette than the table's, by cutoff_seq. */
  otherBands: ReadonlyMap<bigint, readonly Color[]>;
  /** Gaps of unknown size that are not filled, newest first. */
  unknownGaps: UnknownGap[];
  /** When each open notice was opened, by kind. */
  notices: Map<NoticeKind, string>;
  format: FormatState;
  /** The published reading; null before the first. */
  reading: PublishedReadingJson | null;
}

/**
 * Reads everything that the states of tables are made from, in one round trip, and waits for passes that are being
 * written: afterwards no older holder of the lease can commit one. A table without a head is left out.
 */
export async function loadTables(pipeline: Pipeline, tableIds: readonly number[]): Promise<StoredTable[]> {
  return tablesOf(await pipeline.transact(loadStatements(pipeline, tableIds, { isLocking: true })));
}

/** The same for one table, without waiting: in a transaction with its head locked, or in one snapshot. */
export async function loadTable(tx: Transaction, tableId: number): Promise<StoredTable | null> {
  const [heads, snapshots, replay, sets, settled, known, held, gaps, notices] = loadStatements(tx, [tableId], {
    isLocking: false,
  });
  const [table] = tablesOf([
    await heads,
    await snapshots,
    await replay,
    await sets,
    await settled,
    await known,
    await held,
    await gaps,
    await notices,
  ]);
  return table ?? null;
}

function loadStatements(sql: Queryable, tableIds: readonly number[], { isLocking }: { isLocking: boolean }) {
  const ids = [...tableIds];
  return [
    listHeads(sql, ids, isLocking ? sql`for share of h` : sql``),
    listSnapshots(sql, ids),
    listReplays(sql, ids),
    listOpenSets(sql, ids),
    listSettled(sql, ids),
    listNewest(sql, ids),
    listHeld(sql, ids),
    listUnknownGaps(sql, ids),
    listNotices(sql, ids),
  ] as const;
}

type Loaded<Statements extends readonly unknown[]> = { readonly [Key in keyof Statements]: Awaited<Statements[Key]> };

function tablesOf([heads, snapshots, replay, sets, settled, known, held, gaps, notices]: Loaded<
  ReturnType<typeof loadStatements>
>): StoredTable[] {
  const replayOf = Map.groupBy(replay, ({ table_id }) => table_id);
  const setsOf = Map.groupBy(sets, ({ table_id }) => table_id);
  const heldOf = Map.groupBy(held, ({ table_id }) => table_id);
  const gapsOf = Map.groupBy(gaps, ({ tableId }) => tableId);
  const noticesOf = Map.groupBy(notices, ({ table_id }) => table_id);
  const snapshotOf = new Map(snapshots.map((row) => [row.table_id, row]));
  const settledOf = new Map(settled.map((row) => [row.table_id, row.seqs]));
  const knownOf = new Map(known.map((row) => [row.table_id, row]));
  return heads.map((row) => {
    const { table_id: tableId } = row;
    const rounds = (replayOf.get(tableId) ?? []).map(asReplay);
    return {
      tableId,
      house: row.house,
      game: row.game,
      market: row.market,
      roundIds: row.round_ids,
      settings: row.settings,
      bands: row.bands,
      version: row.version,
      head: asHead(row),
      snapshot: asSnapshot(snapshotOf.get(tableId)),
      replay: rounds,
      isWhole: rounds.length < REPLAYED_AT_ONCE,
      sets: (setsOf.get(tableId) ?? []).map(asSet),
      settled: new Set(settledOf.get(tableId)),
      known: asKnown(knownOf.get(tableId)),
      heldBack: new Map((heldOf.get(tableId) ?? []).map((one): [string, HeldBack] => [one.round_id, asHeld(one)])),
      hasUnread: row.has_unread,
      otherBands: new Map(
        (setsOf.get(tableId) ?? []).flatMap((set): [bigint, Color[]][] =>
          set.other_bands === null ? [] : [[set.cutoff_seq, set.other_bands]],
        ),
      ),
      unknownGaps: row.round_ids === "opaque" ? (gapsOf.get(tableId) ?? []) : [],
      notices: new Map((noticesOf.get(tableId) ?? []).map(({ kind, opened_at }) => [kind, asTime(opened_at)])),
      format: { badResponses: row.bad_responses, since: asOptionalTime(row.format_since) },
      reading: row.reading,
    };
  });
}

/** The rounds of a table after a seq, at most 1,024, by seq: for a replay that {@link loadTables} did not read whole. */
export async function listReplayRows(sql: Queryable, tableId: number, afterSeq: bigint): Promise<ReplayRow[]> {
  const rows = await sql<StoredReplay[]>`
    select ${replayColumns(sql)}
    from rounds r
    where r.table_id = ${tableId}
      and r.seq > ${afterSeq}
    order by r.seq
    limit ${REPLAYED_AT_ONCE}`;
  return rows.map(asReplay);
}

/**
 * The stored part of rounds with these ids, by round id: for a response that lists rounds older than the newest known.
 */
export async function listKnownRows(
  sql: Queryable,
  tableId: number,
  roundIds: readonly string[],
): Promise<KnownRoundRow[]> {
  const rows = await sql<StoredKnown[]>`
    select ${tableId}::integer as table_id, ${knownColumns(sql)}
    from (
      select *
      from rounds
      where table_id = ${tableId}
        and round_id = any(${[...roundIds]}::text[])
      order by round_id -- makes the planner use the index by id
    ) r`;
  return asKnown(rows[0]);
}

interface StoredHead {
  table_id: number;
  house: string;
  game: string;
  market: string;
  round_ids: "consecutive" | "opaque";
  settings: object;
  bands: Color[];
  bad_responses: number;
  format_since: string | null;
  reading: PublishedReadingJson | null;
  has_unread: boolean;
  version: bigint;
  palette: number;
  model: string;
  pause_ms: number;
  last_seq: bigint;
  last_ordinal: bigint;
  newest_seq: bigint | null;
  newest_round_id: string | null;
  newest_number: bigint | null;
  newest_occurred_at: string | null;
  same_hundredths: bigint | null;
  same_count: number;
  history_hash: Buffer;
  forecast_seq: bigint;
  forecast_hash: Buffer;
  score_hash: Buffer;
  first_forecast_at: string | null;
  first_forecast_ordinal: bigint | null;
  proof_number: bigint | null;
  proof_hash: Buffer | null;
  proof_of: string | null;
  responded_at: string | null;
  payload_sha256: Buffer | null;
  part_sha256: Buffer | null;
  payload_path: string | null;
  open_sets: bigint[];
  set_seq: bigint | null;
  now_ppm: (number | null)[];
  has_ended: boolean;
  last_round_at: string | null;
  last_polled_round_at: string | null;
}

/** Locks the heads until the end of the transaction, so that later reads are consistent with them. */
function listHeads(sql: Queryable, ids: readonly number[], lock: Fragment) {
  return sql<StoredHead[]>`
    select
      h.table_id, t.house_id as house, t.game, t.market, t.round_ids, t.settings, p.bands,
      f.bad_responses, f.format_since::text, r.reading,
      exists (select from payloads where table_id = h.table_id and state = 'unread') as has_unread,
      h.version, h.palette, h.model, h.pause_ms, h.last_seq, h.last_ordinal, h.newest_seq, h.newest_round_id,
      h.newest_number, h.newest_occurred_at::text, h.same_hundredths, h.same_count, h.history_hash, h.forecast_seq,
      h.forecast_hash, h.score_hash, h.first_forecast_at::text, h.first_forecast_ordinal, h.proof_number, h.proof_hash,
      h.proof_of, h.responded_at::text, h.payload_sha256, h.part_sha256, h.payload_path, h.open_sets, h.set_seq, h.now_ppm,
      h.has_ended, h.last_round_at::text, h.last_polled_round_at::text
    from table_heads h
    join tables t on t.id = h.table_id
    join palettes p on p.id = h.palette
    join feeds f on f.table_id = h.table_id
    left join published_readings r on r.table_id = h.table_id
    where h.table_id = any(${ids}::integer[])
    order by h.table_id
    ${lock}`;
}

function listSnapshots(sql: Queryable, ids: readonly number[]) {
  return sql<StoredSnapshot[]>`
    select
      s.table_id, s.model, s.ordinal, s.seq, s.state, s.state_hash, s.reading, s.reading_hash, s.refs
    from table_heads h
    join model_snapshots s on s.table_id = h.table_id and s.model = h.model
    where h.table_id = any(${ids}::integer[])`;
}

interface StoredSnapshot {
  table_id: number;
  model: string;
  ordinal: bigint;
  seq: bigint;
  state: Buffer;
  state_hash: Buffer;
  reading: string;
  reading_hash: Buffer;
  refs: object;
}

interface StoredReplay {
  table_id: number;
  seq: bigint;
  ordinal: bigint | null;
  round_id: string;
  hundredths: bigint;
  palette: number;
  color: number;
  source: number;
  requested_at: string | null;
  occurred_at: string | null;
  after_gap: boolean;
  late: boolean;
  verified: boolean | null;
  received_at: string;
  dispute: 0 | 3 | 5;
}

function replayColumns(sql: Queryable) {
  return sql`
    r.table_id, r.seq, r.ordinal, r.round_id, r.hundredths, r.palette, r.color, r.source, r.requested_at::text,
    r.occurred_at::text, r.received_at::text, r.after_gap, r.late, r.verified,
    case
      when exists (select from conflicts c where c.table_id = r.table_id and c.round_id = r.round_id) then 3
      when exists (select from round_revision v where v.table_id = r.table_id and v.round_id = r.round_id) then 5
      else 0
    end as dispute`;
}

function listReplays(sql: Queryable, ids: readonly number[]) {
  return sql<StoredReplay[]>`
    select ${replayColumns(sql)}
    from table_heads h
    left join model_snapshots s on s.table_id = h.table_id and s.model = h.model
    cross join lateral (
      select *
      from rounds
      where table_id = h.table_id
        and seq > least(coalesce(s.seq, 0), h.open_sets[1]) -- which are in order
      order by seq
      limit ${REPLAYED_AT_ONCE}
    ) r
    where h.table_id = any(${ids}::integer[])`;
}

/** A forecast set as the driver returns it; see {@link asSet}. */
export interface StoredSet {
  table_id: number;
  cutoff_seq: bigint;
  cutoff_ordinal: bigint;
  model: string;
  first_seq: bigint;
  issued_at: string;
  pause_ms: number;
  absent_at: string;
  cutoff_round_id: string;
  history_hash: Buffer;
  target_round_id: string | null;
  features: number[];
  horizons: number[];
  p_ppm: number[];
  base_ppm: number[];
  reference_ppm: (number | null)[];
  ends: bigint[];
  prev_hash: Buffer;
  hashes: Buffer;
}

/** The columns of a forecast set `s`. */
export function setColumns(sql: Queryable) {
  return sql`
    s.table_id, s.cutoff_seq, s.cutoff_ordinal, s.model, s.first_seq, s.issued_at::text, s.pause_ms, s.absent_at::text,
    s.cutoff_round_id, s.history_hash, s.target_round_id, s.features, s.horizons, s.p_ppm, s.base_ppm, s.reference_ppm,
    s.ends, s.prev_hash, s.hashes`;
}

function listOpenSets(sql: Queryable, ids: readonly number[]) {
  return sql<(StoredSet & { other_bands: Color[] | null })[]>`
    select
      ${setColumns(sql)},
      (
        select p.bands
        from rounds c
        join palettes p on p.id = c.palette
        where c.table_id = h.table_id
          and c.seq = s.cutoff_seq
          and c.palette <> h.palette
      ) as other_bands
    from table_heads h
    cross join lateral (
      select *
      from forecast_sets
      where table_id = h.table_id
        and cutoff_seq = any(h.open_sets || h.set_seq)
      order by cutoff_seq
    ) s
    where h.table_id = any(${ids}::integer[])`;
}

function listSettled(sql: Queryable, ids: readonly number[]) {
  return sql<{ table_id: number; seqs: bigint[] }[]>`
    select h.table_id, array_agg(u.forecast_seq) as seqs
    from table_heads h
    cross join lateral (
      select *
      from score_sets
      where table_id = h.table_id
        and settled_seq > h.open_sets[1]
      order by settled_seq
    ) s
    cross join lateral unnest(s.forecast_seqs, s.cutoff_seqs) as u (forecast_seq, cutoff_seq)
    where h.table_id = any(${ids}::integer[])
      and u.cutoff_seq = any(h.open_sets)
    group by h.table_id`;
}

interface StoredKnown {
  table_id: number;
  seqs: number[] | null;
  round_ids: string[];
  hundredths: number[];
  late: boolean[];
  verified: (boolean | null)[];
  proof_hashes: (string | null)[];
  received_at: string[];
}

/** Rounds as one array per column: of a thousand tables, a row for each would take several times as long to read. */
function knownColumns(sql: Queryable) {
  return sql`
    array_to_json(array_agg(r.seq)) as seqs,
    array_to_json(array_agg(r.round_id)) as round_ids,
    array_to_json(array_agg(r.hundredths)) as hundredths,
    array_to_json(array_agg(r.late)) as late,
    array_to_json(array_agg(r.verified)) as verified,
    array_to_json(array_agg(encode(r.proof_hash, 'hex'))) as proof_hashes,
    array_to_json(array_agg(r.received_at::text)) as received_at`;
}

function listNewest(sql: Queryable, ids: readonly number[]) {
  return sql<StoredKnown[]>`
    select own.table_id, r.*
    from unnest(${ids}::integer[]) as own (table_id)
    cross join lateral (
      select ${knownColumns(sql)}
      from (
        select *
        from rounds
        where table_id = own.table_id
        order by seq desc
        limit ${KNOWN_ROUNDS}
      ) r
    ) r`;
}

function listHeld(sql: Queryable, ids: readonly number[]) {
  return sql<StoredHeld[]>`
    select
      q.table_id,
      q.round_id,
      ${heldColumns(sql)}
    from unnest(${ids}::integer[]) as own (table_id)
    cross join lateral (
      select *
      from quarantine
      where table_id = own.table_id
      order by last_seen_at desc
      limit ${HELD_ITEMS}
    ) q
    where q.round_id is not null
    group by q.table_id, q.round_id`;
}

/** The quarantine state of a round, from its rows `q`. */
export interface StoredHeld {
  table_id: number;
  round_id: string;
  stuck: boolean;
  ahead_at: string | null;
  released: boolean;
}

/** The columns of {@link StoredHeld}, grouped by round. */
export function heldColumns(sql: Queryable) {
  return sql`
    bool_or(q.code = 'stuck_feed') as stuck,
    min(coalesce(q.payload_received_at, q.first_seen_at)) filter (where q.code = 'far_ahead')::text as ahead_at,
    bool_or(q.state = 'released') as released`;
}

/** The quarantine state of a round, from its columns. */
export function asHeld({ stuck, ahead_at, released }: StoredHeld): HeldBack {
  return { stuck, aheadAt: asOptionalTime(ahead_at), released };
}

function asOptionalTime(text: string | null): string | null {
  return text === null ? null : asTime(text);
}

function asHead(row: StoredHead): HeadRow {
  return {
    palette: row.palette,
    model: row.model,
    pauseMs: row.pause_ms,
    lastSeq: row.last_seq,
    lastOrdinal: row.last_ordinal,
    newestSeq: row.newest_seq,
    newestRoundId: row.newest_round_id,
    newestNumber: row.newest_number,
    newestOccurredAt: asOptionalTime(row.newest_occurred_at),
    sameHundredths: row.same_hundredths === null ? null : Number(row.same_hundredths),
    sameCount: row.same_count,
    historyHash: row.history_hash.toString("hex"),
    forecastSeq: row.forecast_seq,
    forecastHash: row.forecast_hash.toString("hex"),
    scoreHash: row.score_hash.toString("hex"),
    firstForecastAt: asOptionalTime(row.first_forecast_at),
    firstForecastOrdinal: row.first_forecast_ordinal,
    proofNumber: row.proof_number,
    proofHash: row.proof_hash?.toString("hex") ?? null,
    proofOf: row.proof_of,
    respondedAt: asOptionalTime(row.responded_at),
    payloadSha256: row.payload_sha256?.toString("hex") ?? null,
    partSha256: row.part_sha256?.toString("hex") ?? null,
    payloadPath: row.payload_path,
    openSets: row.open_sets,
    setSeq: row.set_seq,
    nowPpm: row.now_ppm,
    hasEnded: row.has_ended,
    lastRoundAt: asOptionalTime(row.last_round_at),
    lastPolledRoundAt: asOptionalTime(row.last_polled_round_at),
  };
}

function asSnapshot(row: StoredSnapshot | undefined): SnapshotRow | null {
  if (row === undefined) return null;
  const { table_id: _, state_hash, reading_hash, ...snapshot } = row;
  return { ...snapshot, stateHash: state_hash.toString("hex"), readingHash: reading_hash.toString("hex") };
}

function asReplay(row: StoredReplay): ReplayRow {
  return {
    seq: row.seq,
    ordinal: row.ordinal,
    roundId: row.round_id,
    hundredths: Number(row.hundredths),
    palette: row.palette,
    color: row.color,
    source: row.source,
    requestedAt: asOptionalTime(row.requested_at),
    occurredAt: asOptionalTime(row.occurred_at),
    afterGap: row.after_gap,
    late: row.late,
    verified: row.verified,
    receivedAt: asTime(row.received_at),
    dispute: row.dispute,
  };
}

function listNotices(sql: Queryable, ids: readonly number[]) {
  return sql<{ table_id: number; kind: NoticeKind; opened_at: string }[]>`
    select table_id, kind, opened_at::text
    from notices
    where table_id = any(${ids}::integer[])
      and closed_at is null`;
}

/** The number of tables. */
export async function countTables(sql: Queryable): Promise<number> {
  const [row] = await sql<{ tables: number }[]>`select count(*)::integer as tables from tables`;
  return row?.tables ?? 0;
}

/** A forecast set from its stored row. */
export function asSet(row: StoredSet): ForecastSetRow {
  return {
    cutoffSeq: row.cutoff_seq,
    cutoffOrdinal: row.cutoff_ordinal,
    model: row.model,
    firstSeq: row.first_seq,
    issuedAt: asTime(row.issued_at),
    pauseMs: row.pause_ms,
    absentAt: asTime(row.absent_at),
    cutoffRoundId: row.cutoff_round_id,
    historyHash: row.history_hash.toString("hex"),
    targetRoundId: row.target_round_id,
    features: row.features,
    horizons: row.horizons,
    pPpm: row.p_ppm,
    basePpm: row.base_ppm,
    referencePpm: row.reference_ppm,
    ends: row.ends,
    prevHash: row.prev_hash.toString("hex"),
    hashes: row.hashes.toString("hex"),
  };
}

function asKnown(row: StoredKnown | undefined): KnownRoundRow[] {
  return (row?.seqs ?? []).map((seq, at) => ({
    seq: BigInt(seq),
    roundId: valueAt(row?.round_ids, at),
    hundredths: valueAt(row?.hundredths, at),
    late: valueAt(row?.late, at),
    verified: valueAt(row?.verified, at),
    proofHash: valueAt(row?.proof_hashes, at),
    receivedAt: asTime(valueAt(row?.received_at, at)),
  }));
}

function valueAt<Value>(values: readonly Value[] | undefined, at: number): Value {
  const value = values?.[at];
  if (value === undefined) throw new Error("expected arrays of one length from the database");
  return value;
}
