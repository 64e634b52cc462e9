import type { Queryable } from "../../db/client.ts";
import { FORECAST_SETS, SCORE_SETS, type ForecastSetRow, type ScoreSetRow, type SnapshotRow } from "../compute/rows.ts";
import type { CompletePassRows as PassRows } from "../compute/state.ts";
import { plainArray } from "./arrays.ts";
import { rowsOf, type Statement, type TableRows } from "./table-rows.ts";

/** Stores forecast sets. */
export function insertForecastSets(sql: Queryable, s: TableRows<ForecastSetRow>): Statement | null {
  if (s.rows.length === 0) return null;
  return sql`insert into forecast_sets (table_id, ${FORECAST_SETS.names}) ${FORECAST_SETS.rows(s)}`;
}

/** Stores score sets. */
export function insertScoreSets(sql: Queryable, s: TableRows<ScoreSetRow>): Statement | null {
  if (s.rows.length === 0) return null;
  return sql`insert into score_sets (table_id, ${SCORE_SETS.names}) ${SCORE_SETS.rows(s)}`;
}

/** Stores a snapshot of a table, in the place of the one of its model. The caller holds the lock of the head. */
export async function saveSnapshot(tx: Queryable, tableId: number, snapshot: SnapshotRow): Promise<void> {
  await saveSnapshots(
    tx,
    rowsOf([{ tableId }], () => [snapshot]),
  );
}

/** Stores snapshots, each in the place of the one of its model. */
export function saveSnapshots(sql: Queryable, s: TableRows<NonNullable<PassRows["snapshot"]>>): Statement | null {
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

/** Publishes readings, each in the place of the one before. */
export function publishReadings(sql: Queryable, r: TableRows<NonNullable<PassRows["reading"]>>): Statement | null {
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
