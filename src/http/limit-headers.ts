import type { Allowance } from "../callers/caller-store.ts";
import type { Draw } from "../limits/buckets.ts";
import { remainingOf, type Quota } from "../usage/quota.ts";

/** What is known of a caller's limits when an answer goes out; the quota is null where it was not asked for. */
export interface Limits {
  plan: Allowance;
  draw: Draw;
  quota: Quota | null;
}

/**
 * The headers that tell callers how much they may still do, names and values in turn: the pair of
 * draft-ietf-httpapi-ratelimit-headers-10 for programs, and two plain numbers for people. What protects the service
 * without being promised, the ceiling of a plan that has no number a day, is in none of them.
 *
 * Numbers of the day and the month are only shown where they are known exactly as of this very answer: with a 200, with
 * a 429 of the quota and with `/usage`. A 304 costs nothing and asks nobody, so it says what is left of the burst.
 */
export function limitHeaders({ plan, draw, quota }: Limits): string[] {
  const pairs: string[] = [];
  // a full bucket holds more than a second's worth: that much will pass within the second in any case
  let state = `"burst";r=${Math.min(draw.left, plan.burstPerSecond)};t=${Math.max(1, Math.ceil(draw.waitMs / 1_000))}`;
  for (const { name, left, resetSeconds } of quota === null ? [] : remainingOf(quota)) {
    state += `, "${name}";r=${left};t=${resetSeconds}`;
    pairs.push(name === "day" ? "X-Quota-Day-Remaining" : "X-Quota-Month-Remaining", `${left}`);
  }
  pairs.push("RateLimit-Policy", policyOf(plan), "RateLimit", state);
  return pairs;
}

const policies = new WeakMap<Allowance, string>();

/** What a plan allows, in one line. */
function policyOf(plan: Allowance): string {
  const known = policies.get(plan);
  if (known !== undefined) return known;
  const { burstPerSecond, dayLimit, monthLimit } = plan;
  const quotas = remainingOf({ dayUsed: 0n, monthUsed: 0n, dayLimit, monthLimit, atMs: 0 });
  const policy = [
    `"burst";q=${burstPerSecond};w=1`,
    ...quotas.map(({ name, limit, windowSeconds }) => `"${name}";q=${limit};w=${windowSeconds}`),
  ].join(", ");
  policies.set(plan, policy);
  return policy;
}
