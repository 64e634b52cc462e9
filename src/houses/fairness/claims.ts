import type { Chain } from "./chains.ts";
import { hundredthsOf, isOutcome } from "./outcome.ts";

/** A round as a house told it, to be proven; `number` is null where ids do not count up. */
export interface Claim {
  number: bigint | null;
  hash: string;
  hundredths: number;
}

/** A proven round and the chain it was proven in; its place in that chain is null where it is not known. */
export interface Point {
  number: bigint | null;
  hash: string;
  /** The id of its chain; null where it is not known. */
  of: string | null;
}

/**
 * Is a claim true? `point` is null where no era covers the round, so that nothing speaks for or against it. A refusal
 * says in plain words what does not fit.
 */
export type Verdict = { ok: true; point: Point | null } | Refusal;

/** What does not fit: a sentence, and its two sides. */
export interface Refusal {
  ok: false;
  /** `multiplier`: it is not the hash's. `link`: the hash leads to no proven round. `end`: nor to the published end. */
  what: "multiplier" | "link" | "end";
  reason: string;
  expected: string;
  found: string;
}

/** What a claim's multiplier says against it under each of these chains; null where it is that of its hash under one. */
export function multiplierRefusal(chains: readonly Chain[], { hash, hundredths }: Claim): Refusal | null {
  if (chains.some((chain) => isOutcome(chain, hash, hundredths))) return null;
  const expected = chains.map((chain) => multiplierText(hundredthsOf(chain, hash))).join(" or ");
  const found = multiplierText(hundredths);
  return {
    ok: false,
    what: "multiplier",
    reason: `the hash gives ${expected}, the house said ${found}`,
    expected,
    found,
  };
}

function multiplierText(hundredths: number): string {
  return `${(hundredths / 100).toFixed(2)}x`;
}
