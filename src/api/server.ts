import compression from "compression";
import express, { type Express } from "express";
import helmet from "helmet";
import { CALLERS_CHANNEL, findCaller } from "../callers/caller-store.ts";
import { touchKeys } from "../callers/store.ts";
import type { Settings } from "../config.ts";
import type { Sql } from "../db/client.ts";
import { listen } from "../db/listener.ts";
import { PUBLISHED_CHANNEL } from "../db/notifier.ts";
import type { Log } from "../log.ts";
import { addPages } from "../site/pages.ts";
import { consumeCalls } from "../usage/store.ts";
import { accuracy } from "./accuracy.ts";
import { ApiError } from "./errors.ts";
import { isNamed } from "./etag.ts";
import { forecasts } from "./forecasts.ts";
import { games } from "./games.ts";
import { addHealth, type Checks } from "./health.ts";
import { openServer } from "./http.ts";
import { knowCallers, type KnownCallers } from "./known-callers.ts";
import { rememberLastUsed, type LastUsed } from "./last-used.ts";
import { loadMemory, type Memory } from "./memory.ts";
import { meterCalls, type Metering } from "./metering.ts";
import { authenticate, requireStanding, type Operation } from "./operation.ts";
import { answerErrors, beginRequest, queryOf, refuseUnfit, sendJson } from "./request.ts";
import { resource } from "./resource.ts";
import { rounds } from "./rounds.ts";
import type { Table } from "./tables.ts";
import { answerUsage, USAGE_PATH } from "./usage.ts";

const OPERATIONS: readonly Operation[] = [games, rounds, forecasts, accuracy];
/** Smaller answers do not get smaller. */
const COMPRESSED_FROM_BYTES = 1_024;

/** What the API and the site are made of. */
export interface ApiParts {
  sql: Sql;
  /** Leads to the database itself, not through a transaction pooler: for LISTEN. */
  directUrl: string;
  settings: Pick<Settings, "HOST" | "PORT" | "PUBLIC_URL" | "LIVE_WINDOW_SECONDS" | "BUFFER_ROUNDS">;
  log: Log;
  version: string;
  checks: Checks;
}

/** The running API. */
export interface Api {
  /** Where it is reached from this machine, without a slash at its end. */
  url: string;
  port: number;
  /** Whether callers find rounds of every table that is polled. */
  hasRounds(): boolean;
  /** From now on `/readyz` says 503, so that no new work is sent here; everything is still answered. */
  draining(): void;
  /** Takes no more connections, lets running requests end for 8 s, writes what is due, and lets go of the database. */
  close(): Promise<void>;
}

/**
 * Serves the API, the site and the health checks: what is published, from memory, to callers with a key.
 *
 * It goes on answering known callers while PostgreSQL, Redis or every worker is away; `X-Data-Age` says how old the
 * answer is. It closes nothing that it was given.
 * @throws UsageError where the port is taken; the driver's error where what is published cannot be read at the start.
 */
export async function startApi({ sql, directUrl, settings, log, version, checks }: ApiParts): Promise<Api> {
  const { BUFFER_ROUNDS: bufferRounds, LIVE_WINDOW_SECONDS: liveWindowSeconds } = settings;
  const memory = await loadMemory(sql, { bufferRounds, liveWindowSeconds }, log);
  const callers = knowCallers((sha256) => findCaller(sql, sha256), log);
  const lastUsed = rememberLastUsed((keys) => touchKeys(sql, keys), log);
  let isDraining = false;
  let site = settings.PUBLIC_URL?.replace(/\/+$/, "") ?? "";

  const app = createApp(log);
  const nowMs = () => memory.clock().nowMs;
  const metering = meterCalls((calls, deadline) => consumeCalls(sql, calls, deadline), nowMs, log);
  for (const operation of OPERATIONS) addOperation(app, operation, { memory, callers, lastUsed, metering });
  addUsage(app, { sql, callers, lastUsed });
  addHealth(app, { version, checks, isDraining: () => isDraining }, log);
  addPages(app, { memory, version, site: () => site });
  app.use(() => {
    throw new ApiError("not_found");
  });
  app.use(answerErrors(() => site, log));

  const listener = listen(
    directUrl,
    {
      channels: [PUBLISHED_CHANNEL, CALLERS_CHANNEL],
      heard: (channel) => (channel === CALLERS_CHANNEL ? callers.doubt() : memory.refresh()),
      joined() {
        callers.doubt();
        memory.refresh("everything");
      },
    },
    log,
  );
  const letGo = async () => {
    await Promise.all([listener.close(), memory.close(), lastUsed.close()]);
  };
  try {
    const address = { host: settings.HOST, port: settings.PORT, variable: "PORT" } as const;
    const server = await openServer(app, address, () => site, log);
    if (site === "") site = server.url;
    return {
      url: server.url,
      port: server.port,
      hasRounds: () => memory.tables.tables.every((table) => table.rounds.length > 0 || !isPolled(table)),
      draining: () => (isDraining = true),
      async close() {
        isDraining = true;
        await server.close();
        await letGo();
      },
    };
  } catch (error) {
    await letGo();
    throw error;
  }
}

function isPolled({ enabled, house }: Table): boolean {
  return enabled && house.enabled && !house.paused;
}

function createApp(log: Log): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag"); // see isNamed
  app.set("query parser", false); // see readParams
  app.enable("case sensitive routing");
  app.enable("strict routing");
  app.use(beginRequest(log));
  app.use(helmet({ contentSecurityPolicy: { useDefaults: false, directives: CONTENT_POLICY } }));
  app.use(compression({ threshold: COMPRESSED_FROM_BYTES }));
  app.use(refuseUnfit);
  return app;
}

/** Pages are made here: nothing is loaded from elsewhere, no script runs, nobody may put them in a frame. */
const CONTENT_POLICY = {
  defaultSrc: ["'none'"],
  styleSrc: ["'self'"],
  imgSrc: ["'self'"],
  baseUri: ["'none'"],
  formAction: ["'none'"],
  frameAncestors: ["'none'"],
};

/** The order of a request: cheap refusals first, and what it costs the caller last. */
function addOperation(
  app: Express,
  operation: Operation,
  {
    memory,
    callers,
    lastUsed,
    metering,
  }: { memory: Memory; callers: KnownCallers; lastUsed: LastUsed; metering: Metering },
): void {
  resource(app, operation.path, async (request, response) => {
    const caller = await authenticate(request.get("x-api-key"), callers);
    response.locals.caller = caller;
    const plan = requireStanding(caller);
    const answer = operation.answer(queryOf(request.url), { memory, plan });
    lastUsed.note(caller.keyId);
    const isKnown = isNamed(request.get("if-none-match"), answer.etag);
    // made before it is counted, so that a fault of ours costs nobody a call
    const json = isKnown ? "" : answer.json();
    if (!isKnown) await metering.admit(caller, operation.endpoint);
    response.setHeader("ETag", answer.etag);
    response.setHeader("X-Data-Age", memory.ageSeconds());
    if (isKnown) response.status(304).end();
    else sendJson(response, 200, json);
  });
}

function addUsage(
  app: Express,
  { sql, callers, lastUsed }: { sql: Sql; callers: KnownCallers; lastUsed: LastUsed },
): void {
  resource(app, USAGE_PATH, async (request, response) => {
    const caller = await authenticate(request.get("x-api-key"), callers);
    response.locals.caller = caller;
    const json = await answerUsage(sql, caller, queryOf(request.url));
    lastUsed.note(caller.keyId);
    sendJson(response, 200, json);
  });
}
