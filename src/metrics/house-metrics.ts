import { Counter, Histogram, type Registry } from "prom-client";
import type { HouseResponse, HouseClient } from "../houses/polling/client.ts";

/** Status codes that a house may have a series of; any other counts as its class, such as 2xx. */
const CODES: ReadonlySet<number> = new Set([
  200, 204, 206, 301, 302, 304, 307, 308, 400, 401, 403, 404, 408, 410, 425, 429, 500, 502, 503, 504, 520, 521, 522,
  523, 524,
]);

/** Measures every request to a house, whichever job sends it: polls, and pages of history. */
export function measureHouses(registry: Registry): (client: HouseClient) => HouseClient {
  const registers = [registry];
  const requests = new Counter({
    name: "roundhouse_house_requests_total",
    help: "Requests to a house by outcome: response, unchanged (304), or the reason of the failure; code is none if there was no response.",
    labelNames: ["house", "outcome", "code"],
    registers,
  });
  const durations = new Histogram({
    name: "roundhouse_house_request_duration_seconds",
    help: "Duration of requests to a house, until its response or the timeout.",
    labelNames: ["house"],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers,
  });
  const bytes = new Counter({
    name: "roundhouse_house_response_bytes_total",
    help: "Bytes of response bodies of a house, uncompressed.",
    labelNames: ["house"],
    registers,
  });
  return (client) => ({
    async fetch(request, signal) {
      const response = await client.fetch(request, signal);
      const { house } = request;
      requests.inc({ house, outcome: outcomeOf(response), code: codeOf(response.status) });
      durations.observe({ house }, response.elapsedMs / 1_000);
      if (response.kind === "response") bytes.inc({ house }, response.body.length);
      return response;
    },
    close: () => client.close(),
  });
}

function outcomeOf(response: HouseResponse): string {
  return response.kind === "failed" ? response.reason : response.kind;
}

function codeOf(status: number | null): string {
  if (status === null) return "none";
  return CODES.has(status) ? String(status) : `${Math.floor(status / 100)}xx`;
}
