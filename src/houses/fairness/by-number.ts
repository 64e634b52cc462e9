import type { Chain, ProvenPoint } from "./chains.ts";
import { multiplierRefusal, type Claim, type Refusal, type Verdict } from "./claims.ts";
import type { FalseStarts } from "./false-starts.ts";
import type { walkBackSliced } from "./walk.ts";

/** A claim whose number gives its position in the chain. */
export type NumberedClaim = Claim & { number: bigint };

/** The input of {@link proveByNumber}, for claims of one chain. */
export interface NumberedWork {
  table: string;
  chain: Chain;
  /** Proven rounds of the chain. */
  points: readonly ProvenPoint[];
  claims: readonly NumberedClaim[];
  falseStarts: FalseStarts;
  walkBack: typeof walkBackSliced;
  signal: AbortSignal | undefined;
}

/** A walk of this many rounds takes 15 s; no chain in use is as long. */
const LONGEST_WALK = 50_000_000n;
/** Steps per response on walks that fail: a house could invent any number of hashes, each with its own walk. */
const STEPS_IN_VAIN = 30_000_000;

/**
 * Proves claims whose numbers give the steps between them: each hash must lead to a proven round or, while there is none,
 * to the published end of the chain; or a later proven round must lead to it. A third of a microsecond per round walked.
 * @throws the signal's reason once it is aborted.
 */
export async function proveByNumber(work: NumberedWork): Promise<Verdict[]> {
  const { table, chain, points, claims, falseStarts } = work;
  const { end } = chain;
  const proven = [...points, end].toSorted((a, b) => compare(b.number, a.number));
  const newest = proven[0] ?? end;
  const verdicts: (Verdict | undefined)[] = claims.map((claim) => ownVerdict(claim, chain));
  const open = claims
    .map((claim, index) => ({ ...claim, index }))
    .filter(({ index }) => verdicts[index] === undefined)
    .toSorted((a, b) => compare(b.number, a.number));

  // newer than every proven round: the newest claim must lead there, which proves the claims on its way
  const memory = `${table} ${chain.id}`;
  const towards = `${newest.number} ${newest.hash}`;
  let above = open.filter(({ number }) => number > newest.number);
  let inVain = 0;
  while (above[0] !== undefined && inVain < STEPS_IN_VAIN) {
    const { met, steps } = await walk(work, above[0], above, newest, falseStarts.numbered(memory, towards));
    const vouched = above.filter(({ number, hash }) => met.get(number) === hash);
    const reaches = met.get(newest.number) === newest.hash;
    for (const claim of vouched)
      verdicts[claim.index] = reaches ? provenAt(claim, chain) : unlinked(claim, newest, end);
    if (reaches) for (const claim of above) verdicts[claim.index] ??= notMet(claim, met.get(claim.number));
    else {
      falseStarts.addNumbered(memory, towards, vouched.at(-1) ?? above[0]);
      inVain += steps;
    }
    above = above.filter(({ index }) => verdicts[index] === undefined);
  }
  for (const claim of above) verdicts[claim.index] = unchecked(claim, newest);

  // older than a proven round: the next newer proven round must lead to it
  const below = open.filter(({ number }) => number <= newest.number);
  for (const [at, point] of proven.entries()) {
    const next = proven[at + 1];
    const mine = below.filter(({ number }) => number <= point.number && (next === undefined || number > next.number));
    if (mine.length === 0) continue;
    const { met } = await walk(work, point, mine, null, []);
    for (const claim of mine) {
      const expected = met.get(claim.number);
      verdicts[claim.index] = expected === claim.hash ? provenAt(claim, chain) : notMet(claim, expected);
    }
  }
  return verdicts.map((verdict, index) => verdict ?? notMet(claims[index], undefined));
}

/**
 * The hashes that `from` leads to at the numbers of `among` and of `last`, which is omitted after a false start (`dead`),
 * and the number of steps.
 */
async function walk(
  { chain, walkBack, signal }: NumberedWork,
  from: ProvenPoint,
  among: readonly ProvenPoint[],
  last: ProvenPoint | null,
  dead: readonly ProvenPoint[],
): Promise<{ met: Map<bigint, string>; steps: number }> {
  const lowest = among.reduce((low, { number }) => (number < low ? number : low), from.number);
  const met = new Map([[from.number, from.hash]]);
  const wanted = new Set([...among, ...dead].map(({ number }) => Number(from.number - number)));
  const visit = (hash: string, step: number) => {
    if (wanted.has(step)) met.set(from.number - BigInt(step), hash);
  };
  const hash = await walkBack(from.hash, Number(from.number - lowest), { step: chain.step, signal, visit });
  let steps = Number(from.number - lowest);
  let here = { number: lowest, hash };
  const stops = last === null ? [] : [...dead, last].filter(({ number }) => number < lowest);
  for (const { number } of stops.toSorted((a, b) => compare(b.number, a.number))) {
    if (number === here.number) continue;
    if (dead.some((point) => met.get(point.number) === point.hash)) break;
    steps += Number(here.number - number);
    here = {
      number,
      hash: await walkBack(here.hash, Number(here.number - number), { step: chain.step, signal }),
    };
    met.set(number, here.hash);
  }
  return { met, steps };
}

/** The verdict that needs no walk, from the claim and the chain's end; undefined if a walk is needed. */
function ownVerdict(claim: NumberedClaim, chain: Chain): Verdict | undefined {
  const wrong = multiplierRefusal([chain], claim);
  if (wrong !== null) return wrong;
  const { end, length, from } = chain;
  const { number, hash } = claim;
  // a chain without a published end starts at its oldest known round
  if (number === end.number && from === end.number && from > 0n) {
    return hash === end.hash ? provenAt(claim, chain) : notMet(claim, end.hash);
  }
  if (number <= end.number) {
    const reason = `the published chain ends at ${end.number}, before this round`;
    return { ok: false, what: "end", reason, expected: `a round after ${end.number}`, found: String(number) };
  }
  const longest = length ?? LONGEST_WALK;
  if (number - end.number > longest) {
    const reason = `the round is more than ${longest} after the published end of the chain`;
    return { ok: false, what: "end", reason, expected: `a round up to ${end.number + longest}`, found: String(number) };
  }
  return undefined;
}

function provenAt({ number, hash }: ProvenPoint, { id }: Chain): Verdict {
  return { ok: true, point: { number, hash, of: id } };
}

function notMet(claim: { hash: string } | undefined, expected: string | undefined): Refusal {
  return {
    ok: false,
    what: "link",
    reason: "the hash is not the one that the later, proven rounds lead back to",
    expected: expected ?? "the hash that the later, proven rounds lead back to",
    found: claim?.hash ?? "none",
  };
}

function unlinked({ hash }: ProvenPoint, newest: ProvenPoint, end: ProvenPoint): Refusal {
  const where =
    newest.number === end.number ? "the published end of the chain" : `the proven hash of round ${newest.number}`;
  return {
    ok: false,
    what: newest.number === end.number ? "end" : "link",
    reason: `the hash does not lead back to ${where}`,
    expected: `a hash that leads back to ${newest.hash}, ${where}`,
    found: hash,
  };
}

function unchecked({ hash }: ProvenPoint, newest: ProvenPoint): Refusal {
  return {
    ok: false,
    what: "link",
    reason: "too many hashes of the response lead nowhere, so this one was not checked",
    expected: `a hash that leads back to ${newest.hash}, in a response of such hashes`,
    found: hash,
  };
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
