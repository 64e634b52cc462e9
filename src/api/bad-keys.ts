import type { Buckets, Draw, Size } from "../limits/buckets.ts";
import { networkOf } from "../limits/address.ts";
import { ApiError } from "../http/errors.ts";

/** 20 immediately, then one per 30 s: more is guessing, or a program without a maintainer. */
const BAD_KEYS: Size = { points: 20, seconds: 600 };

/**
 * Limits invalid keys per client address. Keys with a wrong form or checksum cost nothing and are counted separately,
 * so that a corrected typing error works immediately; well-formed unknown keys cost a lookup, and these are limited.
 * Known keys are never refused, so that no caller is locked out by others at the same address.
 */
export interface BadKeys {
  /** Counts a malformed key. @throws ApiError `rate_limited` if there were too many. */
  malformed(address: string | undefined): Promise<void>;
  /** Counts a well-formed key that does not exist. @throws ApiError `rate_limited` if there were too many. */
  unknown(address: string | undefined): Promise<void>;
  /** Call before looking up a key. @throws ApiError `rate_limited` if too many were unknown. */
  beforeLookup(address: string | undefined): Promise<void>;
}

/** Counts invalid keys in these buckets. */
export function countBadKeys(buckets: Pick<Buckets, "draw" | "look">): BadKeys {
  const nameOf = (kind: string, address = "unknown") => `bad-key:${kind}:${networkOf(address)}`;
  return {
    malformed: async (address) => requireGranted(await buckets.draw(nameOf("malformed", address), BAD_KEYS)),
    unknown: async (address) => requireGranted(await buckets.draw(nameOf("unknown", address), BAD_KEYS)),
    beforeLookup: async (address) => requireGranted(await buckets.look(nameOf("unknown", address), BAD_KEYS)),
  };
}

function requireGranted({ isGranted, waitMs }: Draw): void {
  if (isGranted) return;
  throw new ApiError("rate_limited", {
    message: `${BAD_KEYS.points} wrong keys came from this address within minutes; check the key, and try again after the seconds in Retry-After`,
    headers: { "Retry-After": `${Math.max(1, Math.ceil(waitMs / 1_000))}` },
  });
}
