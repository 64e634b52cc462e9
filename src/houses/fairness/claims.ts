import type { Chain } from "./chains.ts";
import { hundredthsOf, isOutcome } from "./outcome.ts";

/** A received round that is to be proven; `number` is null if ids are not consecutive. */
export interface Claim {
  number: bigint | null;
  hash: string;
  hundredths: number;
}

/** A proven round and its chain; its position in that chain is null if unknown. */
export interface Point {
  number: bigint | null;
  hash: string;
  /** The id of its chain; null if unknown. */
  of: string | null;
}

/**
 * The verdict on a claim. `point` is null if no era covers the round, so that it can be neither proven nor refused. A refusal
 * states the mismatch.
 */
export type Verdict = { ok: true; point: Point | null } | Refusal;

/** A mismatch: a sentence, the expected and the found value. */
export interface Refusal {
  ok: false;
  /** `multiplier`: it is not the hash's. `link`: the hash leads to no proven round. `end`: nor to the published end. */
  what: "multiplier" | "link" | "end";
  reason: string;
  expected: string;
  found: string;
}

/** The mismatch of a claim's multiplier with its hash under every one of these chains; null if it matches under one. */
export function multiplierRefusal(chains: readonly Chain[], { hash, hundredths }: Claim): Refusal | null {
  if (chains.some((chain) => isOutcome(chain, hash, hundredths))) return null;
  const expected = chains.map((chain) => multiplierText(hundredthsOf(chain, hash))).join(" or ");
  const found = multiplierText(hundredths);
  return {
    ok: false,
    what: "multiplier",
    reason: `the hash gives ${expected}, the house sent ${found}`,
    expected,
    found,
  };
}

function multiplierText(hundredths: number): string {
  return `${(hundredths / 100).toFixed(2)}x`;
}
