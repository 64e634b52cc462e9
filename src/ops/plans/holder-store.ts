import type { Queryable } from "../../db/client.ts";

/** How many accounts have a plan now, and how many will have it later and do not have it now. */
export interface Holders {
  now: number;
  later: number;
}

/** How many have each plan, by its name. */
export async function countHolders(sql: Queryable): Promise<Map<string, Holders>> {
  const rows = await sql<(Holders & { plan: string })[]>`
    select
      plan,
      count(*) filter (where is_now)::integer as now,
      count(*) filter (where not is_now)::integer as later
    from (
      select plan, account_id, bool_or(starts_at <= now()) as is_now
      from entitlements
      where ends_at is null
        or ends_at > now()
      group by plan, account_id
    ) held
    group by plan`;
  return new Map(rows.map(({ plan, now, later }) => [plan, { now, later }]));
}

/** The holders of a plan, now or later. */
export interface Holder {
  id: bigint;
  email: string;
  isNow: boolean;
  endsAt: string | null;
  /** Calls of this UTC day, and of this UTC month. */
  dayUsed: bigint;
  monthUsed: bigint;
}

/** Those who have a plan now or later, those with the most calls today first. */
export async function listHolders(sql: Queryable, plan: string, limit: number): Promise<Holder[]> {
  return sql<Holder[]>`
    ${held(sql, plan)}
    select id, email, is_now as "isNow", utc_text(ends_at) as "endsAt", day_used as "dayUsed", month_used as "monthUsed"
    from held
    order by is_now desc, day_used desc, id
    limit ${limit}`;
}

/** Of those who have a plan now, how many have used more already than other limits would allow; null = no limit. */
export async function countBeyond(
  sql: Queryable,
  plan: string,
  { day, month }: { day: number | null; month: number | null },
): Promise<{ day: number; month: number }> {
  const [row] = await sql<{ day: number; month: number }[]>`
    ${held(sql, plan)}
    select
      count(*) filter (where day_used >= ${day}::bigint)::integer as day,
      count(*) filter (where month_used >= ${month}::bigint)::integer as month
    from held
    where is_now`;
  return row ?? { day: 0, month: 0 };
}

function held(sql: Queryable, plan: string) {
  return sql`
    with mine as (
      select
        account_id,
        bool_or(starts_at <= now()) as is_now,
        case when bool_and(ends_at is not null) then max(ends_at) end as ends_at
      from entitlements
      where plan = ${plan}
        and (ends_at is null or ends_at > now())
      group by account_id
    ),
    held as (
      select
        a.id, a.email, mine.is_now, mine.ends_at, coalesce(d.used, 0) as day_used, coalesce(m.used, 0) as month_used
      from mine
      join accounts a on a.id = mine.account_id
      left join quotas d on d.account_id = a.id and d.period = to_char(now() at time zone 'UTC', 'YYYY-MM-DD')
      left join quotas m on m.account_id = a.id and m.period = to_char(now() at time zone 'UTC', 'YYYY-MM')
    )`;
}
