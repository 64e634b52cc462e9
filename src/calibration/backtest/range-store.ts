import type { Queryable } from "../../db/client.ts";
import type { Band } from "../../forecasts/model/table-model.ts";

/** `taken`: on-time rounds in the order of storage; `round`: all rounds by the number of their id. */
export type ReplayOrder = "taken" | "round";

/** The range of a manual run: seqs, or numbers of round ids if `seenSeq` is given, see {@link Seen}. */
export interface ReplayRange {
  fromSeq: bigint;
  toSeq: bigint;
  seenSeq: bigint | null;
}

/** The order of a range or a record. */
export function orderOf({ seenSeq }: Pick<ReplayRange, "seenSeq">): ReplayOrder {
  return seenSeq === null ? "taken" : "round";
}

/** Stretches of late rounds that are listed. */
export const MOST_STRETCHES = 20;

/** A round as an end of a range. */
export interface RoundPlace {
  seq: bigint;
  roundId: string;
  late: boolean;
}

/** The round with an id; null if the table does not have it. */
export async function findRound(sql: Queryable, tableId: number, roundId: string): Promise<RoundPlace | null> {
  const [row] = await sql<RoundPlace[]>`
    select seq, round_id as "roundId", late
    from rounds
    where table_id = ${tableId}
      and round_id = ${roundId}`;
  return row ?? null;
}

/**
 * The first on-time round that was received at or after a time, or the last at or before it; null if there is none. Times
 * are times of receipt, independent of the clock of the house.
 */
export async function findRoundAt(
  sql: Queryable,
  tableId: number,
  { at, end }: { at: string; end: "from" | "to" },
): Promise<RoundPlace | null> {
  const [row] = await sql<RoundPlace[]>`
    select seq, round_id as "roundId", late
    from rounds
    where table_id = ${tableId}
      and not late
      and ${end === "from" ? sql`received_at >= ${at}::text::timestamptz` : sql`received_at <= ${at}::text::timestamptz`}
    order by ${end === "from" ? sql`received_at, seq` : sql`received_at desc, seq desc`}
    limit 1`;
  return row ?? null;
}

/**
 * The first and last rounds of a table in an order; null if it has none. `round` scans the whole table. If the newest number
 * was reset, the highest one may be wrong, so that the last round is the newest on-time one in both orders.
 */
export async function findEnds(
  sql: Queryable,
  tableId: number,
  order: ReplayOrder,
  { wasReset }: { wasReset: boolean },
): Promise<{ first: RoundPlace; last: RoundPlace } | null> {
  const place = order === "taken" ? sql`seq` : sql`round_id::bigint`;
  const isSeen = order === "taken" ? sql`not late` : sql`true`;
  const [lastPlace, isLastSeen] = wasReset ? [sql`seq`, sql`not late`] : [place, isSeen];
  const rows = await sql<RoundPlace[]>`
    (
      select seq, round_id as "roundId", late
      from rounds
      where table_id = ${tableId}
        and ${isSeen}
      order by ${place}
      limit 1
    )
    union all
    (
      select seq, round_id, late
      from rounds
      where table_id = ${tableId}
        and ${isLastSeen}
      order by ${lastPlace} desc
      limit 1
    )`;
  const [first, last] = rows;
  return first === undefined || last === undefined ? null : { first, last };
}

/** What the orders of a table's rounds depend on. */
export interface TableOrder {
  /** 0 for none. */
  newestSeq: bigint;
  /** The ids of its rounds are consecutive numbers. */
  isConsecutive: boolean;
  /** Its newest number was reset at some time. */
  wasReset: boolean;
}

/** The facts of a table that an order of its rounds depends on. */
export async function readOrder(sql: Queryable, tableId: number): Promise<TableOrder> {
  const [row] = await sql<TableOrder[]>`
    select
      coalesce((select max(seq) from rounds where table_id = t.id), 0) as "newestSeq",
      round_ids = 'consecutive' as "isConsecutive",
      exists (select from number_resets where table_id = t.id) as "wasReset"
    from tables t
    where id = ${tableId}`;
  if (row === undefined) throw new Error(`expected a table with id ${tableId}, found none`);
  return row;
}

/** Number of late rounds of a range by number, and their first stretches. */
export interface LateRounds {
  rounds: number;
  stretches: { from: string; to: string }[];
}

/** The late rounds of a range by number, and the first {@link MOST_STRETCHES} stretches of them. */
export async function findLateRounds(
  sql: Queryable,
  tableId: number,
  { fromSeq, toSeq, seenSeq }: ReplayRange,
): Promise<LateRounds> {
  if (seenSeq === null) return { rounds: 0, stretches: [] };
  const rows = await sql<{ from: string; to: string; total: number }[]>`
    select min(n)::text as "from", max(n)::text as "to", (sum(count(*)) over ())::integer as total
    from (
      select n, n - row_number() over (order by n) as stretch
      from (
        select round_id::bigint as n
        from rounds
        where table_id = ${tableId}
          and late
          and seq <= ${seenSeq}
      ) numbers
      where n between ${fromSeq} and ${toSeq}
    ) late
    group by stretch
    order by min(n)
    limit ${MOST_STRETCHES}`;
  return { rounds: rows[0]?.total ?? 0, stretches: rows.map(({ from, to }) => ({ from, to })) };
}

/** The bands of a table and the edge that it declares now, null if none. */
export async function readSettings(sql: Queryable, tableId: number): Promise<{ bands: Band[]; edge: number | null }> {
  const [row] = await sql<{ bands: Band[]; edge: number | null }[]>`
    select colors as bands, (settings ->> 'house_edge')::float8 as edge
    from tables
    where id = ${tableId}`;
  if (row === undefined) throw new Error(`expected a table with id ${tableId}, found none`);
  return row;
}
