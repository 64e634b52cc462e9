import type { HouseItem } from "../houses/contract.ts";
import type { Fairness } from "../houses/fairness/index.ts";
import type { Claim, ProvenPoint, Prover } from "../houses/fairness/prove.ts";
import { numberOf, type CheckedItem, type KnownRound } from "./round.ts";

/** What the items of one answer are proven with. */
export interface ProofWorld {
  /** The table's name, for what the prover remembers. */
  table: string;
  fairness: Fairness | null;
  /** Proven rounds of the table: its anchor, and others near the rounds in question. */
  points: readonly ProvenPoint[];
  known: ReadonlyMap<string, KnownRound>;
}

/**
 * Proves the items of an answer: what fails becomes a refusal with its reason, what has no hash stays unproven. Rounds
 * we have with the same result are not proven again. Gives the newest proven round beside them. To be called outside of
 * any transaction: the walk to a chain's published end can take seconds.
 */
export async function checkProofs(
  prover: Prover,
  { table, fairness, points, known }: ProofWorld,
  items: readonly HouseItem[],
  signal?: AbortSignal,
): Promise<{ items: CheckedItem[]; anchor: ProvenPoint | null }> {
  const claims: (Claim & { index: number })[] = [];
  const near: ProvenPoint[] = [];
  const checked = items.map((item, index): CheckedItem => {
    if (!item.ok) return item;
    const { roundId, hundredths, hash } = item.round;
    const stored = known.get(roundId);
    const number = numberOf(roundId);
    if (fairness === null || number === null) return { ...item, verified: null };
    if (stored?.verified === true && stored.proofHash !== null) near.push({ number, hash: stored.proofHash });
    if (stored?.hundredths === hundredths) return { ...item, verified: stored.verified === true ? true : null };
    if (hash === null) return { ...item, verified: null };
    claims.push({ number, hash, hundredths, index });
    return { ...item, verified: true };
  });
  const ofTable = { points: [...points, ...near], claims };
  if (fairness === null || claims.length === 0) return { items: checked, anchor: newestOf(ofTable.points) };
  const { verdicts, anchor } = await prover.prove(table, fairness, ofTable, signal);
  for (const [place, { index }] of claims.entries()) {
    const verdict = verdicts[place];
    const item = items[index];
    if (verdict?.ok !== false || item?.ok !== true) continue;
    const { round, raw } = item;
    checked[index] = { ok: false, code: "proof_mismatch", reason: verdict.reason, roundId: round.roundId, raw };
  }
  return { items: checked, anchor };
}

function newestOf(points: readonly ProvenPoint[]): ProvenPoint | null {
  return points.reduce<ProvenPoint | null>((top, one) => (top === null || one.number > top.number ? one : top), null);
}
