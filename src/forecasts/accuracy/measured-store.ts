import type { Queryable } from "../../db/client.ts";
import { hasTooManyVoids } from "./figures/figures.ts";
import type { PeriodSums } from "./present.ts";
import type { Period } from "./periods.ts";
import { listPublished } from "./published-store.ts";

/** Names of a table. */
interface NamedTable {
  tableId: number;
  house: string;
  game: string;
  market: string;
  colors: string[];
}

/** Sums of a feature of a table over a period. */
export interface MeasuredRow extends PeriodSums, NamedTable {}

/** A table whose sums cannot be decoded, so they were changed, with the error. */
export interface DamagedRow extends NamedTable {
  damage: string;
}

/** Filter of rows; an absent field does not filter. */
export interface MeasuredFilter {
  period: Period;
  tableIds?: readonly number[] | undefined;
  house?: string | undefined;
  feature?: string | undefined;
}

/** Tables whose sums are read and decoded together: about 20 ms of CPU. */
const TABLES_AT_ONCE = 100;

/**
 * The sums over a period, by table and feature, next_color first.
 *
 * @throws Error when sums are damaged
 */
export async function listMeasured(sql: Queryable, filter: MeasuredFilter): Promise<MeasuredRow[]> {
  return (await listMeasuredOrDamaged(sql, filter)).map((row) => {
    if ("damage" in row) throw new Error(row.damage);
    return row;
  });
}

/** Like {@link listMeasured}, but returns tables with damaged sums separately instead of throwing. */
export async function listMeasuredOrDamaged(
  sql: Queryable,
  filter: MeasuredFilter,
): Promise<(MeasuredRow | DamagedRow)[]> {
  const rows: (MeasuredRow | DamagedRow)[] = [];
  const tables = await listNamedTables(sql, filter);
  for (let from = 0; from < tables.length; from += TABLES_AT_ONCE) {
    rows.push(...(await listOf(sql, tables.slice(from, from + TABLES_AT_ONCE), filter)));
  }
  return rows;
}

async function listOf(
  sql: Queryable,
  tables: readonly NamedTable[],
  { period, feature }: MeasuredFilter,
): Promise<(MeasuredRow | DamagedRow)[]> {
  const { rows, damaged } = await listPublished(sql, {
    tableIds: tables.map(({ tableId }) => tableId),
    periods: [period],
    ...(feature !== undefined && { feature }),
  });
  const byTable = Map.groupBy(rows, ({ tableId }) => tableId);
  const damageOf = new Map(damaged.map(({ tableId, reason }) => [tableId, reason]));
  return tables.flatMap((table): (MeasuredRow | DamagedRow)[] => {
    const damage = damageOf.get(table.tableId);
    if (damage !== undefined) return [{ ...table, damage }];
    return (byTable.get(table.tableId) ?? []).map((row) => {
      const { sums, references } = row; // those of a replaced model are decoded here, and not copied with the rest
      return { ...row, ...table, sums, references };
    });
  });
}

/**
 * The number of rows of these tables over all time, of every feature and model: the verdict on one of them is compared
 * with all. Other periods have no verdict.
 */
export async function countMeasured(
  sql: Queryable,
  scope: Pick<MeasuredFilter, "tableIds" | "house">,
): Promise<number> {
  const ids = (await listNamedTables(sql, scope)).map(({ tableId }) => tableId);
  const [row] = await sql<{ count: number }[]>`
    select count(*)::integer as count
    from (
      select table_id, model, feature
      from accuracy_periods
      where table_id = any(${ids}::integer[])
        and period = 'all'
      union
      select h.table_id, h.model, h.feature
      from accuracy_marks m
      join accuracy_hours h on h.table_id = m.table_id and h.hour >= m.hour - interval '1 hour'
      where m.table_id = any(${ids}::integer[])
    ) x`;
  return row?.count ?? 0;
}

function listNamedTables(
  sql: Queryable,
  { tableIds, house }: Pick<MeasuredFilter, "tableIds" | "house">,
): Promise<NamedTable[]> {
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

/** The ids of all houses, ascending. */
export async function listHouseIds(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id
    from houses
    order by id`;
  return rows.map(({ id }) => id);
}

/**
 * The PIT of the waits for the top color in the newest calibration of each table that its live state went through;
 * tables without waits are left out.
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

/** How the forecasts of a table's next color did in the last day. */
export interface DayFacts {
  tableId: number;
  /** The share of the received rounds for which one was issued in time; null without rounds. */
  coverage: number | null;
  scored: number;
  hits: number;
  /** The sum of the stated chances, in ppm. */
  sumP: number;
  /** Too many are void or late to publish an interval. */
  isWithheld: boolean;
}

/** The last day of tables, or of all; those with damaged sums are left out. */
export async function readDay(sql: Queryable, tableIds?: readonly number[]): Promise<DayFacts[]> {
  const rows = await listMeasuredOrDamaged(sql, { period: "24h", feature: "next_color", tableIds });
  return rows.flatMap((row) => {
    if ("damage" in row) return [];
    const { tableId, sums } = row;
    const { receivedRounds, notIssued, n, hits, sumP } = sums;
    const coverage = receivedRounds === 0n ? null : 1 - Number(notIssued) / Number(receivedRounds);
    const isWithheld = hasTooManyVoids(sums);
    return { tableId, coverage, scored: Number(n), hits: Number(hits), sumP: Number(sumP), isWithheld };
  });
}
