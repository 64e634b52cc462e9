/** What a bench found. `ours / baseline` of the same run is its ratio, since machines differ and are noisy. */
export type Measured = {
  /** Null where there is nothing to compare with. */
  baseline: number | null;
  ours: number | null;
  /** Of both, such as `rounds/s`. */
  unit: string;
  /** Rows with the same keys in the same order, as they are to be shown. */
  results: Record<string, string | number | null>[];
  /** Lines below the table for people. */
  notes: string[];
  /** Promised figures that this run did not reach; the bench then ends with 1. Empty in a short run. */
  failures: string[];
};

/** One sub-command of `npm run bench`. */
export type Bench = {
  name: string;
  /** What is measured against what, in a line. */
  about: string;
  run(options: { isShort: boolean; directory: string; say: (line: string) => void }): Promise<Measured> | Measured;
};
