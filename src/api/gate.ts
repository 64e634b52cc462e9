import type { IncomingMessage } from "node:http";
import type { Allowance, Caller } from "../callers/caller-store.ts";
import { checkKey } from "../callers/key.ts";
import type { Buckets, Draw } from "../limits/buckets.ts";
import { countBadKeys, type BadKeys } from "./bad-keys.ts";
import { ApiError } from "./errors.ts";
import type { KnownCallers } from "./known-callers.ts";
import type { Reply } from "./request.ts";

/** A request that may be looked at: whose it is, by which plan, and what is left of its burst. */
export interface Passed {
  caller: Caller;
  plan: Allowance;
  draw: Draw;
  /** When it came, by `performance.now()`. */
  begunAt: number;
}

/** What a gate is made of. */
interface GateParts {
  callers: KnownCallers;
  buckets: Buckets;
  addressOf: (request: IncomingMessage) => string | undefined;
}

/** Lets a request through, or refuses it. */
export type Gate = (request: IncomingMessage, response: Reply) => Promise<Passed>;

/**
 * What comes before a request is read: the key by its form, the key by what is known of it, the account, the plan, and
 * how fast calls come. The burst is the account's, over all of its keys and all of our processes; a call that is let
 * through has spent of it whatever becomes of it, and none of its quota.
 *
 * The gate throws ApiError with a 401, 402, 403 or 429, or a 503 where only the database could tell and it does not
 * answer.
 * @param parts.addressOf tells where a request comes from; asked only where that matters
 */
export function openGate({ callers, buckets, addressOf }: GateParts): Gate {
  const badKeys = countBadKeys(buckets);
  return async (request, response) => {
    const begunAt = performance.now();
    const caller = callers.known(request) ?? (await authenticate(request, { callers, badKeys, addressOf }));
    response.locals.caller = caller;
    const plan = requireStanding(caller);
    const draw = await buckets.draw(`burst:${caller.accountId}`, {
      points: plan.burst,
      seconds: plan.burst / plan.burstPerSecond,
    });
    response.locals.limits = { plan, draw, quota: null };
    if (!draw.isGranted) {
      throw new ApiError("rate_limited", {
        headers: { "Retry-After": `${Math.max(1, Math.ceil(draw.waitMs / 1_000))}` },
      });
    }
    return { caller, plan, draw, begunAt };
  };
}

/** Node joins several headers of one name with a comma, which no key has. */
async function authenticate(
  request: IncomingMessage,
  { callers, badKeys, addressOf }: Omit<GateParts, "buckets"> & { badKeys: BadKeys },
): Promise<Caller> {
  const { "x-api-key": header } = request.headers;
  if (header === undefined || header === "") throw new ApiError("missing_api_key");
  if (typeof header !== "string" || !checkKey(header)) {
    await badKeys.malformed(addressOf(request));
    throw new ApiError("invalid_api_key");
  }
  const caller = await callers.of(header, () => badKeys.beforeLookup(addressOf(request)), request.socket);
  if (caller !== null) return caller;
  await badKeys.unknown(addressOf(request));
  throw new ApiError("invalid_api_key");
}

function requireStanding({ standing, plan }: Caller): Allowance {
  if (standing !== "good") throw new ApiError(standing);
  if (plan === null) throw new Error("expected a caller of good standing to have a plan");
  return plan;
}
