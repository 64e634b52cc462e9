import type { Queryable } from "../../db/client.ts";

/** Rounds of a table by cells of five minutes, of one hour. */
export interface HourCells {
  tableId: number;
  hour: Date;
  rounds: number[];
}

/** A hole that was found in a table's rounds. */
export interface GapMark {
  id: string;
  tableId: number;
  openedAt: Date;
  state: "open" | "filled" | "given_up";
  missing: number | null;
}

/** The cells of tables in the last 24 hours and what there is of this hour, oldest first. */
export async function listCells(sql: Queryable, tableIds: readonly number[]): Promise<HourCells[]> {
  return sql<HourCells[]>`
    select table_id as "tableId", hour, rounds
    from round_cells
    where hour >= date_trunc('hour', now(), 'UTC') - interval '24 hours'
      and table_id = any(${[...tableIds]}::integer[])
    order by table_id, hour`;
}

/** Gaps of tables that were found in the last 25 hours, newest first. */
export async function listGapMarks(sql: Queryable, tableIds: readonly number[]): Promise<GapMark[]> {
  return sql<GapMark[]>`
    select id::text as id, table_id as "tableId", opened_at as "openedAt", state, missing::float8 as missing
    from gaps
    where table_id = any(${[...tableIds]}::integer[])
      and opened_at >= now() - interval '25 hours'
    order by gaps.id desc
    limit 2000`;
}
