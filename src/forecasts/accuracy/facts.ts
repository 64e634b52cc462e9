/** The input of the accuracy sums: the needed columns of forecast sets, scores, revisions and rounds. */

/** A forecast set. Windows have the feature codes 1 + 3·color + target; next_color is 0 and always the first feature. */
export interface SetFacts {
  cutoffSeq: bigint;
  cutoffOrdinal: bigint;
  model: string;
  /** UTC hour of issue, in hours since 1970. */
  hour: number;
  features: readonly number[];
  horizons: readonly number[];
  /** Of all features in order; next_color has one value per color. */
  pPpm: readonly number[];
  basePpm: readonly number[];
  /** last_20, last_100 and due, each in the layout of `pPpm`; null if a reference has no forecast. */
  referencePpm: readonly (number | null)[];
  /** Per window code, from 1: the last ordinal of its newest window; 0 if there is none, or none can follow it now. */
  ends: readonly bigint[];
  /** A stored cosigned checkpoint covered it before the next on-time round was requested. */
  isSealed: boolean;
}

/** How a forecast was settled: `reason` is 0 with an outcome if scored, else the reason of the void with a null outcome. */
export interface Settlement {
  cutoffSeq: bigint;
  feature: number;
  reason: number;
  outcome: number | null;
}

/** A score set: everything settled by one round. */
export interface ScoreFacts {
  settledSeq: bigint;
  settlements: readonly Settlement[];
}

/** A later score of a forecast, and the score that it replaces. */
export interface RevisionFacts {
  /** Number in the commit order of its table. */
  revision: bigint;
  cutoffSeq: bigint;
  feature: number;
  /** Null when it is missing: the revision is damaged. */
  before: Pick<Settlement, "reason" | "outcome"> | null;
  after: Pick<Settlement, "reason" | "outcome">;
}

/** A round received after the table's first forecast; `ordinal` is null if the round is late. */
export interface RoundFacts {
  seq: bigint;
  ordinal: bigint | null;
  /** UTC hour of receipt, in hours since 1970. */
  hour: number;
}

/** Rows of one table, each kind in the order of its numbers. */
export interface Facts {
  /** Sets to count. */
  sets: readonly SetFacts[];
  scores: readonly ScoreFacts[];
  revisions: readonly RevisionFacts[];
  rounds: readonly RoundFacts[];
  /** Sets that are counted already but needed here: those of settled forecasts, and the newest before `rounds`. */
  earlierSets: readonly SetFacts[];
}
