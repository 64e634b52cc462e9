import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { measureJobs } from "../../src/metrics/job-metrics.ts";
import { readScrape } from "./scraped.ts";

it("shows that no run of a queue failed before one does, since increase() does not see the first value of a series", async () => {
  const registry = new Registry();
  const ran = measureJobs(registry);
  const failed = async () =>
    readScrape(await registry.metrics()).value('roundhouse_job_runs_total{queue="housekeep",outcome="failed"}');
  ran({ queue: "housekeep", outcome: "done", seconds: 1, counts: {} });
  expect(await failed()).toBe(0);
  ran({ queue: "housekeep", outcome: "failed", seconds: 1, counts: null });
  expect(await failed()).toBe(1);
});
