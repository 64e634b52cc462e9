import type { Buckets, Draw, Size } from "../limits/buckets.ts";
import { networkOf } from "../limits/address.ts";
import { ApiError } from "../http/errors.ts";

/** With Redis 20 immediately, then one per 30 s; without it 20 per 10 minutes. More is guessing, or a program without a maintainer. */
const BAD_KEYS: Size = { points: 20, seconds: 600 };
/** Every call with a refused key is looked up, so that a purchase holds with the next call. */
const REFUSED_CALLS: Size = { points: 20, seconds: 20 };

/**
 * Limits invalid keys per client address. Keys with a wrong form or checksum cost nothing and are counted separately,
 * so that a corrected typing error works immediately; well-formed unknown keys cost a lookup, and these are limited.
 * A known key that is refused has a limit of its own, so that no caller is locked out by others.
 */
export interface BadKeys {
  /** Counts a malformed key. @throws ApiError `rate_limited` if there were too many. */
  malformed(address: string | undefined): Promise<void>;
  /** Counts a well-formed key that does not exist. @throws ApiError `rate_limited` if there were too many. */
  unknown(address: string | undefined): Promise<void>;
  /**
   * Counts a call with a known key whose previous call was refused: no plan, suspended, revoked or expired. @throws
   * ApiError `rate_limited` if there were too many.
   */
  refused(keyId: bigint): Promise<void>;
  /** Call before looking up a key. @throws ApiError `rate_limited` if too many were unknown. */
  beforeLookup(address: string | undefined): Promise<void>;
}

/** Counts invalid keys in these buckets. */
export function countBadKeys(buckets: Pick<Buckets, "draw" | "look">): BadKeys {
  const nameOf = (kind: string, address = "unknown") => `bad-key:${kind}:${networkOf(address)}`;
  return {
    malformed: async (address) => requireGranted(await buckets.draw(nameOf("malformed", address), BAD_KEYS), WRONG),
    unknown: async (address) => requireGranted(await buckets.draw(nameOf("unknown", address), BAD_KEYS), UNKNOWN),
    refused: async (id) => requireGranted(await buckets.draw(`refused:${id}`, REFUSED_CALLS), REFUSED),
    beforeLookup: async (address) => requireGranted(await buckets.look(nameOf("unknown", address), BAD_KEYS), UNKNOWN),
  };
}

const WRONG = `${BAD_KEYS.points} wrong keys came from this address within minutes; check the key, and try again after the seconds in Retry-After`;
const UNKNOWN = `${BAD_KEYS.points} unknown keys came from this address within minutes, so a key that was not used here recently is refused too; check the key, and try again after the seconds in Retry-After`;
const REFUSED = `${REFUSED_CALLS.points} calls with this key were refused within seconds; check the key and the plan, and try again after the seconds in Retry-After`;

function requireGranted({ isGranted, waitMs }: Draw, message: string): void {
  if (isGranted) return;
  throw new ApiError("rate_limited", {
    message,
    headers: { "Retry-After": `${Math.max(1, Math.ceil(waitMs / 1_000))}` },
  });
}
