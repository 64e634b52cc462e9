import type { Transaction } from "../db/client.ts";
import { chainAt, chainsOf, type Chain } from "../houses/fairness/chains.ts";
import { multiplierRefusal } from "../houses/fairness/claims.ts";
import { hundredthsOf } from "../houses/fairness/outcome.ts";
import { previousHash, walkBackSliced } from "../houses/fairness/walk.ts";
import type { Wrong } from "./check-round.ts";
import { findUnprovenEnds, listDecided, readDownwards, type NumberedRound } from "./verify-unproven-store.ts";
import type { VerifiedTable } from "./verify-store.ts";

/** A round that contradicts the proven rounds after it. */
export type WrongUnproven = Wrong & { kind: "round"; id: string };

/**
 * Numbers from a stored round to the one before it. A walk of 10,000 steps takes 5 ms, and without a bound a single
 * round with a very high number would never end.
 */
const MOST_STEPS = 10_000n;

/** The hash of a round: its own, or the one that `proven`, a later round, leads back to. */
interface KnownHash {
  chain: Chain;
  number: bigint;
  hash: string;
  proven: bigint;
}

/**
 * Checks the rounds of a table that no hash of their own proves: the next proven round leads back to their hashes, and
 * so to their results. Rounds after the newest proven one of an era are not checked, nor is one whose next stored round
 * is more than 10,000 numbers later. With opaque ids the number of steps between two rounds is unknown.
 */
export async function verifyUnproven(
  tx: Transaction,
  { id, name, fairness, consecutive }: VerifiedTable,
): Promise<WrongUnproven | null> {
  if (fairness === null || !consecutive) return null;
  const ends = await findUnprovenEnds(tx, id);
  if (ends === null) return null;
  const decided = await listDecided(tx, id);
  const chains = chainsOf(fairness);
  let later: KnownHash | null = null;
  const range = { from: ends.lowest - MOST_STEPS, to: ends.highest + MOST_STEPS };
  for await (const round of readDownwards(tx, id, range)) {
    const { number, roundId, provenHash } = round;
    const chain = chainAt(chains, number);
    if (chain === null || number <= chain.end.number) {
      later = null;
      continue;
    }
    if (later !== null && (later.chain !== chain || later.number - number > MOST_STEPS)) later = null;
    // the links of proven rounds are checked only across unproven ones, whose results depend on them
    if (provenHash !== null) {
      if (later !== null && later.number !== later.proven) {
        const wrong = await wrongLink(later, number, provenHash);
        if (wrong !== null) return { kind: "round", id: `${name} ${later.proven}`, ...wrong };
      }
      later = { chain, number, hash: provenHash, proven: number };
      continue;
    }
    if (later === null) continue;
    later = { ...later, number, hash: await hashAt(later, number) };
    const wrong = wrongResult(later, round, decided);
    if (wrong !== null) return { kind: "round", id: `${name} ${roundId}`, ...wrong };
  }
  return null;
}

async function hashAt({ hash, number, chain: { step } }: KnownHash, earlier: bigint): Promise<string> {
  const steps = Number(number - earlier);
  return steps === 1 ? previousHash(hash, step) : walkBackSliced(hash, steps, { step });
}

async function wrongLink(later: KnownHash, number: bigint, provenHash: string): Promise<Wrong | null> {
  const found = await hashAt(later, number);
  if (found === provenHash) return null;
  return {
    expected: `a hash that leads to ${provenHash}, the proven hash of round ${number}`,
    found: `one that leads to ${found}; run \`roundhouse verify rounds\``,
  };
}

function wrongResult(
  { chain, hash, proven }: KnownHash,
  { roundId, hundredths }: NumberedRound,
  decided: ReadonlyMap<string, bigint | null>,
): Wrong | null {
  const decision = decided.get(roundId);
  if (decision === null) return null;
  const wrong = multiplierRefusal([chain], { number: null, hash, hundredths: Number(decision ?? hundredths) });
  // by rule B9 one hash in 2 billion has no finite result
  if (wrong === null || !Number.isFinite(hundredthsOf(chain, hash))) return null;
  return {
    expected: `${wrong.expected}, which follows from the hash of round ${proven}`,
    found:
      `${wrong.found}, without a proof of its own; correct it with \`roundhouse round revise\`, or set \`from\` in ` +
      "`fairness` if the era begins later",
  };
}
