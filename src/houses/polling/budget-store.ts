import type { Sql } from "../../db/client.ts";

/** The burst of a budget, so that a poll of several tables is not split. */
const BURST_SECONDS = 10;

/**
 * Takes one request from a house's budget of `perMinute`, by the database's clock and over all processes. Returns 0 if it
 * was taken, else the milliseconds to wait. In any minute at most `perMinute` and the burst of ten seconds, at least one,
 * are taken.
 *
 * Each request advances the row's time by its share of a minute; a request is allowed while that time is at most ten
 * seconds ahead (the generic cell rate algorithm, ITU-T I.371). A time that no request can have left, since the clock was
 * set back, is brought back to the latest possible one.
 */
export async function takeRequest(sql: Sql, house: string, perMinute: number): Promise<number> {
  const share = 60 / perMinute;
  const burst = Math.max(0, BURST_SECONDS - share);
  const taken = await sql`
    insert into request_budgets as b (house_id, spent_until)
    values (${house}, clock_timestamp() + ${share} * interval '1 second')
    on conflict (house_id) do update
    set spent_until = greatest(b.spent_until, clock_timestamp()) + ${share} * interval '1 second'
    where b.spent_until <= clock_timestamp() + ${burst} * interval '1 second'
    returning house_id`;
  if (taken.length > 0) return 0;
  const [row] = await sql<{ wait_ms: number }[]>`
    with brought_back as (
      update request_budgets
      set spent_until = clock_timestamp() + ${burst + share} * interval '1 second'
      where house_id = ${house}
        and spent_until > clock_timestamp() + ${burst + share} * interval '1 second'
      returning spent_until
    )
    select
      greatest(1, extract(epoch from spent_until - clock_timestamp() - ${burst} * interval '1 second') * 1000)::float8
        as wait_ms
    from (
      select coalesce((select spent_until from brought_back), spent_until) as spent_until
      from request_budgets
      where house_id = ${house}
    ) b`;
  return Math.ceil(row?.wait_ms ?? 1);
}
