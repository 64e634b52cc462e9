import type { Queryable } from "../../db/client.ts";
import { chainsOf } from "../../houses/fairness/chains.ts";
import type { Claim, Point, Refusal } from "../../houses/fairness/claims.ts";
import { newestPoint, type Prover } from "../../houses/fairness/prove.ts";
import type { Fairness } from "../../houses/fairness/settings.ts";
import {
  countRange,
  listProvable,
  listRepeatedHashes,
  type PlaceRange,
  type ProvableRound,
} from "./proof-range-store.ts";

/** The stored rounds to prove again. */
export interface StoredRange {
  table: { id: number; name: string };
  roundIds: "consecutive" | "opaque";
  fairness: Fairness;
  range: PlaceRange;
}

/** A stored round whose proof fails. */
export interface ProofFailure {
  /**
   * `hash`: the stored hash has a wrong form. `repeated`: an earlier round has the same hash. The others: see Refusal.
   */
  kind: "hash" | "repeated" | Refusal["what"];
  id: string;
  expected: string;
  found: string;
}

/** The result of proving a range. */
export interface ProvenRange {
  ok: boolean;
  /** Each round is counted in one of the last three, or is a failure. */
  checked: { rounds: number; proven: number; without_hash: number; without_era: number };
  /** Rounds proven in each chain, and the first and last of them, if their place in it is known. */
  chains: { chain: string; rounds: number; first: number | null; last: number | null }[];
  failures: number;
  first_failure: ProofFailure | null;
  /** False if the check stopped after too many failures. */
  complete: boolean;
}

const ROUNDS_PER_READ = 5_000;
/** Each failure may cost another walk, and a thousand failures show a systematic error. */
const MOST_FAILURES = 1_000;

/**
 * Proves stored rounds again, in order of their seq, from their hashes and the declared chains alone: each multiplier
 * from its hash, each hash by its link to the proven round before it, and the first of each chain by a walk to the
 * published end. Results of earlier proofs are not used. Holds some thousand rounds in memory, whatever the range. The
 * walk can take seconds before the first progress.
 *
 * @throws the signal's reason once it is aborted
 */
export async function proveStored(
  sql: Queryable,
  prover: Prover,
  { table, roundIds, fairness, range }: StoredRange,
  { signal, progress }: { signal: AbortSignal; progress: (done: number, of: number) => void },
): Promise<ProvenRange> {
  const result = emptyResult();
  const chains = new Map(chainsOf(fairness).map(({ id, name }) => [id, { chain: name, ...NOTHING_PROVEN }]));
  const total = await countRange(sql, table.id, range);
  progress(0, total);
  const repeats = new Set<string>();
  if (roundIds === "opaque") {
    for (const { roundId } of await listRepeatedHashes(sql, table.id, range, MOST_FAILURES)) repeats.add(roundId);
  }
  let points: Point[] = [];
  for (let afterSeq = 0n; result.failures < MOST_FAILURES;) {
    signal.throwIfAborted();
    const rounds = await listProvable(sql, table.id, range, { afterSeq, limit: ROUNDS_PER_READ });
    const last = rounds.at(-1);
    if (last === undefined) break;
    if (range.by === "number") rounds.sort((a, b) => compare(a.number, b.number));
    const claims = rounds.flatMap((round) => claimOf(round, roundIds, repeats, result) ?? []);
    const { verdicts } = await prover.prove(table.name, fairness, { roundIds, points, claims }, signal);
    const proven: Point[] = [];
    for (const [at, { roundId }] of claims.entries()) {
      const verdict = verdicts[at];
      if (verdict === undefined) throw new Error(`round ${roundId} got no verdict`);
      if (!verdict.ok) fail(result, { kind: verdict.what, id: roundId, ...sidesOf(verdict) });
      else if (verdict.point === null) result.checked.without_era += 1;
      else proven.push(verdict.point);
    }
    for (const point of proven) count(chains, point);
    result.checked.proven += proven.length;
    result.checked.rounds += rounds.length;
    points = pointsForNextBatch(fairness, points, proven);
    progress(result.checked.rounds, total);
    afterSeq = last.seq;
  }
  result.chains = [...chains.values()].filter(({ rounds }) => rounds > 0);
  result.complete = result.failures < MOST_FAILURES;
  result.ok = result.failures === 0;
  return result;
}

function compare(a: bigint | null, b: bigint | null): number {
  return (a ?? 0n) < (b ?? 0n) ? -1 : (a ?? 0n) > (b ?? 0n) ? 1 : 0;
}

const NOTHING_PROVEN: Omit<ProvenRange["chains"][number], "chain"> = { rounds: 0, first: null, last: null };

function emptyResult(): ProvenRange {
  const checked = { rounds: 0, proven: 0, without_hash: 0, without_era: 0 };
  return { ok: true, checked, chains: [], failures: 0, first_failure: null, complete: true };
}

/** The claim of a stored round; null if it has no hash, or a hash that is wrong by itself. */
function claimOf(
  { roundId, number, hundredths, proofHash }: ProvableRound,
  roundIds: StoredRange["roundIds"],
  repeats: ReadonlySet<string>,
  result: ProvenRange,
): (Claim & { roundId: string }) | null {
  if (proofHash === null) {
    result.checked.without_hash += 1;
    return null;
  }
  const found = proofHash.slice(0, 100);
  if (!/^[0-9a-f]{64}$/.test(proofHash)) {
    fail(result, { kind: "hash", id: roundId, expected: "64 lower case hexadecimal digits", found });
    return null;
  }
  if (repeats.has(roundId)) {
    fail(result, { kind: "repeated", id: roundId, expected: "its own hash, not that of another round", found });
    return null;
  }
  const place = roundIds === "consecutive" ? number : null;
  return { roundId, number: place, hash: proofHash, hundredths: Number(hundredths) };
}

/** The newest proven round, the oldest and the last, so that a round that arrived late has a proven one near it. */
function pointsForNextBatch(fairness: Fairness, before: readonly Point[], proven: readonly Point[]): Point[] {
  const all = [...before, ...proven];
  const oldest = all.reduce<Point | null>((low, one) => (isOlder(one, low) ? one : low), null);
  const kept = [newestPoint(chainsOf(fairness), all), oldest, all.at(-1) ?? null].filter((point) => point !== null);
  return [...new Map(kept.map((point) => [point.hash, point])).values()];
}

function isOlder({ number }: Point, other: Point | null): boolean {
  return number !== null && (other === null || other.number === null || number < other.number);
}

function count(chains: ReadonlyMap<string, ProvenRange["chains"][number]>, { number, of }: Point): void {
  const chain = of === null ? undefined : chains.get(of);
  if (chain === undefined) return;
  chain.rounds += 1;
  if (number === null) return;
  const place = Number(number);
  if (chain.first === null || place < chain.first) chain.first = place;
  if (chain.last === null || place > chain.last) chain.last = place;
}

function fail(result: ProvenRange, failure: ProofFailure): void {
  result.failures += 1;
  result.first_failure ??= failure;
}

function sidesOf({ expected, found }: Refusal): { expected: string; found: string } {
  return { expected, found };
}
