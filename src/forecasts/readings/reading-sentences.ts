/** The sentences of a language. Chances and shares are given as fractions, evidence as a number of times. */
export interface Sentences {
  notice: string;
  paused: string;
  silent: string;
  nothingYet: string;
  tooFew(rounds: number): string;
  /** The wait for a color: `every` is the mean number of rounds from one to the next. */
  waited(wait: { color: string; gap: number; every: number; chance: number }): string;
  justCame(color: string): string;
  waitUnknown(color: string): string;
  streak(streak: { color: string; length: number; chance: number }): string;
  unchanged(past: Past): string;
  /** Follows `unchanged` if the evidence is above its threshold but the weight is not. */
  changesOverTime(past: Past): string;
  changed(past: Past): string;
  mix(mix: { rounds: number; shares: readonly (readonly [color: string, share: number])[]; chance: number }): string;
  /** The rank of the newest multipliers in the table's history. */
  lively(place: { level: "low" | "usual" | "high"; percentile: number }): string;
  drifted(evidence: number): string;
  steady: string;
  edgeKept(edge: TestedEdge): string;
  /** The evidence is at least what chance gives one table in twenty, and less than what so many tables require. */
  edgeDoubted(edge: TestedEdge): string;
  edgeRejected(edge: TestedEdge): string;
}

/** The declared edge, and the evidence against it: now, at most so far, and from which on it is rejected. */
export interface TestedEdge {
  declared: number;
  implied: number;
  now: number;
  most: number;
  required: number;
}

/** Evidence on whether past rounds change the odds. */
export interface Past {
  rounds: number;
  evidence: number;
  required: number;
  weight: number;
  color: string;
  share: number;
}
