import type { Sql } from "../../src/db/client.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { waitUntil } from "./wait-until.ts";

const QUEUE = "roll-up-usage";
const ALERT_WITHIN_MS = 60_000;
const DAYS = 4;

/**
 * Pauses the roll-up of usage, adds four days, and resumes it: an alert must be raised for each day, then each day must be
 * summed and closed. Returns the seconds until the alerts, and from the resumption until the sums.
 * @throws InvariantViolation if an alert, a sum or a closed day is missing
 */
export async function pauseRollUp(sql: Sql): Promise<{ raised: number; summed: number }> {
  const beganMs = Date.now();
  await sql`
    insert into queue_controls (queue, paused_by, reason)
    values (${QUEUE}, 'faults', 'nothing is summed for four days')`;
  const days = await addFourDays(sql);
  const countBehind = async () => {
    const [row] = await sql<{ n: number }[]>`
      select count(*)::integer as n
      from alerts
      where kind = 'usage_behind'
        and closed_at is null
        and subject = any(${days})`;
    return row?.n ?? 0;
  };
  await waitUntil(
    "four days without a roll-up raised no alert",
    ALERT_WITHIN_MS,
    async () => (await countBehind()) === DAYS,
  );
  const raised = (Date.now() - beganMs) / 1_000;
  await sql`delete from queue_controls where queue = ${QUEUE}`;
  const resumedMs = Date.now();
  await waitUntil("four days were not summed", ALERT_WITHIN_MS, async () => (await countBehind()) === 0);
  const [row] = await sql<{ closed: number }[]>`
    select count(*)::integer as closed
    from usage_days
    where is_closed
      and day::text = any(${days})`;
  if (row?.closed !== DAYS)
    throw new InvariantViolation(`of four days without a roll-up ${row?.closed ?? 0} were closed`);
  return { raised, summed: (Date.now() - resumedMs) / 1_000 };
}

/** Adds calls of one account, as the meter stores them, on the four days before the oldest that has calls. Returns the days. */
async function addFourDays(sql: Sql): Promise<string[]> {
  return sql.begin(async (tx) => {
    const [row] = await tx<{ oldest: number }[]>`
      select greatest(1, (now() at time zone 'UTC')::date - min(day)) + ${DAYS}::integer as oldest
      from usage_counts`;
    const oldest = row?.oldest ?? 1 + DAYS;
    await tx`select make_day_partitions((now() at time zone 'UTC')::date - ${oldest}::integer, ${DAYS}::integer)`;
    const days = await tx<{ day: string }[]>`
      with added as (
        insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
        select ((now() at time zone 'UTC')::date - ${oldest}::integer + n)::timestamp at time zone 'UTC' + interval '12 hours',
          k.id, k.account_id, 'rounds', nextval('usage_batches'), 1000
        from keys k
        join accounts a on a.id = k.account_id
        cross join generate_series(0, ${DAYS - 1}::integer) n
        where a.email = 'pro@example.com'
        returning account_id, (minute at time zone 'UTC')::date as day, n
      )
      insert into quotas (account_id, period, used)
      select account_id, to_char(day, 'YYYY-MM-DD'), n
      from added
      returning period as day`;
    return days.map(({ day }) => day);
  });
}
