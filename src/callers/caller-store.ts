import { timingSafeEqual } from "node:crypto";
import type { Queryable } from "../db/client.ts";
import { currentPlan } from "./current-plan-store.ts";

/** The channel on which every API process hears that accounts, keys or plans changed. */
export const CALLERS_CHANNEL = "roundhouse_callers";

/** What a plan allows; null limits are none. */
export interface Allowance {
  name: string;
  dayLimit: bigint | null;
  monthLimit: bigint | null;
  dayCeiling: bigint | null;
  burstPerSecond: number;
  burst: number;
  /** The houses whose tables it includes; null = all of them. */
  houses: ReadonlySet<string> | null;
  /** The calls of the account when it was looked up. */
  used: Used;
}

/** Calls that an account has used in the UTC day and month of a moment of the database clock. */
export interface Used {
  day: bigint;
  month: bigint;
  atMs: number;
}

/** The account of a key: whether it may call, and what it may see. */
export interface Caller {
  keyId: bigint;
  keyName: string;
  last4: string;
  accountId: bigint;
  /** `good`, or the error code of the first thing that is wrong: the key, then the account, then the plan. */
  standing:
    | "good"
    | "revoked_api_key"
    | "expired_api_key"
    | "account_suspended"
    | "email_not_verified"
    | "plan_expired"
    | "no_active_plan";
  /** The plan that holds now; null only if the standing is that there is none. */
  plan: Allowance | null;
  /** In how many milliseconds the plan or the key ends, whichever comes first; null if neither has an end. */
  endsInMs: number | null;
}

interface CallerRow extends Omit<Caller, "plan">, Omit<Allowance, "name" | "houses" | "used"> {
  sha256: Buffer;
  planName: string | null;
  houses: string[] | null;
  dayUsed: bigint;
  monthUsed: bigint;
  atMs: number;
}

/**
 * Finds the holder of the key with this SHA-256, with times of the database clock; null if there is none. After the index
 * lookup the hashes are compared in constant time.
 */
export async function findCaller(sql: Queryable, sha256: Uint8Array): Promise<Caller | null> {
  const [row] = await sql<CallerRow[]>`
    select
      k.id as "keyId",
      k.name as "keyName",
      k.last4,
      k.sha256,
      k.account_id as "accountId",
      case
        when k.revoked_at <= now() then 'revoked_api_key'
        when k.expires_at <= now() then 'expired_api_key'
        when a.suspended_at is not null then 'account_suspended'
        when a.verified_at is null then 'email_not_verified'
        when p.name is not null then 'good'
        when exists (select from entitlements where account_id = a.id and ends_at <= now()) then 'plan_expired'
        else 'no_active_plan'
      end as standing,
      p.name as "planName",
      p.day_limit as "dayLimit",
      p.month_limit as "monthLimit",
      p.day_ceiling as "dayCeiling",
      p.burst_per_second as "burstPerSecond",
      p.burst,
      case when not p.all_houses then array(select house_id from plan_houses where plan = p.name) end as houses,
      (extract(epoch from least(current.ends_at, k.expires_at) - now()) * 1000)::float8 as "endsInMs",
      coalesce(d.used, 0) as "dayUsed",
      coalesce(m.used, 0) as "monthUsed",
      extract(epoch from now())::float8 * 1000 as "atMs"
    from keys k
    join accounts a on a.id = k.account_id
    ${currentPlan(sql)}
    left join plans p on p.name = current.plan
    left join quotas d on d.account_id = a.id and d.period = to_char(now() at time zone 'UTC', 'YYYY-MM-DD')
    left join quotas m on m.account_id = a.id and m.period = to_char(now() at time zone 'UTC', 'YYYY-MM')
    where k.sha256 = ${sha256}`;
  if (row === undefined || !timingSafeEqual(row.sha256, sha256)) return null;
  const { keyId, keyName, last4, accountId, standing, planName, houses, endsInMs, sha256: _, ...others } = row;
  const { dayUsed, monthUsed, atMs, ...limits } = others;
  const used = { day: dayUsed, month: monthUsed, atMs };
  const plan = planName === null ? null : { name: planName, ...limits, houses: houses && new Set(houses), used };
  return { keyId, keyName, last4, accountId, standing, plan, endsInMs };
}
