import type { Sql, Transaction } from "../../../src/db/client.ts";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import { houseEntry, tableEntry } from "../../support/houses.ts";
import type { Event } from "./histories.ts";

const NAMES = ["blue", "purple", "pink", "gold", "red", "green", "white", "black"];

/** Adds a house with tables of so many colors each, with heads as before their first round. Returns the ids of the tables. */
export async function createTables(sql: Sql, house: string, colors: readonly number[]): Promise<number[]> {
  const tables = colors.map((count, place) => {
    const bands = NAMES.slice(0, count).map((name, at) => (at === count - 1 ? { name } : { name, below: 2 + at }));
    return tableEntry({ market: `m${place}`, colors: bands });
  });
  await applyHouses(sql, [houseEntry({ id: house, tables })]);
  const rows = await sql<{ id: number }[]>`
    select id
    from tables
    where house_id = ${house}
    order by id`;
  return rows.map(({ id }) => id);
}

/** Stores what a table went through, as passes would have but without their guards, which refuse rows of the past. */
export async function storeEvents(sql: Sql, tableId: number, events: readonly Event[]): Promise<void> {
  if (events.length === 0) return;
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    for (let at = 0; at < events.length; at += 1000) await storePart(tx, tableId, events.slice(at, at + 1000));
  });
}

async function storePart(tx: Transaction, tableId: number, events: readonly Event[]): Promise<void> {
  const rounds = events.flatMap((event) => (event.kind === "round" ? [event] : []));
  const sets = rounds.flatMap(({ set }) => set ?? []);
  const scores = rounds.flatMap(({ scores: own }) => own ?? []);
  const revisions = events.flatMap((event) => (event.kind === "revision" ? [event.revision] : []));
  const time = (hour: number) => new Date(hour * 3_600_000 + 1_234_000).toISOString();
  const zeros = "00".repeat(32);
  await tx`
    insert into rounds (
      table_id, seq, ordinal, hundredths, requested_at, received_at, palette, color, source, after_gap, late, round_id,
      raw_value, history_hash
    )
    select ${tableId}, x.seq, x.ordinal, 100, x.at, x.at, h.palette, 0, 0, false, x.ordinal is null, x.seq::text, '1',
      ${Buffer.alloc(32)}
    from jsonb_to_recordset(${tx.json(rounds.map(({ round }) => ({ seq: String(round.seq), ordinal: round.ordinal === null ? null : String(round.ordinal), at: time(round.hour) })))})
      as x (seq bigint, ordinal bigint, at timestamptz)
    join table_heads h on h.table_id = ${tableId}`;
  // a forecast's number in its table follows from its place: sets here number theirs by a thousand per cutoff
  await tx`
    insert into forecast_sets (
      table_id, cutoff_seq, cutoff_ordinal, first_seq, issued_at, absent_at, pause_ms, model, cutoff_round_id,
      history_hash, features, horizons, p_ppm, base_ppm, reference_ppm, ends, prev_hash, hashes
    )
    select ${tableId}, cutoff_seq, cutoff_ordinal, cutoff_seq * 1000, at, at, 5000, model, cutoff_seq::text,
      ${Buffer.alloc(32)}, features, horizons, p_ppm, base_ppm, reference_ppm, ends, ${Buffer.alloc(32)},
      decode(repeat(${zeros}, cardinality(features)), 'hex')
    from jsonb_to_recordset(${tx.json(
      sets.map((set) => ({
        cutoff_seq: String(set.cutoffSeq),
        cutoff_ordinal: String(set.cutoffOrdinal),
        at: time(set.hour),
        model: set.model,
        features: arrayText(set.features),
        horizons: arrayText(set.horizons),
        p_ppm: arrayText(set.pPpm),
        base_ppm: arrayText(set.basePpm),
        reference_ppm: arrayText(set.referencePpm),
        ends: arrayText(set.ends),
      })),
    )}) as x (
      cutoff_seq bigint, cutoff_ordinal bigint, at timestamptz, model text, features smallint[], horizons smallint[],
      p_ppm integer[], base_ppm integer[], reference_ppm integer[], ends bigint[]
    )`;
  await tx`
    insert into score_sets (
      table_id, settled_seq, scored_at, forecast_seqs, cutoff_seqs, features, statuses, reasons, outcomes, prev_hash, hashes
    )
    select ${tableId}, settled_seq, now(), forecast_seqs, cutoff_seqs, features, statuses, reasons, outcomes,
      ${Buffer.alloc(32)}, decode(repeat(${zeros}, cardinality(features)), 'hex')
    from jsonb_to_recordset(${tx.json(
      scores.map(({ settledSeq, settlements }) => ({
        settled_seq: String(settledSeq),
        forecast_seqs: arrayText(settlements.map(({ cutoffSeq, feature }) => cutoffSeq * 1000n + BigInt(feature))),
        cutoff_seqs: arrayText(settlements.map(({ cutoffSeq }) => cutoffSeq)),
        features: arrayText(settlements.map(({ feature }) => feature)),
        statuses: arrayText(settlements.map(({ reason }) => Number(reason > 0))),
        reasons: arrayText(settlements.map(({ reason }) => reason)),
        outcomes: arrayText(settlements.map(({ outcome }) => outcome)),
      })),
    )}) as x (
      settled_seq bigint, forecast_seqs bigint[], cutoff_seqs bigint[], features smallint[], statuses smallint[],
      reasons smallint[], outcomes smallint[]
    )`;
  await tx`
    insert into score_revisions (
      table_id, forecast_seq, rev, cutoff_seq, feature, settled_seq, status, reason, outcome, scored_at, prev_hash, hash
    )
    select ${tableId}, x.forecast_seq,
      coalesce((select max(rev) from score_revisions r where r.table_id = ${tableId} and r.forecast_seq = x.forecast_seq), 1)
        + row_number() over (partition by x.forecast_seq order by x.place),
      x.cutoff_seq, x.feature, 0, (x.reason > 0)::integer, x.reason, x.outcome, now(), ${Buffer.alloc(32)},
      ${Buffer.alloc(32)}
    from jsonb_to_recordset(${tx.json(
      revisions.map(({ cutoffSeq, feature, after }, place) => ({
        place,
        cutoff_seq: String(cutoffSeq),
        forecast_seq: String(cutoffSeq * 1000n + BigInt(feature)),
        feature,
        ...after,
      })),
    )}) as x (place integer, cutoff_seq bigint, forecast_seq bigint, feature smallint, reason smallint, outcome smallint)
    order by x.place`;
  await tx`
    update table_heads
    set
      version = version + 1,
      last_seq = greatest(last_seq, ${rounds.at(-1)?.round.seq ?? 0n}),
      set_seq = coalesce(${sets.at(-1)?.cutoffSeq ?? null}::bigint, set_seq)
    where table_id = ${tableId}`;
}

/** An array as PostgreSQL writes it. */
function arrayText(values: readonly (number | bigint | null)[]): string {
  return `{${values.map((value) => value ?? "NULL").join(",")}}`;
}
