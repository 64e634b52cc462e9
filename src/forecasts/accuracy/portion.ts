import type { RevisionFacts, RoundFacts, ScoreFacts, SetFacts } from "./facts.ts";

/** The last row of each kind that was added. */
export interface Progress {
  setSeq: bigint;
  settledSeq: bigint;
  revision: bigint;
  roundSeq: bigint;
}

/** The first rows of each kind after a mark, at most `limit` of each; sets are read last, so every needed set is there. */
export interface ReadRows {
  sets: readonly SetFacts[];
  scores: readonly ScoreFacts[];
  revisions: readonly RevisionFacts[];
  rounds: readonly RoundFacts[];
  /** The newest seq of the table when the rounds were read. */
  lastSeq: bigint;
}

/** Rows to add together, the progress after them, and whether more rows exist. */
export interface Portion extends Omit<ReadRows, "lastSeq"> {
  progress: Progress;
  isLimited: boolean;
}

/**
 * The part of the read rows that is added together: sets, scores and rounds up to the same seq, so that a settled forecast
 * is always counted as issued and each round finds the set before it; revisions after all sets and scores.
 *
 * @param limit rows of each kind that were read at most
 */
export function portionOf(
  before: Progress,
  { sets, scores, revisions, rounds, lastSeq }: ReadRows,
  limit: number,
): Portion {
  const ends = [lastSeq];
  if (sets.length >= limit) ends.push(sets.at(-1)!.cutoffSeq);
  if (rounds.length >= limit) ends.push(rounds.at(-1)!.seq);
  const through = ends.reduce((least, end) => (end < least ? end : least));
  const isCut = through < lastSeq;
  const ownSets = sets.filter(({ cutoffSeq }) => cutoffSeq <= through);
  const ownScores = scores.filter(({ settledSeq }) => settledSeq <= through);
  const areScoresCut = scores.length >= limit || ownScores.length < scores.length;
  const ownRevisions = isCut || areScoresCut ? [] : revisions;
  const progress = {
    setSeq: ownSets.at(-1)?.cutoffSeq ?? before.setSeq,
    settledSeq: ownScores.at(-1)?.settledSeq ?? before.settledSeq,
    revision: ownRevisions.at(-1)?.revision ?? before.revision,
    roundSeq: through > before.roundSeq ? through : before.roundSeq,
  };
  const hasMoved = (Object.keys(progress) as (keyof Progress)[]).some((kind) => progress[kind] !== before[kind]);
  return {
    sets: ownSets,
    scores: ownScores,
    revisions: ownRevisions,
    rounds: rounds.filter(({ seq }) => seq <= through),
    progress,
    isLimited: hasMoved && (isCut || areScoresCut || revisions.length >= limit),
  };
}

/** Cutoffs of the already counted sets that a portion needs: of settled forecasts, and the newest for its rounds. */
export function earlierCutoffs(before: Progress, { scores, revisions }: Portion): Set<bigint> {
  const settled = [...scores.flatMap(({ settlements }) => settlements), ...revisions];
  const cutoffs = settled.map(({ cutoffSeq }) => cutoffSeq).filter((cutoffSeq) => cutoffSeq <= before.setSeq);
  return new Set(before.setSeq > 0n ? [...cutoffs, before.setSeq] : cutoffs);
}
