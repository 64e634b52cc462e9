import { chainAt, chainsOf, type Chain } from "../../houses/fairness/chains.ts";
import type { Claim, Point } from "../../houses/fairness/claims.ts";
import { isOutcome } from "../../houses/fairness/outcome.ts";
import { newestPoint, type Anchor, type Prover } from "../../houses/fairness/prove.ts";
import type { Fairness } from "../../houses/fairness/settings.ts";
import type { HouseItem } from "../../houses/contract.ts";
import type { TableSettings } from "../../houses/settings/settings.ts";
import { numberOf, type CheckedItem, type KnownRound } from "../round.ts";

/** What the proof of one response's items needs. */
export interface ProofWorld {
  /** The table's name, the key of what the prover caches. */
  table: string;
  roundIds: "consecutive" | "opaque";
  fairness: Fairness | null;
  /** Proven rounds of the table: its anchor, and others near the rounds in question. */
  points: readonly Point[];
  known: ReadonlyMap<string, KnownRound>;
  /** If ids are opaque: returns which stored rounds have these hashes. */
  findOwners: (hashes: readonly string[]) => Promise<ReadonlyMap<string, string>>;
}

/**
 * Proves the items of a response. A failure becomes a refusal with its reason; an item without a hash or outside every
 * declared era stays unproven. Stored rounds with the same result are not proven again. Returns the items and the
 * newest proven round. Call it outside of any transaction: the walk to a chain's published end can take seconds.
 */
export async function checkProofs(
  prover: Prover,
  { table, roundIds, fairness, points, known, findOwners }: ProofWorld,
  items: readonly HouseItem[],
  signal?: AbortSignal,
): Promise<{ items: CheckedItem[]; anchor: Anchor | null }> {
  if (fairness === null) {
    return { items: items.map((item) => (item.ok ? { ...item, verified: null } : item)), anchor: null };
  }
  const claims: (Claim & { index: number })[] = [];
  const near: (Point & { hundredths: number })[] = [];
  const owners = new Map<string, string>();
  const checked = items.map((item, index): CheckedItem => {
    if (!item.ok) return item;
    const { roundId, hundredths, hash } = item.round;
    const stored = known.get(roundId);
    const number = roundIds === "consecutive" ? numberOf(roundId) : null;
    if (roundIds === "consecutive" && number === null) return { ...item, verified: null };
    if (stored?.verified === true && stored.proofHash !== null) {
      near.push({ number, hash: stored.proofHash, of: null, hundredths: stored.hundredths });
    }
    if (stored?.hundredths === hundredths) return { ...item, verified: stored.verified === true ? true : null };
    if (hash === null) return { ...item, verified: null };
    claims.push({ number, hash, hundredths, index });
    return { ...item, verified: true };
  });
  const chains = chainsOf(fairness);
  if (claims.length === 0) return { items: checked, anchor: newestPoint(chains, [...points, ...near]) };
  const placed = roundIds === "opaque" ? near.map((point) => ({ ...point, of: onlyChainOf(chains, point) })) : near;
  const evidence = { roundIds, points: [...points, ...placed], claims, isJoined: near.length > 0 };
  const { verdicts, anchor } = await prover.prove(table, fairness, evidence, signal);
  // if ids are numbers, a hash under a wrong one is refused by its place
  if (roundIds === "opaque") {
    const old = verdicts.flatMap((verdict) =>
      verdict.ok && mayBeStored(verdict.point, points) ? verdict.point.hash : [],
    );
    if (old.length > 0) for (const [hash, roundId] of await findOwners(old)) owners.set(hash, roundId);
  }
  for (const item of items) if (item.ok) setOwner(owners, item.round, known);
  for (const [place, { index, hash }] of claims.entries()) {
    const verdict = verdicts[place];
    const item = items[index];
    if (verdict === undefined || item?.ok !== true) continue;
    const { round, raw } = item;
    const owner = owners.get(hash);
    const refuse = (reason: string): CheckedItem => ({
      ok: false,
      code: "proof_mismatch",
      reason,
      roundId: round.roundId,
      raw,
    });
    if (!verdict.ok) checked[index] = refuse(verdict.reason);
    else if (verdict.point === null) checked[index] = { ...item, verified: null };
    else if (owner !== undefined && owner !== round.roundId) checked[index] = refuse(`the hash is that of ${owner}`);
  }
  return { items: checked, anchor };
}

/** The chain of a proven round, if its multiplier follows from its hash in exactly one chain. */
function onlyChainOf(
  chains: readonly Chain[],
  { hash, hundredths }: { hash: string; hundredths: number },
): string | null {
  const [chain, ...others] = chains.filter((one) => isOutcome(one, hash, hundredths));
  return others.length === 0 ? (chain?.id ?? null) : null;
}

/**
 * Nothing is stored after the newest proven round of a chain; an earlier one may be received again under another id.
 */
function mayBeStored(point: Point | null, proven: readonly Point[]): point is Point {
  if (point === null) return false;
  const { number, of } = point;
  return number === null || !proven.some((one) => one.of === of && one.number !== null && one.number < number);
}

/** Stores the owner of a hash if ids are opaque: the stored round that has it, else the first listed. */
function setOwner(
  owners: Map<string, string>,
  { roundId, hash }: { roundId: string; hash: string | null },
  known: ReadonlyMap<string, KnownRound>,
): void {
  const own = known.get(roundId)?.proofHash ?? null;
  if (own !== null) owners.set(own, roundId);
  else if (hash !== null && !owners.has(hash)) owners.set(hash, roundId);
}

/** Whether a round belongs to an era that its table declares, so that its hash is its proof. */
export function isCovered({ fairness, round_ids }: TableSettings, roundId: string): boolean {
  if (fairness === undefined) return false;
  const number = numberOf(roundId);
  return round_ids === "opaque" || (number !== null && chainAt(chainsOf(fairness), number) !== null);
}

/** An anchor of another chain replaces the stored one; an anchor of the same chain only if it is newer. */
export function isNewerAnchor(anchor: Anchor, stored: Anchor | null): boolean {
  return stored === null || anchor.of !== stored.of || anchor.number > stored.number;
}
