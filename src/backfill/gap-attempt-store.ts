import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { HISTORY_BYTES_OF_TABLE } from "../houses/polling/day-budget.ts";

/** A gap with the state of its filling. */
export interface Gap {
  id: bigint;
  tableId: number;
  house: string;
  game: string;
  market: string;
  roundIds: "consecutive" | "opaque";
  fromNumber: bigint | null;
  toNumber: bigint | null;
  /** Rounds still missing; null if that is unknown. */
  missing: bigint | null;
  /** Rounds found so far. */
  filled: bigint;
  afterRoundId: string;
  beforeRoundId: string;
  attempts: number;
  cursorRoundId: string | null;
  /** Pages read so far, if the house counts pages from the newest. */
  cursorPage: number;
  /** When its lease expires: the fencing token of the run. */
  leaseUntil: string;
}

/**
 * Leases a gap for `leaseMs`: only an open one that is due, and only if no other gap of the same house is leased, so that a
 * house with many gaps gets the requests of one.
 */
export async function takeGap(sql: Sql, id: bigint, leaseMs: number): Promise<Gap | null> {
  return sql.begin(async (transaction) => {
    await transaction`
      select pg_advisory_xact_lock(hashtext('backfill ' || t.house_id))
      from gaps g
      join tables t on t.id = g.table_id
      where g.id = ${id}`;
    const [gap] = await transaction<Gap[]>`
      update gaps g
      set lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
      from tables t
      where g.id = ${id}
        and t.id = g.table_id
        and g.state = 'open'
        and g.next_attempt_at <= clock_timestamp()
        and g.lease_until <= clock_timestamp()
        and not exists (
          select
          from tables others
          join gaps busy on busy.table_id = others.id
          where others.house_id = t.house_id
            and busy.state = 'open'
            and busy.lease_until > clock_timestamp()
        )
      returning
        g.id,
        g.table_id as "tableId",
        t.house_id as house,
        t.game,
        t.market,
        t.round_ids as "roundIds",
        g.from_number as "fromNumber",
        g.to_number as "toNumber",
        g.missing - g.filled as missing,
        g.filled,
        g.after_round_id as "afterRoundId",
        g.before_round_id as "beforeRoundId",
        g.attempts,
        g.cursor_round_id as "cursorRoundId",
        g.cursor_page as "cursorPage",
        g.lease_until::text as "leaseUntil"`;
    return gap ?? null;
  });
}

/**
 * Releases a gap, to be resumed after `waitMs` from `cursor` or `page`, unless another run has taken it or an operator changed it. `attempts` counts
 * complete failures. No gap of its house is taken for `heldMs`.
 */
export async function putGapBack(
  sql: Sql,
  { id, leaseUntil }: Pick<Gap, "id" | "leaseUntil">,
  next: { waitMs: number; heldMs?: number; attempts: number; cursor: string | null; page?: number },
): Promise<void> {
  await sql`
    update gaps
    set
      lease_until = clock_timestamp() + ${next.heldMs ?? 0} * interval '1 millisecond',
      attempts = ${next.attempts},
      cursor_round_id = ${next.cursor},
      cursor_page = ${next.page ?? 0},
      next_attempt_at = clock_timestamp() + ${next.waitMs} * interval '1 millisecond'
    where id = ${id}
      and state = 'open'
      and lease_until = ${leaseUntil}::timestamptz`;
}

/** Closes an open gap, unless another run has taken it or an operator changed it: given up with the reason, or filled. */
export async function closeGap(
  sql: Transaction,
  { id, leaseUntil }: Pick<Gap, "id" | "leaseUntil">,
  end: { state: "given_up"; reason: string } | { state: "filled" },
): Promise<void> {
  await sql`
    update gaps
    set
      state = ${end.state},
      reason = ${end.state === "given_up" ? end.reason : null},
      closed_at = clock_timestamp(),
      lease_until = '-infinity'
    where id = ${id}
      and state = 'open'
      and lease_until = ${leaseUntil}::timestamptz`;
}

/** The highest number of a range that is missing, or null if none is. */
export async function findHighestMissing(
  sql: Queryable,
  tableId: number,
  range: { from: bigint; to: bigint },
): Promise<bigint | null> {
  // one number at a time, from above: ids have an index, their numbers do not
  const [row] = await sql<{ number: bigint }[]>`
    select n.number
    from (select generate_series(${range.to}::bigint, ${range.from}::bigint, -1) as number offset 0) n
    left join lateral (
      select true as found
      from rounds
      where table_id = ${tableId}
        and round_id = n.number::text
      offset 0
    ) r on true
    where r.found is null
    limit 1`;
  return row?.number ?? null;
}

/** How many numbers of a range are missing. If it may be many, the stored ones are counted instead of looking up each. */
export async function countMissing(
  sql: Queryable,
  tableId: number,
  { from, to, isMany }: { from: bigint; to: bigint; isMany: boolean },
): Promise<bigint> {
  const stored = sql`
    select count(*)
    from rounds
    where table_id = ${tableId}
      -- read from the index alone, a second per million rounds
      and length(round_id) between length(${String(from)}::text) and length(${String(to)}::text)
      and case when round_id ~ '^[0-9]{1,18}$' then round_id::bigint end between ${from} and ${to}`;
  const absent = sql`
    select count(*)
    from generate_series(${from}::bigint, ${to}::bigint) as number
    where not exists (select from rounds where table_id = ${tableId} and round_id = number::text)`;
  const [row] = isMany
    ? await sql<{ missing: bigint }[]>`select ${to - from + 1n}::bigint - (${stored}) as missing`
    : await sql<{ missing: bigint }[]>`select (${absent}) as missing`;
  return row?.missing ?? 0n;
}

/** Sets how many rounds are missing in an open gap, unless some were found since it was leased: the next run counts again. */
export async function correctMissing(
  sql: Queryable,
  { id, filled }: Pick<Gap, "id" | "filled">,
  missing: bigint,
): Promise<void> {
  await sql`
    update gaps
    set missing = filled + ${missing}
    where id = ${id}
      and state = 'open'
      and filled = ${filled}`;
}

/** How far above a number a proven round is searched for: a second's work if there is none. */
const PROVEN_WITHIN = 500_000n;

/** The nearest proven round above a number, at most `upTo` if that is given; null if none is within 500,000. */
export async function findProvenAbove(
  sql: Queryable,
  tableId: number,
  number: bigint,
  upTo: bigint | null = null,
): Promise<{ number: bigint; hash: string } | null> {
  const end = number + PROVEN_WITHIN;
  const [row] = await sql<{ number: bigint; hash: string }[]>`
    select n.number, r.hash
    from (select generate_series(${number + 1n}::bigint, ${upTo !== null && upTo < end ? upTo : end}::bigint) as number offset 0) n
    cross join lateral (
      select encode(proof_hash, 'hex') as hash, verified
      from rounds
      where table_id = ${tableId}
        and round_id = n.number::text
      offset 0
    ) r
    where r.verified
    limit 1`;
  return row ?? null;
}

/** Counts rounds that were found for a gap of unknown size. */
export async function addFound(sql: Transaction, id: bigint, found: number): Promise<void> {
  await sql`
    update gaps
    set filled = filled + ${found}
    where id = ${id}`;
}

/**
 * The milliseconds until a house may be requested for the rounds of a gap, 0 for now; null while it is disabled or
 * paused, or once the gap is closed. It waits for the next UTC day once half of the bytes of its tables are spent.
 */
export async function findHouseWait(sql: Queryable, gap: { id: bigint; tableId: number }): Promise<number | null> {
  const [row] = await sql<{ open: boolean; wait_ms: number }[]>`
    select
      h.enabled
        and h.paused_at is null
        and h.base_url is not null
        and exists (select from gaps g where g.id = ${gap.id} and g.state = 'open') as open,
      greatest(
        0,
        extract(epoch from l.next_allowed_at - clock_timestamp()) * 1000,
        case when l.circuit = 'closed' then 0 else 5000 end,
        case
          when l.bytes_on = day.today and l.bytes_today >= ${HISTORY_BYTES_OF_TABLE} * greatest(1, polled.tables)
            then extract(epoch from (day.today + 1)::timestamp at time zone 'UTC' - clock_timestamp()) * 1000
        end
      )::float8 as wait_ms
    from tables t
    join houses h on h.id = t.house_id
    join poll_leases l on l.house_id = t.house_id and l.shard = t.shard
    cross join (select (clock_timestamp() at time zone 'UTC')::date as today) day
    cross join lateral (
      select count(*) as tables
      from tables
      where house_id = l.house_id
        and shard = l.shard
        and enabled
    ) polled
    where t.id = ${gap.tableId}`;
  return row?.open === true ? Math.ceil(row.wait_ms) : null;
}
