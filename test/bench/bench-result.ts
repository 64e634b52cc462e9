/** What a bench found. `ours / baseline` of the same run is its ratio, since machines differ and are noisy. */
export type Measured = {
  /** Null where there is nothing to compare with. */
  baseline: number | null;
  ours: number | null;
  /** Of both, such as `rounds/s`. */
  unit: string;
  /** Rows with the same keys in the same order, as they are to be shown. */
  results: Record<string, string | number | null>[];
  /** The columns that people see, where a row has more than fit on a screen; JSON has all of them. */
  shown?: readonly string[];
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
  /** Options of its own, as commander writes them, and what they are for. */
  flags?: Record<string, string>;
  /** `given` holds the values of its own options that were given, by name. */
  run(options: {
    isShort: boolean;
    directory: string;
    say: (line: string) => void;
    given: Record<string, string>;
  }): Promise<Measured> | Measured;
};
