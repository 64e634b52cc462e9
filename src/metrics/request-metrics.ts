import { Counter, Histogram, type Registry } from "prom-client";

/** A response from memory takes a millisecond or two; a counted call waits for a commit. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
/** Paths below these are counted together: callers can invent them, and a series for each would never end. */
const GROUPS = ["/api", "/ops", "/console", "/docs"];
const ALWAYS = ["/", "/healthz", "/readyz", "/metrics"];

/** Measures requests by endpoint. */
export interface RequestMetrics {
  /** Counts a request that has ended: its path without parameters, its status, and its duration in milliseconds. */
  note: (path: string, status: number, ms: number) => void;
}

/**
 * Makes the metrics of requests.
 * @param paths the endpoints that are counted separately
 */
export function measureRequests(registry: Registry, paths: readonly string[]): RequestMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: "roundhouse_http_requests_total",
    help: "Finished requests by endpoint and status code; the endpoint of an unknown path is other.",
    labelNames: ["endpoint", "code"],
    registers,
  });
  const durations = new Histogram({
    name: "roundhouse_http_request_duration_seconds",
    help: "Duration of requests, from the request line to the end of the response, by endpoint.",
    labelNames: ["endpoint"],
    buckets: BUCKETS_SECONDS,
    registers,
  });
  const endpoints = new Set([...ALWAYS, ...paths, ...GROUPS]);
  const endpointOf = (path: string) =>
    endpoints.has(path) ? path : (GROUPS.find((group) => path.startsWith(`${group}/`)) ?? "other");
  return {
    note(path, status, ms) {
      const endpoint = endpointOf(path);
      requests.inc({ endpoint, code: status });
      durations.observe({ endpoint }, ms / 1_000);
    },
  };
}
