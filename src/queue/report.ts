import type { Counts } from "./job.ts";

/** How a run ended: `waited` spends no attempt, `skipped` found another active run of its key. */
export type RunOutcome = "done" | "retried" | "failed" | "waited" | "stopped" | "skipped";

/** A run that has ended, for the metrics. */
export interface RunReport {
  queue: string;
  outcome: RunOutcome;
  seconds: number;
  /** Its counts; null if it was not done. */
  counts: Counts | null;
}
