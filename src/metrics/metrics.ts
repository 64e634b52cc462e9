import { totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { HouseClient } from "../houses/polling/client.ts";
import type { Log } from "../log.ts";
import type { RunReport } from "../queue/report.ts";
import { type ApiMetrics, measureApi } from "./api-metrics.ts";
import { type FactSources, readFacts } from "./facts.ts";
import { exposeFamilies } from "./families.ts";
import { measureHouses } from "./house-metrics.ts";
import { measureJobs } from "./job-metrics.ts";

/** What a process measures, and the way to read it. */
export interface Metrics {
  api: ApiMetrics;
  /** Measures what a client asks houses. */
  houses: (client: HouseClient) => HouseClient;
  /** Counts a run of a job that is over. */
  ran: (report: RunReport) => void;
  /** All metrics as text: within a second, also while PostgreSQL or Redis are away. */
  scrape: () => Promise<string>;
}

/** How `scrape` is to be sent. */
export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/**
 * Makes the metrics of a process. Labels are houses, queues, states and codes, never tables or callers: with 10,000
 * tables a scrape stays a few thousand lines.
 * @param options.endpoints paths of the API that are counted by themselves
 */
export function createMetrics(
  sources: FactSources,
  options: { version: string; endpoints: readonly string[]; log: Log },
): Metrics {
  const { version, endpoints, log } = options;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: "roundhouse_info",
    help: "Always 1; the label is the running version.",
    labelNames: ["version"],
    registers: [registry],
  }).set({ version }, 1);
  measureMemoryLimits(registry);
  const api = measureApi(registry, endpoints);
  const facts = readFacts(sources, log);
  return {
    api,
    houses: measureHouses(registry),
    ran: measureJobs(registry),
    async scrape() {
      const [measured, found] = await Promise.all([registry.metrics(), facts()]);
      return measured + (await exposeFamilies(found));
    },
  };
}

function measureMemoryLimits(registry: Registry): void {
  const limits = new Gauge({
    name: "roundhouse_memory_limit_bytes",
    help: "The most memory of this process: of its container or machine (process), and of its JavaScript heap (heap).",
    labelNames: ["of"],
    registers: [registry],
  });
  // 0 or a number beyond the machine's memory if there is no container
  const container = process.constrainedMemory();
  limits.set({ of: "process" }, container === 0 ? totalmem() : Math.min(container, totalmem()));
  limits.set({ of: "heap" }, getHeapStatistics().heap_size_limit);
}
