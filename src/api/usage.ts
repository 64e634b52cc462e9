import { z } from "zod";
import { startDeadline } from "../abort.ts";
import type { Reads } from "../db/reads.ts";
import type { Quota } from "../usage/quota.ts";
import { readUsage, type UsageFacts } from "../usage/store.ts";
import { ApiError } from "../http/errors.ts";
import type { Call } from "../http/call.ts";
import { readParams, wholeNumber } from "./params.ts";

const RETRY_AFTER_SECONDS = 5;
/** The parameters of this path. */
export const USAGE_PARAMS = z.strictObject({
  days: wholeNumber(31)
    .default(1)
    .meta({ description: "How many days to list, today first.", examples: [7] }),
});

/**
 * A read takes milliseconds. Four at a time leave most connections to others; a queue longer than 500 would take too
 * long.
 */
export const USAGE_READS = { atOnce: 4, waiting: 500 } as const;

/** The usage of a caller's account: free of charge, and available when the quota is used up. */
export const USAGE_PATH = "/api/v1/usage";

/**
 * Returns the use of the caller's account today and this month, by endpoint and by day, including every 200 sent
 * before. It is the only response that is read from the database instead of memory.
 * @param wait `gone` aborts when the client disconnects; the query is then cancelled, as it is after `usageMs`
 * @throws ApiError if a parameter is invalid, or the database does not respond in time
 * @throws ClientGoneError after `gone`
 */
export async function composeUsage(
  reads: Reads,
  { caller, plan }: Pick<Call, "caller" | "plan">,
  query: URLSearchParams,
  { gone, usageMs }: { gone: AbortSignal; usageMs: number },
): Promise<{ json: string; quota: Quota }> {
  const { days } = readParams(USAGE_PARAMS, query);
  let facts: UsageFacts;
  const deadline = startDeadline(gone, usageMs);
  try {
    facts = await reads(deadline.signal, (sql) => readUsage(sql, caller.accountId, days));
  } catch (cause) {
    gone.throwIfAborted();
    throw new ApiError("temporarily_unavailable", { cause, headers: { "Retry-After": `${RETRY_AFTER_SECONDS}` } });
  } finally {
    deadline.end();
  }
  const { dayLimit, monthLimit } = plan;
  const quota = { dayUsed: facts.dayUsed, monthUsed: facts.monthUsed, dayLimit, monthLimit, atMs: facts.readAtMs };
  const json = JSON.stringify({
    ok: true,
    plan: plan.name,
    key: { name: caller.keyName, last4: caller.last4 },
    day: { date: facts.date, ...left(facts.dayUsed, dayLimit), resets_at: facts.dayResetsAt },
    month: { month: facts.month, ...left(facts.monthUsed, monthLimit), resets_at: facts.monthResetsAt },
    burst: { per_second: plan.burstPerSecond, burst: plan.burst },
    endpoints: facts.endpoints.map(({ endpoint, requests }) => ({ endpoint, requests: Number(requests) })),
    days: facts.days.map(({ date, requests }) => ({ date, requests: Number(requests) })),
  });
  return { json, quota };
}

function left(used: bigint, limit: bigint | null) {
  const remaining = limit === null ? null : Number(used < limit ? limit - used : 0n);
  return { requests: Number(used), limit: limit === null ? null : Number(limit), remaining };
}
