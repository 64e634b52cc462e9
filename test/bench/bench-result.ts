/** The result of a bench. Its ratio is `ours / baseline` of the same run, since machines differ and are noisy. */
export type BenchResult = {
  /** Null if there is nothing to compare with. */
  baseline: number | null;
  ours: number | null;
  /** Of both, such as `rounds/s`. */
  unit: string;
  /** Rows with the same keys in the same order. */
  results: Record<string, string | number | null>[];
  /** The printed columns, if a row has more than fit on a screen; JSON has all of them. */
  shown?: readonly string[];
  /** Lines below the printed table. */
  notes: string[];
  /** Targets that this run missed; the bench then exits with 1. Empty in a short run. */
  failures: string[];
};

/** One sub-command of `npm run bench`. */
export type Bench = {
  name: string;
  /** What is measured and the baseline, in one line. */
  about: string;
  /** Additional options in commander's syntax, with their descriptions. */
  flags?: Record<string, string>;
  /** `given` has the values of the additional options by name. */
  run(options: {
    isShort: boolean;
    directory: string;
    say: (line: string) => void;
    given: Record<string, string>;
  }): Promise<BenchResult> | BenchResult;
};
