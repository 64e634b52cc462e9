import type { Buckets, Draw, Size } from "../limits/buckets.ts";
import { networkOf } from "../limits/address.ts";
import { ApiError } from "../http/errors.ts";

/** 20 at once, then one each 30 s: whoever needs more is guessing, or has a program that nobody looks after. */
const BAD_KEYS: Size = { points: 20, seconds: 600 };

/**
 * Bad keys by the address they came from. Two kinds are counted apart: keys whose form or checksum is wrong cost us
 * nothing, and whoever had a typing error must get in as soon as it is mended; keys that look right have to be looked
 * up, and it is these look-ups that are bounded. Keys that we know go on whatever else comes from their address, so
 * that nobody is locked out by a neighbor.
 */
export interface BadKeys {
  /** Notes a key that cannot be one of ours. @throws ApiError `rate_limited` where there were too many. */
  malformed(address: string | undefined): Promise<void>;
  /** Notes a key that looks right and was never made. @throws ApiError `rate_limited` where there were too many. */
  unknown(address: string | undefined): Promise<void>;
  /** Before a key is looked up. @throws ApiError `rate_limited` where too many were unknown. */
  beforeLookup(address: string | undefined): Promise<void>;
}

/** Counts bad keys in these buckets. */
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
