/** The rows that accuracy is summed from, as far as sums need them. */

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
  /** last_20, last_100 and due, each in the layout of `pPpm`; null if a reference says nothing. */
  referencePpm: readonly (number | null)[];
  /** Per window code, from 1: the ordinal at which its newest window ends as planned; 0 when there was none. */
  ends: readonly bigint[];
  /** A cosigned checkpoint covered it before the first on-time round after it was requested, as far as is stored by now. */
  isSealed: boolean;
}

/** How a forecast of a set was settled: `reason` 0 with an outcome when scored, else the cause of the void and null. */
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

/** A later score of a forecast, and the one that counted before it. */
export interface RevisionFacts {
  /** Its number in the order of commits of its table. */
  revision: bigint;
  cutoffSeq: bigint;
  feature: number;
  /** Null when it is missing: the revision is damaged. */
  before: Pick<Settlement, "reason" | "outcome"> | null;
  after: Pick<Settlement, "reason" | "outcome">;
}

/** A round that was received while the table was forecast; `ordinal` is null when it is late. */
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
  /** Sets counted earlier that the other rows refer to: those of settled forecasts, and the newest before `rounds`. */
  earlierSets: readonly SetFacts[];
}
