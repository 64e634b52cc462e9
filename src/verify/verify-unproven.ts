import type { Transaction } from "../db/client.ts";
import { chainAt, chainsOf, type Chain } from "../houses/fairness/chains.ts";
import { multiplierRefusal } from "../houses/fairness/claims.ts";
import { hundredthsOf } from "../houses/fairness/outcome.ts";
import { previousHash, walkBackSliced } from "../houses/fairness/walk.ts";
import type { Wrong } from "./check-round.ts";
import {
  listDecided,
  MOST_STEPS,
  readAroundUnproven,
  type NumberedRound,
  type NumberRange,
} from "./verify-unproven-store.ts";
import type { VerifiedTable } from "./verified-table-store.ts";

/** A round that contradicts the proven rounds after it. */
export type WrongUnproven = Wrong & { kind: "round"; id: string };

/** The numbers of a table's rounds so far, as far as the check depends on them; 0 for none. */
export interface ProofNumbers {
  highestProven: bigint;
  /** Of rounds without a proof that their era determines. */
  lowestUnproven: bigint;
  highestUnproven: bigint;
}

/** Before the first round of a table. */
export function beginProofNumbers(): ProofNumbers {
  return { highestProven: 0n, lowestUnproven: 0n, highestUnproven: 0n };
}

/** Includes the number of a round of a table with proofs and consecutive ids. */
export function noteProof(
  numbers: ProofNumbers,
  { fairness, consecutive }: VerifiedTable,
  { roundId, verified }: { roundId: string; verified: boolean | null },
): void {
  if (fairness === null || !consecutive || !/^[1-9]\d{0,17}$/.test(roundId)) return;
  const number = BigInt(roundId);
  if (verified === true) {
    if (number > numbers.highestProven) numbers.highestProven = number;
    return;
  }
  const chain = chainAt(chainsOf(fairness), number);
  if (chain === null || number <= chain.end.number) return;
  if (numbers.lowestUnproven === 0n || number < numbers.lowestUnproven) numbers.lowestUnproven = number;
  if (number > numbers.highestUnproven) numbers.highestUnproven = number;
}

/** The range of numbers to check; null if no proven round has a number above an unproven one. */
export function unprovenRange({ highestProven, lowestUnproven, highestUnproven }: ProofNumbers): NumberRange | null {
  if (lowestUnproven === 0n || lowestUnproven > highestProven) return null;
  const to = highestUnproven + MOST_STEPS;
  return { from: lowestUnproven - MOST_STEPS, to: to < highestProven ? to : highestProven };
}

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
 *
 * @param range of the walk through all rounds, see {@link unprovenRange}
 */
export async function verifyUnproven(
  tx: Transaction,
  { id, name, fairness }: VerifiedTable,
  range: NumberRange | null,
): Promise<WrongUnproven | null> {
  if (fairness === null || range === null) return null;
  const decided = await listDecided(tx, id);
  const chains = chainsOf(fairness);
  let later: KnownHash | null = null;
  for await (const round of readAroundUnproven(tx, id, range)) {
    const { number, provenHash } = round;
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
    if (wrong !== null) return { kind: "round", id: `${name} ${number}`, ...wrong };
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
  { number, hundredths }: NumberedRound,
  decided: ReadonlyMap<string, bigint | null>,
): Wrong | null {
  const decision = decided.get(String(number));
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
