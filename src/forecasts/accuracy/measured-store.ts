import type { Queryable } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import type { PeriodSums } from "./present.ts";
import type { Period } from "./periods.ts";
import { listPublished } from "./published-store.ts";

/** A table as accuracy names it. */
interface NamedTable {
  tableId: number;
  house: string;
  game: string;
  market: string;
  colors: string[];
}

/** What was measured of a feature of a table over a period. */
export interface MeasuredRow extends PeriodSums, NamedTable {}

/** A table whose sums cannot be read, and why; someone has changed them. */
export interface DamagedRow extends NamedTable {
  damage: string;
}

/** Which rows are asked for; what is left out is not asked. */
export interface AskedRows {
  period: Period;
  tableIds?: readonly number[] | undefined;
  house?: string | undefined;
  feature?: string | undefined;
}

/** Tables whose sums are read and decoded at once: some 20 ms of Node. */
const TABLES_AT_ONCE = 100;

/**
 * What was measured over a period, by table and feature, next_color first.
 *
 * @throws Error when sums are damaged
 */
export async function listMeasured(sql: Queryable, asked: AskedRows): Promise<MeasuredRow[]> {
  const rows: MeasuredRow[] = [];
  const tables = await listNamedTables(sql, asked);
  for (let from = 0; from < tables.length; from += TABLES_AT_ONCE) {
    rows.push(...(await listOf(sql, tables.slice(from, from + TABLES_AT_ONCE), asked)));
  }
  return rows;
}

/** The same, with the tables whose sums are damaged; these hide no other. */
export async function listMeasuredOrDamaged(sql: Queryable, asked: AskedRows): Promise<(MeasuredRow | DamagedRow)[]> {
  const rows: (MeasuredRow | DamagedRow)[] = [];
  const tables = await listNamedTables(sql, asked);
  for (let from = 0; from < tables.length; from += TABLES_AT_ONCE) {
    const some = tables.slice(from, from + TABLES_AT_ONCE);
    try {
      rows.push(...(await listOf(sql, some, asked)));
    } catch {
      for (const table of some) {
        try {
          rows.push(...(await listOf(sql, [table], asked)));
        } catch (error) {
          rows.push({ ...table, damage: reasonOf(error) });
        }
      }
    }
  }
  return rows;
}

async function listOf(
  sql: Queryable,
  tables: readonly NamedTable[],
  { period, feature }: AskedRows,
): Promise<MeasuredRow[]> {
  const rows = await listPublished(sql, {
    tableIds: tables.map(({ tableId }) => tableId),
    periods: [period],
    ...(feature !== undefined && { feature }),
  });
  const byTable = Map.groupBy(rows, ({ tableId }) => tableId);
  return tables.flatMap((table) => (byTable.get(table.tableId) ?? []).map((row) => ({ ...row, ...table })));
}

function listNamedTables(sql: Queryable, { tableIds, house }: AskedRows): Promise<NamedTable[]> {
  return sql<NamedTable[]>`
    select
      t.id as "tableId",
      t.house_id as house,
      t.game,
      t.market,
      (select array_agg(band ->> 'name' order by place) from jsonb_array_elements(t.colors) with ordinality b (band, place))
        as colors
    from tables t
    where true
      ${tableIds === undefined ? sql`` : sql`and t.id = any(${[...tableIds]}::integer[])`}
      ${house === undefined ? sql`` : sql`and t.house_id = ${house}`}
    order by t.house_id, t.position, t.id`;
}

/** Every house we know, by id. */
export async function listHouseIds(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id
    from houses
    order by id`;
  return rows.map(({ id }) => id);
}

/**
 * The PIT of the waits for the top color in the newest calibration of each of these tables that its live state went
 * through; a table without waits is not in it.
 */
export async function listWaits(sql: Queryable, tableIds: readonly number[]): Promise<bigint[][]> {
  const rows = await sql<{ pit: string[] | null }[]>`
    select distinct on (table_id)
      jsonb_path_query_first(sums, '$[*] ? (@.feature == "next_color").sums.pit') as pit
    from calibrations
    where table_id = any(${[...tableIds]}::integer[])
      and kind <> 'manual'
    order by table_id, id desc`;
  return rows.flatMap(({ pit }) => (pit === null || pit.length === 0 ? [] : [pit.map(BigInt)]));
}

/**
 * The share of the on-time rounds of 24 hours for which a next-color forecast was issued in time, by table as
 * `house/game/market`; a table without such rounds is not in it.
 */
export async function readCoverage(sql: Queryable): Promise<Map<string, number>> {
  const rows = await listMeasuredOrDamaged(sql, { period: "24h", feature: "next_color" });
  return new Map(
    rows.flatMap((row): [string, number][] => {
      if ("damage" in row || row.sums.onTimeRounds === 0n) return [];
      const { house, game, market, sums } = row;
      return [[`${house}/${game}/${market}`, 1 - Number(sums.notIssued) / Number(sums.onTimeRounds)]];
    }),
  );
}
