import type { Chain } from "./chains.ts";
import { multiplierRefusal, type Claim, type Point, type Refusal, type Verdict } from "./claims.ts";
import type { FalseStarts } from "./false-starts.ts";
import { createLines, type Lines, type Place } from "./lines.ts";
import { isOutcome } from "./outcome.ts";
import type { ChainStep, walkUntil } from "./walk.ts";

/** The input of {@link proveByHash}. */
export interface HashWork {
  table: string;
  /** All eras of the table: the end of a hash's walk decides its era. */
  chains: readonly Chain[];
  points: readonly Point[];
  claims: readonly Claim[];
  /** The response of the claims also has proven rounds: then none of them needs a walk to the published end. */
  isJoined: boolean;
  falseStarts: FalseStarts;
  walkUntil: typeof walkUntil;
  signal: AbortSignal | undefined;
}

/** Between neighbors in a response, with some missing in between: less than a millisecond. */
const SHORT_WALK = 2_000;
/** From a response to the newest proven round, two months of rounds away: a tenth of a second. */
const NEAR_WALK = 200_000;
/** To the published end of a chain of unknown length: eight seconds. */
const LONGEST_WALK = 20_000_000;
/** Walks to the published end per response: a second one, since the first may start at a false round. */
const LONG_WALKS = 2;
/** Near walks per response that may fail, ten seconds in all: a house could invent any number of hashes. */
const WALKS_IN_VAIN = 100;
/** Near walks in one batch, before the failed ones are counted. */
const BATCH_OF_WALKS = 50;

/**
 * Proves claims whose ids give no position: each multiplier is recomputed from its hash, and its hash must lead to a proven
 * round within 200,000 rounds, or a proven round to it. If no hash of a response does, one must lead to the published end
 * of a chain, which gives the position. The era of a round is the one that its hash leads to.
 * @throws the signal's reason once it is aborted.
 */
export async function proveByHash(work: HashWork): Promise<Verdict[]> {
  const { chains, claims } = work;
  const verdicts: (Verdict | undefined)[] = claims.map((claim) => multiplierRefusal(chains, claim) ?? undefined);
  for (const step of new Set(chains.map((chain) => chain.step))) {
    const ofStep = chains.filter((chain) => chain.step === step);
    const open = claims.flatMap((claim, index) =>
      verdicts[index] === undefined && multiplierRefusal(ofStep, claim) === null ? [{ claim, index }] : [],
    );
    if (open.length === 0) continue;
    const lines = await link(work, step, ofStep, [...new Set(open.map(({ claim }) => claim.hash))]);
    for (const { claim, index } of open) {
      const place = lines.placeOf(claim.hash);
      if (place !== null) verdicts[index] = verdictAt(claim, place, ofStep);
    }
  }
  return verdicts.map((verdict, index) => verdict ?? unlinked(claims[index], work));
}

async function link(
  { table, chains, points, isJoined, falseStarts, walkUntil: walk, signal }: HashWork,
  step: ChainStep,
  ofStep: readonly Chain[],
  claimed: readonly string[],
): Promise<Lines> {
  const towards = `${step} ${chains.map(({ id }) => id).join()}`;
  const proven: (readonly [string, Place])[] = [
    ...ofStep.map(({ end, id }) => [end.hash, { number: end.number, of: id }] as const),
    ...points.map(({ hash, number, of }) => [hash, { number, of }] as const),
  ];
  const memory = `${table} ${step}`;
  const lines = createLines(step, proven, claimed, falseStarts.hashes(memory, towards), walk);
  const pointed = points.map(({ hash }) => hash);
  const open = () => claimed.filter((hash) => lines.placeOf(hash) === null && !lines.isDead(hash));

  await lines.advance(claimed, SHORT_WALK, signal);
  if (open().length > 0) await lines.advance(pointed, SHORT_WALK, signal);
  if (open().length > 0) await lines.advance(pointed, NEAR_WALK, signal);
  const isApart = !isJoined && claimed.every((hash) => lines.placeOf(hash) === null);
  const longest = Math.max(...ofStep.map(({ length }) => (length === null ? LONGEST_WALK : Number(length))));
  const walked = new Set<string>();
  while (isApart && walked.size < LONG_WALKS) {
    const root = commonest(
      open()
        .map((hash) => lines.rootOf(hash))
        .filter((hash) => !walked.has(hash)),
    );
    if (root === null) break;
    walked.add(root);
    await lines.advance([root], longest, signal);
    if (lines.placeOf(root) !== null) break;
    falseStarts.addHash(memory, towards, root);
  }
  if (open().length > 0 && (pointed.length > 0 || claimed.some((hash) => lines.placeOf(hash) !== null))) {
    const apart = open();
    const isInVain = (hash: string) => lines.placeOf(hash) === null && lines.stepsOf(hash) >= NEAR_WALK;
    for (let at = 0, inVain = 0; at < apart.length && inVain < WALKS_IN_VAIN; at += BATCH_OF_WALKS) {
      const some = apart.slice(at, at + BATCH_OF_WALKS);
      await lines.advance(some, NEAR_WALK, signal);
      for (const hash of some.filter(isInVain)) {
        falseStarts.addHash(memory, towards, hash);
        inVain += 1;
      }
    }
  }
  return lines;
}

function verdictAt(claim: Claim, { number, of }: Place, chains: readonly Chain[]): Verdict {
  const chain = chains.find(({ id }) => id === of);
  const point: Point = { number, hash: claim.hash, of };
  if (chain === undefined) return { ok: true, point };
  if (!isOutcome(chain, claim.hash, claim.hundredths)) {
    return multiplierRefusal([chain], claim) ?? { ok: true, point };
  }
  const { end, length, from } = chain;
  if (number === end.number && (from !== number || number === 0n)) {
    const reason = "the hash is the published end of the chain, not that of a round";
    return { ok: false, what: "end", reason, expected: "the hash of a round", found: claim.hash };
  }
  if (number !== null && length !== null && number - end.number > length) {
    const reason = `the hash is ${number - end.number} rounds from the published end of a chain of ${length}`;
    return { ok: false, what: "end", reason, expected: `at most ${length} rounds`, found: String(number - end.number) };
  }
  return { ok: true, point };
}

function unlinked(claim: Claim | undefined, { chains }: HashWork): Refusal {
  const ends = chains.map(({ end }) => end.hash).join(" or ");
  return {
    ok: false,
    what: "link",
    reason: `the hash leads back to no proven round within ${NEAR_WALK} rounds, nor to the published end of the chain`,
    expected: `a hash that leads back to ${ends}`,
    found: claim?.hash ?? "none",
  };
}

function commonest(names: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].reduce<[string | null, number]>((top, one) => (one[1] > top[1] ? one : top), [null, 0])[0];
}
