import type { Counts } from "./job.ts";

/** How a run ended: `waited` spends no attempt, `skipped` found another run of its key going on. */
export type RunOutcome = "done" | "retried" | "failed" | "waited" | "stopped" | "skipped";

/** One run of a job that is over, for whoever counts them. */
export interface RunReport {
  queue: string;
  outcome: RunOutcome;
  seconds: number;
  /** What it did; null if it did not come to its end. */
  counts: Counts | null;
}
