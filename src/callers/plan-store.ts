import type { Decided } from "../audit/decision.ts";
import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { CALLERS_CHANNEL } from "./caller-store.ts";

/** A plan as it may be shown; null limits are none, null houses are all. */
export interface ListedPlan {
  name: string;
  houses: string[] | null;
  day_limit: bigint | null;
  month_limit: bigint | null;
  burst_per_second: number;
  burst: number;
  /** USD with two decimals or more, such as `29.00`. */
  price: string;
  days: number;
  /** Whether it may be bought now; those who have it keep it to its end either way. */
  on_sale: boolean;
}

/** A plan as its operator sees it. */
export interface PlanSettings extends ListedPlan {
  /** Calls a UTC day at which the service protects itself, if the plan has no daily limit; callers do not see it. */
  day_ceiling: bigint | null;
  /** Counts its changes. */
  revision: bigint;
}

/** All plans with the settings that callers do not see. */
export async function listPlanSettings(sql: Queryable): Promise<PlanSettings[]> {
  const plans = await listPlans(sql);
  const hidden = await sql<{ name: string; day_ceiling: bigint | null; revision: bigint }[]>`
    select name, day_ceiling, revision
    from plans`;
  return plans.map((plan) => {
    const found = hidden.find(({ name }) => name === plan.name);
    return { ...plan, day_ceiling: found?.day_ceiling ?? null, revision: found?.revision ?? 0n };
  });
}

/** All plans, in the order in which they are offered. */
export async function listPlans(sql: Queryable): Promise<ListedPlan[]> {
  return sql<ListedPlan[]>`
    select
      name,
      case
        when not all_houses then array(select house_id from plan_houses where plan = name order by house_id)
      end as houses,
      day_limit,
      month_limit,
      burst_per_second,
      burst,
      round(price, greatest(2, min_scale(price)))::text as price,
      days,
      on_sale
    from plans
    cross join lateral (select price_micros / 1000000.0 as price) as usd
    order by position`;
}

/** What of a plan is to change; what is left out stays. */
export interface PlanChanges {
  houses?: string[] | "all" | undefined;
  /** Calls a UTC day; null = no limit. */
  day?: number | null | undefined;
  /** Calls a UTC month; null = no limit. */
  month?: number | null | undefined;
  /** The hidden ceiling, calls a UTC day, which counts only without a daily limit; null = none. */
  ceiling?: number | null | undefined;
  /** Calls a second that are sustained. */
  rps?: number | undefined;
  /** Calls that may arrive together. */
  burst?: number | undefined;
  /** Micro-units (1e-6 of a USD). */
  priceMicros?: bigint | undefined;
  /** How long a purchase lasts. */
  days?: number | undefined;
  onSale?: boolean | undefined;
}

const MOST_CALLS = 1_000_000_000_000;
const MOST_PER_SECOND = 100_000;
const MOST_MICROS = 1_000_000_000_000n; // a million USD
const MOST_DAYS = 3_660;

/**
 * Changes a plan, for new and for current holders, from their next call on. All or nothing: an impossible value or an
 * unknown house changes nothing. Plans are named in any case. `before` is the state that this call
 * changed, also if two changes are concurrent.
 * @param seen the revision that the changes were made from; where it is another by now, nothing is changed
 */
export async function setPlan(
  sql: Sql,
  name: string,
  changes: PlanChanges,
  seen: bigint | null = null,
): Promise<Decided<{ before: PlanSettings; after: PlanSettings }>> {
  const problem = problemOf(changes);
  if (problem !== null) return { ok: false, problem };
  return sql.begin(async (transaction) => {
    await transaction`
      select
      from plans
      where lower(name) = lower(${name})
      for no key update`;
    // a second statement sees what the last holder of the lock committed
    const plans = await listPlanSettings(transaction);
    const plan = plans.find((known) => known.name.toLowerCase() === name.toLowerCase());
    if (plan === undefined) {
      const known = plans.map((one) => one.name).join(", ");
      return { ok: false, problem: `there is no plan ${JSON.stringify(name)}; there are ${known}` };
    }
    if (seen !== null && seen !== plan.revision) {
      return { ok: false, problem: `${plan.name} was changed meanwhile; look at it as it is now, and change that` };
    }
    const [rps, burst] = [changes.rps ?? plan.burst_per_second, changes.burst ?? plan.burst];
    if (burst < rps) {
      return { ok: false, problem: `a burst of ${burst} is below ${rps} calls a second; give --burst ${rps} or more` };
    }
    const unknown = await unknownHouses(transaction, changes.houses);
    if (unknown.length > 0) {
      return { ok: false, problem: `there is no house ${unknown.join(", ")}; \`roundhouse house list\` shows all` };
    }
    await savePlan(transaction, plan.name, { ...changes, rps, burst });
    await transaction`select pg_notify(${CALLERS_CHANNEL}, '')`;
    const changed = (await listPlanSettings(transaction)).find((known) => known.name === plan.name);
    if (changed === undefined) throw new Error(`the plan ${plan.name} was there and is gone`);
    const message = `${plan.name} is changed, for those who have it too, from their next call on`;
    return { ok: true, target: `plan ${plan.name}`, before: plan, after: changed, message };
  });
}

function problemOf({ houses, day, month, ceiling, rps, burst, priceMicros, days }: PlanChanges): string | null {
  return (
    whole("calls a day", day, MOST_CALLS) ??
    whole("calls a month", month, MOST_CALLS) ??
    whole("calls a day as the ceiling", ceiling, MOST_CALLS) ??
    whole("calls a second", rps, MOST_PER_SECOND) ??
    whole("calls in a burst", burst, MOST_PER_SECOND) ??
    whole("days", days, MOST_DAYS) ??
    (houses?.length === 0 ? "expected at least one house, or all" : null) ??
    (priceMicros !== undefined && !(priceMicros >= 0n && priceMicros <= MOST_MICROS)
      ? `expected a price from 0 to ${MOST_MICROS / 1_000_000n}`
      : null)
  );
}

function whole(what: string, value: number | null | undefined, most: number): string | null {
  if (value === undefined || value === null) return null;
  return Number.isInteger(value) && value >= 1 && value <= most
    ? null
    : `expected ${what} from 1 to ${most}, got ${value}`;
}

async function unknownHouses(sql: Transaction, houses: PlanChanges["houses"]): Promise<string[]> {
  if (houses === undefined || houses === "all") return [];
  const rows = await sql<{ id: string }[]>`
    select id
    from unnest(${houses}::text[]) as wanted (id)
    where id not in (select id from houses)`;
  return rows.map(({ id }) => id);
}

async function savePlan(sql: Transaction, name: string, changes: PlanChanges & { rps: number; burst: number }) {
  const { houses, day, month, ceiling, rps, burst, priceMicros = null, days, onSale } = changes;
  await sql`
    update plans
    set
      day_limit = case when ${day === undefined} then day_limit else ${day ?? null}::bigint end,
      month_limit = case when ${month === undefined} then month_limit else ${month ?? null}::bigint end,
      day_ceiling = case when ${ceiling === undefined} then day_ceiling else ${ceiling ?? null}::bigint end,
      burst_per_second = ${rps},
      burst = ${burst},
      price_micros = coalesce(${priceMicros}::bigint, price_micros),
      days = coalesce(${days ?? null}::integer, days),
      on_sale = coalesce(${onSale ?? null}::boolean, on_sale),
      all_houses = coalesce(${houses === undefined ? null : houses === "all"}::boolean, all_houses),
      updated_at = clock_timestamp()
    where name = ${name}`;
  if (houses === undefined) return;
  await sql`
    delete from plan_houses
    where plan = ${name}`;
  if (houses === "all") return;
  await sql`
    insert into plan_houses (plan, house_id)
    select distinct ${name}, house_id
    from unnest(${houses}::text[]) as wanted (house_id)`;
}
