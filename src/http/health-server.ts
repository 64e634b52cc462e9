import express from "express";
import type { Settings } from "../config/environment.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { ApiError } from "./errors.ts";
import { addHealth, type Checks } from "./health.ts";
import { openServer } from "./http.ts";
import { addMetrics } from "./metrics.ts";
import { sendErrors, beginRequest, refuseUnfit, setCommonHeaders } from "./request.ts";

/** Health and metrics only, for a process without an API. */
export interface HealthServer {
  url: string;
  /** From now on `/readyz` responds with 503. */
  draining(): void;
  close(): Promise<void>;
}

/**
 * Serves `/healthz`, `/readyz` and `/metrics` on WORKER_PORT, for the supervision of a separate worker.
 * @throws UsageError if the port is not available.
 */
export async function startHealthServer(parts: {
  settings: Pick<Settings, "HOST" | "WORKER_PORT" | "PUBLIC_URL" | "TRUSTED_PROXIES" | "METRICS_TOKEN">;
  version: string;
  checks: Checks;
  metrics: Metrics;
  log: Log;
}): Promise<HealthServer> {
  const { settings, version, checks, metrics, log } = parts;
  let isDraining = false;
  let site = "";
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("query parser", false);
  app.use(beginRequest(log, metrics.api.requests.note), setCommonHeaders, refuseUnfit);
  addHealth(app, { version, checks, isDraining: () => isDraining }, log);
  addMetrics(app, metrics, settings);
  app.use(() => {
    throw new ApiError("not_found");
  });
  app.use(sendErrors(() => site, log));
  const address = { host: settings.HOST, port: settings.WORKER_PORT, variable: "WORKER_PORT" } as const;
  const server = await openServer(app, address, () => site, log);
  site = server.url;
  return { url: server.url, draining: () => (isDraining = true), close: () => server.close() };
}
