import { z } from "zod";
import type { Caller } from "../callers/caller-store.ts";
import type { Sql } from "../db/client.ts";
import { readUsage, type UsageFacts } from "../usage/store.ts";
import { ApiError } from "./errors.ts";
import { requireStanding } from "./operation.ts";
import { readParams, wholeNumber } from "./params.ts";
import { within } from "./within.ts";

const PATIENCE_MS = 800;
const RETRY_AFTER_SECONDS = 5;
const params = z.strictObject({ days: wholeNumber(1, 31, 1) });

/** Where callers see what they have used: free of charge, and answered when the quota is gone. */
export const USAGE_PATH = "/api/v1/usage";

/**
 * What the caller's account has used today and this month, by endpoint and by day: every 200 answered before this is in.
 * Read from the meter itself, the one answer that is not made from memory.
 * @throws ApiError where the key or the parameters are not good, or the database does not answer.
 */
export async function answerUsage(sql: Sql, caller: Caller, query: URLSearchParams): Promise<string> {
  const plan = requireStanding(caller);
  const { days } = readParams(params, query);
  let facts: UsageFacts;
  try {
    facts = await within(PATIENCE_MS, "PostgreSQL", readUsage(sql, caller.accountId, days));
  } catch (cause) {
    throw new ApiError("temporarily_unavailable", { cause, headers: { "Retry-After": `${RETRY_AFTER_SECONDS}` } });
  }
  return JSON.stringify({
    ok: true,
    plan: plan.name,
    key: { name: caller.keyName, last4: caller.last4 },
    day: { date: facts.date, ...left(facts.dayUsed, plan.dayLimit), resets_at: facts.dayResetsAt },
    month: { month: facts.month, ...left(facts.monthUsed, plan.monthLimit), resets_at: facts.monthResetsAt },
    burst: { per_second: plan.burstPerSecond, burst: plan.burst },
    endpoints: facts.endpoints.map(({ endpoint, requests }) => ({ endpoint, requests: Number(requests) })),
    days: facts.days.map(({ date, requests }) => ({ date, requests: Number(requests) })),
  });
}

function left(used: bigint, limit: bigint | null) {
  const remaining = limit === null ? null : Number(used < limit ? limit - used : 0n);
  return { requests: Number(used), limit: limit === null ? null : Number(limit), remaining };
}
