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
 * are times of receipt, independent of the clock of the house. Those of on-time rounds rise with the order of storage, so that
 * halving finds one in some 25 look-ups; those of late rounds may be earlier, and are not compared. If the clock was set back,
 * several rounds fit, and one of them is found.
 */
export async function findRoundAt(
  sql: Queryable,
  tableId: number,
  { at, end }: { at: string; end: "from" | "to" },
): Promise<RoundPlace | null> {
  const isBefore = end === "from" ? sql`r.received_at < at.time` : sql`r.received_at <= at.time`;
  const isAfter = sql`r.seq is not null and not ${isBefore}`;
  const [row] = await sql<RoundPlace[]>`
    with recursive at as (
      select ${at}::text::timestamptz as time
    ),
    halving (low, high) as (
      select 1::bigint, coalesce(${newestOnTime(sql, tableId)}, 0) + 1
      union all
      select
        case when ${isAfter} then h.low else (h.low + h.high) / 2 + 1 end,
        case when ${isAfter} then r.seq else h.high end
      from halving h
      cross join at
      left join lateral (
        select seq, received_at
        from rounds
        where table_id = ${tableId}
          and not late
          and seq between h.low and (h.low + h.high) / 2
        order by seq desc
        limit 1
      ) r on true
      where h.low < h.high
    )
    select seq, round_id as "roundId", late
    from rounds
    where table_id = ${tableId}
      and not late
      and ${end === "from" ? sql`seq >=` : sql`seq <`} (select low from halving where low = high)
      and seq <= ${newestOnTime(sql, tableId)}
    order by ${end === "from" ? sql`seq` : sql`seq desc`}
    limit 1`;
  return row ?? null;
}

/** The newest on-time round of a table: any number of late ones, as of an import, may follow it. */
function newestOnTime(sql: Queryable, tableId: number) {
  return sql`(select newest_seq from table_heads where table_id = ${tableId})`;
}

/**
 * The first and last rounds of a table in an order; null if it has none. Numbers of on-time rounds rise with their seq
 * until a reset, and late ones have an index. If the newest number was reset, the highest one may be wrong, so that the
 * last round is the newest on-time one in both orders.
 */
export async function findEnds(
  sql: Queryable,
  tableId: number,
  order: ReplayOrder,
  { wasReset }: { wasReset: boolean },
): Promise<{ first: RoundPlace; last: RoundPlace } | null> {
  const places = sql`select seq, round_id as "roundId", late from rounds where table_id = ${tableId}`;
  const firstOnTime = sql`(${places} and not late order by seq limit 1)`;
  const lastOnTime = sql`${places} and seq = ${newestOnTime(sql, tableId)}`;
  const late = (end: "asc" | "desc") => sql`
    (
      ${places} and late
      order by length(round_id) ${sql.unsafe(end)}, round_id collate "C" ${sql.unsafe(end)}
      limit 1
    )`;
  const afterResets = sql`
    select r.seq, r.round_id, r.late
    from number_resets n
    cross join lateral (
      select seq, round_id, late
      from rounds
      where table_id = n.table_id
        and seq > n.after_seq
        and not late
      order by seq
      limit 1
    ) r
    where n.table_id = ${tableId}`;
  const isByNumber = order === "round";
  const firsts = isByNumber ? sql`${firstOnTime} union all ${late("asc")} union all ${afterResets}` : firstOnTime;
  const lasts = isByNumber && !wasReset ? sql`${lastOnTime} union all ${late("desc")}` : lastOnTime;
  const findEnd = async (candidates: typeof firsts, end: "asc" | "desc") => {
    const [row] = await sql<RoundPlace[]>`
      select seq, "roundId", late
      from (${candidates}) one
      order by length("roundId") ${sql.unsafe(end)}, "roundId" collate "C" ${sql.unsafe(end)}
      limit 1`;
    return row;
  };
  const [first, last] = [await findEnd(firsts, "asc"), await findEnd(lasts, "desc")];
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

/** Whether a range by number has late rounds. */
export async function hasLateRounds(sql: Queryable, tableId: number, range: ReplayRange): Promise<boolean> {
  const [row] = await sql<{ found: boolean }[]>`
    select exists (${lateOf(sql, tableId, range)}) as found`;
  return row?.found === true;
}

/** The late rounds of a range by number, and the first {@link MOST_STRETCHES} stretches of them. */
export async function findLateRounds(sql: Queryable, tableId: number, range: ReplayRange): Promise<LateRounds> {
  if (range.seenSeq === null) return { rounds: 0, stretches: [] };
  const rows = await sql<{ from: string; to: string; total: number }[]>`
    select min(n)::text as "from", max(n)::text as "to", (sum(count(*)) over ())::integer as total
    from (
      select n, n - row_number() over (order by n) as stretch
      from (${lateOf(sql, tableId, range)}) numbers
    ) late
    group by stretch
    order by min(n)
    limit ${MOST_STRETCHES}`;
  return { rounds: rows[0]?.total ?? 0, stretches: rows.map(({ from, to }) => ({ from, to })) };
}

/** The numbers of the late rounds of a range by number. */
function lateOf(sql: Queryable, tableId: number, { fromSeq, toSeq, seenSeq }: ReplayRange) {
  const [from, to] = [String(fromSeq), String(toSeq)];
  return sql`
    select round_id::bigint as n
    from rounds
    where table_id = ${tableId}
      and late
      and (length(round_id), round_id collate "C") >= (length(${from}::text), ${from}::text collate "C")
      and (length(round_id), round_id collate "C") <= (length(${to}::text), ${to}::text collate "C")
      and seq <= ${seenSeq}`;
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
