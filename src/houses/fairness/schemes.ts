import type { OutcomeRule } from "./outcome.ts";
import type { ChainStep } from "./walk.ts";

/** A scheme without its public values: how a hash gives a multiplier, and the hash of the round before. */
export interface Scheme {
  rule: OutcomeRule;
  /** For rule A, else null. */
  divisor: number | null;
  step: ChainStep;
}

/**
 * The schemes of houses by their name in `houses.yaml`; `custom` takes rule, divisor and step from the file. Roobet's divisor
 * is 25: recorded rounds contradict the often copied 33 and 20.
 */
export const schemes = {
  bustabit: { rule: "B", divisor: null, step: "sha256_hex" },
  "bustabit-raw": { rule: "B", divisor: null, step: "sha256_raw" },
  "bustabit-v1": { rule: "A", divisor: 101, step: "sha256_hex" },
  ethercrash: { rule: "A", divisor: 101, step: "sha256_hex" },
  blaze: { rule: "A", divisor: 15, step: "sha256_hex" },
  roobet: { rule: "A", divisor: 25, step: "sha256_hex" },
  stake: { rule: "S", divisor: null, step: "sha256_hex" },
  bcgame: { rule: "B9", divisor: null, step: "sha256_hex" },
} as const satisfies Record<string, Scheme>;

/** The name of a house's scheme. */
export type SchemeName = keyof typeof schemes;
