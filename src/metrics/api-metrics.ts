import { Counter, Histogram, type Registry } from "prom-client";
import { measureRequests, type RequestMetrics } from "./request-metrics.ts";

/** What an API process measures of itself. */
export interface ApiMetrics {
  requests: RequestMetrics;
  /** Counts a request whose response is an error, by its code of the table of errors. */
  refused: (code: string) => void;
  /** Measures what counts a batch of calls. */
  batches<Call, Rest extends unknown[], Verdict>(
    consume: (calls: readonly Call[], ...rest: Rest) => Promise<Verdict>,
  ): (calls: readonly Call[], ...rest: Rest) => Promise<Verdict>;
}

/** Makes the metrics of requests and of the meter; `paths` are the endpoints that are counted by themselves. */
export function measureApi(registry: Registry, paths: readonly string[]): ApiMetrics {
  const registers = [registry];
  const errors = new Counter({
    name: "roundhouse_http_errors_total",
    help: "Requests refused with an error, by its code; quota refusals are day_quota_exceeded, month_quota_exceeded and service_ceiling_reached.",
    labelNames: ["code"],
    registers,
  });
  const sizes = new Histogram({
    name: "roundhouse_meter_batch_calls",
    help: "Calls counted by one statement of the meter.",
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
    registers,
  });
  const durations = new Histogram({
    name: "roundhouse_meter_batch_duration_seconds",
    help: "Duration of the statement that counts one batch of calls.",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
    registers,
  });
  const failed = new Counter({
    name: "roundhouse_meter_batches_failed_total",
    help: "Batches of calls that could not be counted; their calls were refused.",
    registers,
  });
  return {
    requests: measureRequests(registry, paths),
    refused: (code) => errors.inc({ code }),
    batches:
      (consume) =>
      async (calls, ...rest) => {
        const startedAt = performance.now();
        sizes.observe(calls.length);
        try {
          return await consume(calls, ...rest);
        } catch (error) {
          failed.inc();
          throw error;
        } finally {
          durations.observe((performance.now() - startedAt) / 1_000);
        }
      },
  };
}
