import { hundredthsOf } from "./outcome.ts";

/**
 * The multiplier of a bustabit game, computed from its hash, in integer hundredths (187 is 1.87); at least 100. The rule
 * of the operator's own verifier (bustabit/verifier), see {@link hundredthsOf}.
 * @throws RangeError for anything that is not a hash.
 */
export function crashHundredths(hash: string, salt: string): number {
  return hundredthsOf({ rule: "B", divisor: null, salt }, hash);
}
