import type { Allowance } from "../callers/caller-store.ts";
import type { Draw } from "../limits/buckets.ts";
import { remainingOf, type Quota } from "../usage/quota.ts";

/** A caller's limits when a response is sent; the quota is null if it was not queried. */
export interface Limits {
  plan: Allowance;
  draw: Draw;
  quota: Quota | null;
}

/**
 * Returns the rate limit headers, names and values in turn: the pair of draft-ietf-httpapi-ratelimit-headers-10 for
 * programs, and two plain numbers for people. The protective ceiling of a plan without a daily number is not included.
 *
 * Daily and monthly numbers are sent only if they are exact for this response: with a 200, a 429 of the quota, and
 * `/usage`. A 304 is free and queries nothing, so it has only the burst.
 */
export function limitHeaders({ plan, draw, quota }: Limits): string[] {
  const pairs: string[] = [];
  // a full bucket holds more than a second's worth, but `r` promises only what passes within the second
  let state = `"burst";r=${Math.min(draw.left, plan.burstPerSecond)};t=${Math.max(1, Math.ceil(draw.waitMs / 1_000))}`;
  for (const { name, left, resetSeconds } of quota === null ? [] : remainingOf(quota)) {
    state += `, "${name}";r=${left};t=${resetSeconds}`;
    pairs.push(name === "day" ? "X-Quota-Day-Remaining" : "X-Quota-Month-Remaining", `${left}`);
  }
  pairs.push("RateLimit-Policy", policyOf(plan), "RateLimit", state);
  return pairs;
}

const policies = new WeakMap<Allowance, string>();

/** The limits of a plan, in one line. */
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
