import { schemes, type Fairness } from "./index.ts";

/** A round whose hash is known to lead back to the published end of the chain. */
export interface ProvenPoint {
  number: bigint;
  hash: string;
}

/** A round as a house told it, to be proven. */
export interface Claim {
  number: bigint;
  hash: string;
  hundredths: number;
}

/** Is a claim true? A refusal says in plain words what does not fit. */
export type Verdict = { ok: true } | { ok: false; reason: string };

/** The verdicts on claims, in their order, and the newest round that is proven now. */
export interface Proofs {
  verdicts: Verdict[];
  anchor: ProvenPoint | null;
}

/** Proves the claims of tables, one answer after the other. */
export interface Prover {
  /**
   * Proves each claim: its multiplier is recomputed from its hash, and its hash must lead back to a proven round or, as
   * long as there is none, to the published end of the chain; or a proven later round must lead back to it. `points`
   * are proven rounds of the table, the anchor among them. About half a microsecond for each round walked.
   * @throws the signal's reason once it is aborted.
   */
  prove(
    table: string,
    fairness: Fairness,
    work: { points: readonly ProvenPoint[]; claims: readonly Claim[] },
    signal?: AbortSignal,
  ): Promise<Proofs>;
}

/** A walk of this many rounds takes 25 s; no chain that is in use is as long. */
const LONGEST_WALK = 50_000_000n;
/** False starts remembered for each table; those of one answer lead to few different ones. */
const FALSE_STARTS_KEPT = 8;

/**
 * Makes a prover. It remembers where walks ended in nothing, so that a house whose hashes do not lead to the published
 * end costs one long walk and not one a second.
 */
export function createProver(list: typeof schemes = schemes): Prover {
  const falseStarts = new Map<string, ProvenPoint[]>();

  return {
    async prove(table, fairness, { points, claims }, signal) {
      const scheme = list[fairness.scheme];
      const end: ProvenPoint = { number: BigInt(fairness.terminating_id), hash: fairness.terminating_hash };
      const proven = [...points, end].toSorted((a, b) => compare(b.number, a.number));
      const newest = proven[0] ?? end;
      const verdicts = claims.map((claim) => ownVerdict(claim, fairness, end));
      const open = claims
        .map((claim, index) => ({ ...claim, index }))
        .filter(({ index }) => verdicts[index] === undefined)
        .toSorted((a, b) => compare(b.number, a.number));

      // newer than all that is proven: the newest claim must lead there, and vouches for those it meets on the way
      const key = `${table} ${newest.number} ${newest.hash}`;
      let above = open.filter(({ number }) => number > newest.number);
      while (above[0] !== undefined) {
        const met = await walk(above[0], above, newest);
        const vouched = above.filter(({ number, hash }) => met.get(number) === hash);
        const reaches = met.get(newest.number) === newest.hash;
        for (const { index } of vouched) verdicts[index] = reaches ? { ok: true } : astray(newest, end);
        if (reaches) for (const { index } of above) verdicts[index] ??= notMet();
        else rememberFalse(key, vouched.at(-1) ?? above[0]);
        above = above.filter(({ index }) => verdicts[index] === undefined);
      }

      // older than something that is proven: the next newer proven round must lead to it
      const below = open.filter(({ number }) => number <= newest.number);
      for (const [at, point] of proven.entries()) {
        const next = proven[at + 1];
        const mine = below.filter(
          ({ number }) => number <= point.number && (next === undefined || number > next.number),
        );
        if (mine.length === 0) continue;
        const met = await walk(point, mine, null);
        for (const { index, number, hash } of mine)
          verdicts[index] = met.get(number) === hash ? { ok: true } : notMet();
      }

      const settled = verdicts.map((verdict) => verdict ?? notMet());
      const best = claims
        .filter((_, index) => settled[index]?.ok === true)
        .reduce<ProvenPoint | null>((top, one) => (top === null || one.number > top.number ? one : top), null);
      const known = points.length > 0 ? newest : null;
      const anchor = best !== null && (known === null || best.number > known.number) ? best : known;
      return { verdicts: settled, anchor: anchor === null ? null : { number: anchor.number, hash: anchor.hash } };

      /** The hashes `from` leads to at the numbers of `claims` and of `last`, which is left out after a false start. */
      async function walk(
        from: ProvenPoint,
        among: readonly ProvenPoint[],
        last: ProvenPoint | null,
      ): Promise<Map<bigint, string>> {
        const lowest = among.reduce((low, { number }) => (number < low ? number : low), from.number);
        const dead = falseStarts.get(key) ?? [];
        const stops = [...among, ...(last === null ? [] : [...dead, last])].map(({ number }) => number);
        const met = new Map([[from.number, from.hash]]);
        let here = from;
        for (const number of [...new Set(stops)].toSorted((a, b) => compare(b, a))) {
          if (number >= here.number) continue;
          if (number < lowest && dead.some((point) => met.get(point.number) === point.hash)) break;
          const steps = Number(here.number - number);
          const hash = await scheme.walkBack(here.hash, steps, signal === undefined ? {} : { signal });
          met.set(number, hash);
          here = { number, hash };
        }
        return met;
      }
    },
  };

  function rememberFalse(key: string, { number, hash }: ProvenPoint): void {
    const others = falseStarts.get(key) ?? [];
    // the newest anchor of a table is the only one that is walked to: older ones are forgotten with it
    const table = key.slice(0, key.indexOf(" "));
    for (const other of falseStarts.keys())
      if (other !== key && other.startsWith(`${table} `)) falseStarts.delete(other);
    if (others.some((point) => point.number === number && point.hash === hash)) return;
    falseStarts.set(key, [...others, { number, hash }].slice(-FALSE_STARTS_KEPT));
  }
}

/** What a claim says against itself, before any walk; undefined where nothing does. */
function ownVerdict({ number, hash, hundredths }: Claim, fairness: Fairness, end: ProvenPoint): Verdict | undefined {
  const proven = schemes[fairness.scheme].hundredths(hash, fairness.salt);
  if (proven !== hundredths) {
    return {
      ok: false,
      reason: `the hash gives ${(proven / 100).toFixed(2)}x, the house said ${(hundredths / 100).toFixed(2)}x`,
    };
  }
  if (number <= end.number)
    return { ok: false, reason: `the published chain ends at ${end.number}, before this round` };
  if (number - end.number > LONGEST_WALK) {
    return { ok: false, reason: `the round is more than ${LONGEST_WALK} after the published end of the chain` };
  }
  return undefined;
}

function notMet(): Verdict {
  return { ok: false, reason: "the hash is not the one that the later, proven rounds lead back to" };
}

function astray(newest: ProvenPoint, end: ProvenPoint): Verdict {
  const where =
    newest.number === end.number ? "the published end of the chain" : `the proven hash of round ${newest.number}`;
  return { ok: false, reason: `the hash does not lead back to ${where}` };
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
