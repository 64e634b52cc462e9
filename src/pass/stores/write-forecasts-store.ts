import type { Queryable } from "../../db/client.ts";
import {
  FORECAST_SETS,
  PACKED_SNAPSHOTS,
  READINGS,
  SCORE_SETS,
  SNAPSHOTS,
  type ForecastSetRow,
  type ReadingRow,
  type ScoreSetRow,
  type SnapshotRow,
} from "../compute/rows.ts";
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

const ASSIGNED_SNAPSHOT = SNAPSHOTS.assignFrom("excluded");

/** Stores snapshots, each in the place of the one of its model. */
export function saveSnapshots(sql: Queryable, { tableIds, rows }: TableRows<SnapshotRow>): Statement | null {
  if (rows.length === 0) return null;
  let stateEnd = 0;
  const packed = rows.map((row) => {
    stateEnd += row.state.length;
    return { ...row, stateEnd, stateLength: row.state.length };
  });
  const states = Buffer.concat(rows.map(({ state }) => state));
  return sql`
    insert into model_snapshots (table_id, ${SNAPSHOTS.names}, state)
    select table_id, ${SNAPSHOTS.names}, substr(${states}, state_end - state_length + 1, state_length)
    from (${PACKED_SNAPSHOTS.rows({ tableIds, rows: packed })}) s
    on conflict (table_id, model) do update
    set ${ASSIGNED_SNAPSHOT}, state = excluded.state, updated_at = clock_timestamp()`;
}

const ASSIGNED_READING = READINGS.assignFrom("excluded");

/** Publishes readings, each in the place of the one before. */
export function publishReadings(sql: Queryable, r: TableRows<ReadingRow>): Statement | null {
  if (r.rows.length === 0) return null;
  return sql`
    insert into published_readings (table_id, ${READINGS.names})
    ${READINGS.rows(r)}
    on conflict (table_id) do update
    set ${ASSIGNED_READING}, published_at = clock_timestamp()`;
}
