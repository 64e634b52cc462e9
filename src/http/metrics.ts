import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Express } from "express";
import type { Settings } from "../config/environment.ts";
import { METRICS_TYPE, type Metrics } from "../metrics/metrics.ts";
import { isLoopback, servesThisMachineAlone } from "../this-machine.ts";
import { resource } from "./resource.ts";

/** Headers that proxies add: a proxied client may be on another machine. */
const FORWARDED = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

const NOT_OPEN =
  "without a token, metrics are open to this machine only: set METRICS_TOKEN, 16 characters or more, in the environment of this process, and send it as `Authorization: Bearer …`\n";
const WRONG_TOKEN = "expected the METRICS_TOKEN of this process as `Authorization: Bearer …`\n";

/**
 * Adds `/metrics`. With METRICS_TOKEN every request needs the token. Without it, it responds only if the service
 * listens on this machine alone, and never through a proxy.
 */
export function addMetrics(
  app: Express,
  metrics: Pick<Metrics, "scrape">,
  settings: Pick<Settings, "HOST" | "PUBLIC_URL" | "TRUSTED_PROXIES" | "METRICS_TOKEN">,
): void {
  resource(app, "/metrics", async ({ headers }, response) => {
    const { METRICS_TOKEN: token } = settings;
    if (token === undefined && !(servesThisMachineAlone(settings) && isLocal(headers)))
      return sendText(response, 403, NOT_OPEN);
    if (token !== undefined && !carries(headers, token)) {
      response.setHeader("WWW-Authenticate", 'Bearer realm="metrics"');
      return sendText(response, 401, WRONG_TOKEN);
    }
    sendText(response, 200, await metrics.scrape(), METRICS_TYPE);
  });
}

/** The Host must be a local name: with DNS rebinding a foreign page reaches this machine, but under its own name. */
function isLocal(headers: IncomingHttpHeaders): boolean {
  const host = (headers.host ?? "").replace(/:\d+$/, "");
  return isLoopback(host) && FORWARDED.every((name) => headers[name] === undefined);
}

/** Compares the hashes, which have equal length, in constant time. */
function carries({ authorization = "" }: IncomingHttpHeaders, token: string): boolean {
  const given = /^Bearer +(.+)$/i.exec(authorization)?.[1] ?? "";
  return timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", token, "buffer"));
}

function sendText(response: ServerResponse, status: number, text: string, type = "text/plain; charset=utf-8"): void {
  const body = Buffer.from(text);
  response.statusCode = status;
  response.setHeader("Content-Type", type);
  response.setHeader("Content-Length", body.length);
  response.setHeader("Cache-Control", "no-store");
  response.end(body);
}
