import { createHash } from "node:crypto";
import { networkOf } from "../limits/address.ts";
import type { Buckets } from "../limits/buckets.ts";

/**
 * How often a password may be tried. By address and account: a person who mistypes has enough, a machine has one a
 * minute. By address alone: not every account of a list. By account alone, wide enough that others can hardly lock its
 * holder out: many machines together do not guess it either.
 */
const BY_BOTH = { points: 5, seconds: 300 };
const BY_ADDRESS = { points: 30, seconds: 600 };
const BY_ACCOUNT = { points: 60, seconds: 3_600 };

/**
 * Takes one try; how long to wait, in whole seconds, where there is none left, else 0. One that an address has not left
 * takes nothing from the account: else a single machine would lock its holder out.
 */
export async function takeTry(buckets: Buckets, surface: string, address: string, who: string): Promise<number> {
  const network = networkOf(address);
  const account = createHash("sha256").update(who.trim().toLowerCase()).digest("base64url").slice(0, 22);
  for (const [name, size] of [
    [`${network} ${account}`, BY_BOTH],
    [network, BY_ADDRESS],
    [account, BY_ACCOUNT],
  ] as const) {
    const { isGranted, waitMs } = await buckets.draw(`${surface}-try ${name}`, size);
    if (!isGranted) return Math.max(1, Math.ceil(waitMs / 1_000));
  }
  return 0;
}

/** What to say where there are no tries left. */
export function tooMany(waitSeconds: number): string {
  return `too many tries; wait ${waitSeconds} s and try again`;
}
