import { Counter, Histogram, type Registry } from "prom-client";
import { VOID_REASONS } from "../forecasts/accuracy/keys.ts";
import type { RunReport } from "../queue/report.ts";

/** Results of `score-accuracy` that are counted by reason. */
const VOID = /^void_/;

/** Counts the runs of jobs in this process: how they ended, how long they took, and their results. */
export function measureJobs(registry: Registry): (report: RunReport) => void {
  const registers = [registry];
  const runs = new Counter({
    name: "roundhouse_job_runs_total",
    help: "Runs of jobs by outcome: done, retried, failed, waited, stopped, skipped.",
    labelNames: ["queue", "outcome"],
    registers,
  });
  const durations = new Histogram({
    name: "roundhouse_job_duration_seconds",
    help: "Duration of runs of a job.",
    labelNames: ["queue"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    registers,
  });
  const results = new Counter({
    name: "roundhouse_job_results_total",
    help: "Results of runs, as in their log lines: rounds, late, quarantined, conflicts, forecasts, scores, …",
    labelNames: ["queue", "result"],
    registers,
  });
  const voids = new Counter({
    name: "roundhouse_forecasts_void_total",
    help: "Forecasts that cannot be scored, by reason, counted when they are added to the accuracy.",
    labelNames: ["reason"],
    registers,
  });
  // increase() does not see the first value of a series, so those that alerts use start at 0
  for (const reason of VOID_REASONS) voids.inc({ reason }, 0);
  return ({ queue, outcome, seconds, counts }) => {
    runs.inc({ queue, outcome: "failed" }, 0);
    runs.inc({ queue, outcome });
    if (outcome !== "skipped") durations.observe({ queue }, seconds);
    for (const [result, count] of Object.entries(counts ?? {})) {
      if (VOID.test(result)) voids.inc({ reason: result.replace(VOID, "") }, count);
      else results.inc({ queue, result }, count);
    }
  };
}
