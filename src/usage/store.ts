import type { Sql } from "../db/client.ts";

/** One call to be metered. */
export interface Call {
  keyId: bigint;
  endpoint: string;
}

/**
 * The meter's result for a call: `ok`, or the error code of the response. Counts are the account's after the call, with the
 * limits that were applied; a limit is null if the plan has none.
 */
export interface Verdict {
  outcome: string;
  dayUsed: bigint | null;
  monthUsed: bigint | null;
  dayLimit: bigint | null;
  monthLimit: bigint | null;
  /** Database time in milliseconds: it decides which day and month the call belongs to. */
  decidedAtMs: number;
}

/** Calls of one key and endpoint that come after each other in a batch. */
interface Run extends Call {
  size: number;
}

/** The database's result for a run: its first calls are admitted, and the others refused for one reason. */
interface RunVerdict extends Pick<Verdict, "dayLimit" | "monthLimit" | "decidedAtMs"> {
  admitted: number;
  refusal: string | null;
  dayBefore: bigint | null;
  monthBefore: bigint | null;
}

/**
 * Meters a batch of calls in one statement and one transaction, in the order given. When this resolves, what was
 * admitted is durable.
 *
 * What goes to the database are runs: fifty calls of one busy account are one row and not fifty, which takes 0.5 ms
 * there and not 1.0.
 * @param deadline by the database clock: a statement that starts later, for instance after an outage, counts nothing
 * @throws the driver's error if the database does not respond, and the database's own after the deadline.
 */
export async function consumeCalls(sql: Sql, calls: readonly Call[], deadline: Date | null = null): Promise<Verdict[]> {
  const runs = runsOf(calls);
  const verdicts = await sql<RunVerdict[]>`
    select
      admitted,
      refusal,
      day_before as "dayBefore",
      month_before as "monthBefore",
      day_allowed as "dayLimit",
      month_allowed as "monthLimit",
      extract(epoch from decided_at)::float8 * 1000 as "decidedAtMs"
    from consume_calls(
      ${runs.map(({ keyId }) => String(keyId))}::bigint[],
      ${runs.map(({ endpoint }) => endpoint)}::text[],
      ${runs.map(({ size }) => size)}::integer[],
      ${deadline}::timestamptz
    )
    order by ordinal`;
  return verdicts.flatMap((verdict, index) => verdictsOf(verdict, runs[index]?.size ?? 0));
}

function runsOf(calls: readonly Call[]): Run[] {
  const runs: Run[] = [];
  for (const { keyId, endpoint } of calls) {
    const last = runs.at(-1);
    if (last?.keyId === keyId && last.endpoint === endpoint) last.size++;
    else runs.push({ keyId, endpoint, size: 1 });
  }
  return runs;
}

function verdictsOf({ admitted, refusal, dayBefore, monthBefore, ...same }: RunVerdict, size: number): Verdict[] {
  if (admitted < size && refusal === null) throw new Error("expected the meter to say why it refused a call");
  return Array.from({ length: size }, (_, place) => {
    const counted = BigInt(Math.min(place + 1, admitted));
    return {
      ...same,
      outcome: place < admitted || refusal === null ? "ok" : refusal,
      dayUsed: dayBefore === null ? null : dayBefore + counted,
      monthUsed: monthBefore === null ? null : monthBefore + counted,
    };
  });
}

/** What an account has used: exact, since quotas and counts are written in the transaction of the meter's own statement. */
export interface UsageFacts {
  /** Database time in milliseconds, as of which all of this is. */
  readAtMs: number;
  date: string;
  month: string;
  dayUsed: bigint;
  monthUsed: bigint;
  dayResetsAt: string;
  monthResetsAt: string;
  endpoints: { endpoint: string; requests: bigint }[];
  days: { date: string; requests: bigint }[];
}

/**
 * Reads what an account has used today, this month, by endpoint today, and on each of the last `days` days: a few index
 * look-ups, however many calls there were.
 */
export async function readUsage(sql: Sql, accountId: bigint, days: number): Promise<UsageFacts> {
  const [row] = await sql<
    (Omit<UsageFacts, "endpoints" | "days"> & {
      endpoints: { endpoint: string; requests: string }[];
      days: { date: string; requests: string }[];
    })[]
  >`
    with clock as (
      select
        now() as at,
        to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as day,
        to_char(now() at time zone 'UTC', 'YYYY-MM') as month
    )
    select
      extract(epoch from clock.at)::float8 * 1000 as "readAtMs",
      clock.day as date,
      clock.month,
      coalesce((select used from quotas where account_id = ${accountId} and period = clock.day), 0) as "dayUsed",
      coalesce((select used from quotas where account_id = ${accountId} and period = clock.month), 0) as "monthUsed",
      utc_text(date_trunc('day', clock.at, 'UTC') + interval '1 day') as "dayResetsAt",
      utc_text(date_trunc('month', clock.at, 'UTC') + interval '1 month') as "monthResetsAt",
      coalesce((
        select jsonb_agg(jsonb_build_object('endpoint', endpoint, 'requests', n::text) order by endpoint)
        from (
          select endpoint, sum(n) as n
          from usage_counts
          where account_id = ${accountId} and day = (clock.at at time zone 'UTC')::date
          group by endpoint
        ) today
      ), '[]') as endpoints,
      (
        select jsonb_agg(
          jsonb_build_object(
            'date', d.day,
            'requests', coalesce((select used from quotas where account_id = ${accountId} and period = d.day), 0)::text
          )
          order by d.day desc
        )
        from (
          select to_char((clock.at at time zone 'UTC')::date - n, 'YYYY-MM-DD') as day
          from generate_series(0, ${days - 1}) n
        ) d
      ) as days
    from clock`;
  if (row === undefined) throw new Error("expected the usage of an account, got nothing");
  return {
    ...row,
    endpoints: row.endpoints.map(({ endpoint, requests }) => ({ endpoint, requests: BigInt(requests) })),
    days: row.days.map(({ date, requests }) => ({ date, requests: BigInt(requests) })),
  };
}
