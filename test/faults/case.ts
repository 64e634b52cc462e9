import type { Testbed } from "./testbed.ts";

/** A named fault. */
export interface FaultCase {
  name: string;
  /** Recovery target; null if the case only requires that nothing is lost. */
  targetSeconds: number | null;
  /** Whether recovery is measured from the beginning of the fault or from its end. */
  from: "beginning" | "end";
  /**
   * Set if the fault lasts longer than the recovery may take. Polls are then watched for this long from the fault's
   * beginning, and recovery is the end of the last silence. Polls that were running when the fault began do not count.
   */
  watchSeconds?: number;
  /** Runs with `--short`. */
  isShort?: true;
  /** The houses whose polls are measured, if not all of them. */
  houses?: (testbed: Testbed) => readonly string[];
  /**
   * Causes the fault.
   * @throws InvariantViolation if an invariant fails meanwhile
   */
  run(testbed: Testbed): Promise<Fault>;
}

/** A fault that was caused. */
export interface Fault {
  /** The moment from which recovery is measured, in epoch milliseconds. */
  fromMs: number;
  /** Other observations, for the report. */
  observed?: string;
  /** Ends a fault that is still present, after recovery was measured. Called exactly once. */
  end?(): Promise<void> | void;
}

/** Recovery targets in seconds: a killed worker, an emptied Redis, PostgreSQL after its return, a fault that lasts. */
export const TARGET_SECONDS = { workerKilled: 20, redisEmptied: 10, postgresBack: 5, stillPresent: 20 } as const;
