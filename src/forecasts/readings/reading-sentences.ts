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
  /** Said after `unchanged` where the evidence is past its threshold and the weight is not. */
  changesOverTime(past: Past): string;
  changed(past: Past): string;
  mix(mix: { rounds: number; shares: readonly (readonly [color: string, share: number])[]; chance: number }): string;
  /** How the newest multipliers stand among all that the table had. */
  lively(place: { level: "low" | "usual" | "high"; percentile: number }): string;
  drifted(evidence: number): string;
  steady: string;
  edgeKept(edge: { declared: number; most: number }): string;
  edgeRejected(edge: { declared: number; implied: number; most: number }): string;
}

/** What rounds have shown about the past and the odds. */
export interface Past {
  rounds: number;
  evidence: number;
  required: number;
  weight: number;
  color: string;
  share: number;
}
