import type { Request } from "express";
import { checkKey } from "../callers/key.ts";
import type { Allowance, Caller } from "../callers/caller-store.ts";
import type { Buckets } from "../limits/buckets.ts";
import { countBadKeys, type BadKeys } from "./bad-keys.ts";
import type { Call, CallHandler } from "../http/call.ts";
import { ApiError } from "../http/errors.ts";
import type { KnownCallers } from "./known-callers.ts";

/**
 * The middleware of every path that needs a key: 401 for the key, 402 and 403 for plan and account, then 429 for the
 * rate. A call that passes has used one point of its account's burst and none of its quota.
 */
export function requireCaller(parts: { callers: KnownCallers; buckets: Buckets }): CallHandler[] {
  return [authenticate(parts), limitRate(parts.buckets)];
}

/**
 * Finds the caller of X-Api-Key, and the plan. @throws ApiError 401, 402, 403, 429 for too many refused calls, or 503.
 */
function authenticate({ callers, buckets }: { callers: KnownCallers; buckets: Buckets }): CallHandler {
  const badKeys = countBadKeys(buckets);
  return async (request, response, next) => {
    const caller = callers.known(request) ?? (await findCaller(request, response.locals, callers, badKeys));
    response.locals.caller = caller;
    response.locals.plan = planOf(caller);
    next();
  };
}

function planOf({ standing, plan }: Caller): Allowance {
  if (standing !== "good") throw new ApiError(standing);
  if (plan === null) throw new Error("expected a caller of good standing to have a plan");
  return plan;
}

/** Node joins repeated headers with a comma, which no key contains. */
async function findCaller(request: Request, call: Call, callers: KnownCallers, badKeys: BadKeys): Promise<Caller> {
  const { "x-api-key": header } = request.headers;
  if (header === undefined || header === "") throw new ApiError("missing_api_key");
  if (typeof header !== "string" || !checkKey(header)) {
    await badKeys.malformed(request.ip);
    throw new ApiError("invalid_api_key");
  }
  const limitLookup = (refused: Caller | null) => {
    if (refused === null) return badKeys.beforeLookup(request.ip);
    call.caller = refused; // a 429 is listed on the pages of the account
    return badKeys.refused(refused.keyId);
  };
  const caller = await callers.of(header, limitLookup, request.socket);
  if (caller !== null) return caller;
  await badKeys.unknown(request.ip);
  throw new ApiError("invalid_api_key");
}

/** The burst is shared by the account's keys and by our processes. @throws ApiError 429. */
function limitRate(buckets: Buckets): CallHandler {
  return async (_, response, next) => {
    const call = response.locals;
    const { burst, burstPerSecond } = call.plan;
    const size = { points: burst, seconds: burst / burstPerSecond };
    const draw = await buckets.draw(`burst:${call.caller.accountId}`, size);
    call.limits = { plan: call.plan, draw, quota: null };
    if (!draw.isGranted) {
      const seconds = Math.max(1, Math.ceil(draw.waitMs / 1_000));
      throw new ApiError("rate_limited", { headers: { "Retry-After": `${seconds}` } });
    }
    next();
  };
}
