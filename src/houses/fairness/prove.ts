import { proveByHash } from "./by-hash.ts";
import { proveByNumber, type NumberedClaim } from "./by-number.ts";
import { chainAt, chainsOf, type Chain, type ProvenPoint } from "./chains.ts";
import type { Claim, Point, Verdict } from "./claims.ts";
import { createFalseStarts } from "./false-starts.ts";
import type { Fairness } from "./settings.ts";
import { walkBackSliced, walkUntil } from "./walk.ts";

/** A proven round whose position is known, and the id of its chain. */
export interface Anchor extends ProvenPoint {
  of: string;
}

/** The verdicts on claims, in their order, and the newest proven round. */
export interface Proofs {
  verdicts: Verdict[];
  anchor: Anchor | null;
}

/** The input of a proof of a table's claims. */
export interface Evidence {
  /** If ids are opaque, claims have no number. */
  roundIds: "consecutive" | "opaque";
  /** Proven rounds of the table, including the anchor. */
  points: readonly Point[];
  claims: readonly Claim[];
  /** For opaque ids: the response of the claims also has proven rounds. */
  isJoined?: boolean;
}

/** Proves the claims of tables, one response after the other. */
export interface Prover {
  /**
   * Proves each claim: its multiplier is recomputed from its hash, and its hash must lead to a proven round or, while there
   * is none, to the published end of the chain; or a later proven round must lead to it. A third of a microsecond per round
   * walked; the event loop runs in between.
   * @throws the signal's reason once it is aborted.
   */
  prove(table: string, fairness: Fairness, evidence: Evidence, signal?: AbortSignal): Promise<Proofs>;
}

/** The walk functions. */
interface Walks {
  walkBack: typeof walkBackSliced;
  walkUntil: typeof walkUntil;
}

/**
 * Creates a prover. It remembers failed walks, so that a house whose hashes do not lead to the published end costs one long
 * walk and not one per second.
 */
export function createProver(walks: Walks = { walkBack: walkBackSliced, walkUntil }): Prover {
  const falseStarts = createFalseStarts();
  return {
    async prove(table, fairness, { roundIds, points, claims, isJoined = false }, signal) {
      const chains = chainsOf(fairness);
      const verdicts =
        roundIds === "opaque"
          ? await proveByHash({ table, chains, points, claims, isJoined, falseStarts, ...walks, signal })
          : await proveNumbers(chains, points, claims, (work) =>
              proveByNumber({ table, ...work, falseStarts, ...walks, signal }),
            );
      const proven = verdicts.flatMap((verdict) => (verdict.ok && verdict.point !== null ? [verdict.point] : []));
      return { verdicts, anchor: newestPoint(chains, [...points, ...proven]) };
    },
  };
}

/** Proves the claims of each era separately: no hash links two eras. */
async function proveNumbers(
  chains: readonly Chain[],
  points: readonly Point[],
  claims: readonly Claim[],
  prove: (work: { chain: Chain; points: ProvenPoint[]; claims: NumberedClaim[] }) => Promise<Verdict[]>,
): Promise<Verdict[]> {
  const verdicts = claims.map((): Verdict => ({ ok: true, point: null }));
  for (const chain of chains) {
    const mine = claims.flatMap((claim, index) =>
      claim.number !== null && chainAt(chains, claim.number) === chain
        ? [{ index, claim: { ...claim, number: claim.number } }]
        : [],
    );
    if (mine.length === 0) continue;
    const known = points.flatMap(({ number, hash }) =>
      number !== null && chainAt(chains, number) === chain ? [{ number, hash }] : [],
    );
    const own = await prove({ chain, points: known, claims: mine.map(({ claim }) => claim) });
    for (const [place, { index }] of mine.entries()) verdicts[index] = own[place] ?? { ok: true, point: null };
  }
  return verdicts;
}

/** The newest point with a known position: the furthest from its chain's end, in the newest era. */
export function newestPoint(chains: readonly Chain[], points: readonly Point[]): Anchor | null {
  let newest: { era: number; anchor: Anchor } | null = null;
  for (const { number, hash, of } of points) {
    if (number === null) continue;
    const chain = of === null ? chainAt(chains, number) : chains.find(({ id }) => id === of);
    if (chain === undefined || chain === null) continue;
    const era = chains.indexOf(chain);
    const isNewer = newest === null || era > newest.era || (era === newest.era && number > newest.anchor.number);
    if (isNewer) newest = { era, anchor: { number, hash, of: chain.id } };
  }
  return newest?.anchor ?? null;
}
