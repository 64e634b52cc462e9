import { chainsOf, type Chain } from "../../../src/houses/fairness/chains.ts";
import type { Claim, Point } from "../../../src/houses/fairness/claims.ts";
import { hundredthsOf } from "../../../src/houses/fairness/outcome.ts";
import { schemes, type SchemeName } from "../../../src/houses/fairness/schemes.ts";
import { fairnessSettings } from "../../../src/houses/fairness/settings.ts";
import { walkBack } from "../../../src/houses/fairness/walk.ts";

/** A chain of our own: round 1 is the first after its published end. */
export interface MadeChain {
  settings: Record<string, unknown>;
  chain: Chain;
  hash(round: number): string;
  hundredths(round: number): number;
  /** A round as a house with opaque ids lists it. */
  claim(round: number): Claim;
  claims(newest: number, oldest: number): Claim[];
  point(round: number): Point;
}

/** Makes a chain of so many rounds; `after` is the number of its terminating round. */
export function madeChain(
  seed: string,
  salt: string,
  scheme: SchemeName,
  { rounds = 5_000, after = 0 } = {},
): MadeChain {
  const hashes = [seed.repeat(32)];
  walkBack(seed.repeat(32), rounds, (hash) => hashes.push(hash), schemes[scheme].step);
  hashes.reverse();
  const settings = { scheme, salt, terminating_hash: hashes[0], terminating_id: after, length: rounds };
  const [chain] = chainsOf(fairnessSettings.parse(settings));
  if (chain === undefined) throw new Error("expected a chain");
  const hash = (round: number) => hashes[round - after] ?? "";
  const hundredths = (round: number) => hundredthsOf(chain, hash(round));
  const claim = (round: number) => ({ number: null, hash: hash(round), hundredths: hundredths(round) });
  return {
    settings,
    chain,
    hash,
    hundredths,
    claim,
    claims: (newest, oldest) => Array.from({ length: newest - oldest + 1 }, (_, n) => claim(newest - n)),
    point: (round) => ({ number: BigInt(round), hash: hash(round), of: chain.id }),
  };
}
