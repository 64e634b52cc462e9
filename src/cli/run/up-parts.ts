import type { HouseEntry } from "../../houses-file/load.ts";
import { type Api, ENDPOINTS, startApi } from "../../serve/server.ts";
import type { Checks } from "../../http/health.ts";
import type { Settings } from "../../config/environment.ts";
import { connect } from "../../db/client.ts";
import type { Log } from "../../log.ts";
import { createMetrics, type Metrics } from "../../metrics/metrics.ts";
import type { Workers } from "../../queue/worker.ts";
import { VERSION } from "../../version.ts";
import { startConsole } from "../../console/start.ts";
import { notifySurface } from "../../console/top-up/notify.ts";
import { type Ops, startOps } from "../../ops/start.ts";
import type { Life } from "./life.ts";
import { isDemoInstance } from "../../topups/demo/method.ts";
import { servesThisMachineAlone } from "../../this-machine.ts";
import { authSecret } from "../../config/auth-secret.ts";
import { mailKeysOf } from "../../mail/seal.ts";
import { carryOverSecret, localLink } from "./ops.ts";
import { say } from "../output.ts";
import { urlsOf } from "./part.ts";
import { printMails } from "./print-mails.ts";
import { readinessChecks } from "./readiness.ts";
import { openServingConnections } from "./serving-connections.ts";
import { openWorkConnections, startWork, type Work } from "./work.ts";

/** What the steps of a start share. */
export interface Setup {
  life: Life;
  settings: Settings;
  houses: HouseEntry[];
  databaseUrl: string;
  /** Past a pooler. */
  directUrl: string;
  redisUrl: string;
  log: Log;
}

/** The connections of all parts, and the URLs of those that open more. */
export type Database = Awaited<ReturnType<typeof openDatabase>>;

/** Opens the connections of all parts. */
export async function openDatabase({ life, settings, databaseUrl, log }: Setup) {
  const [forWork, forApi, forOps, forConsole] = await Promise.all([
    urlsOf("worker", databaseUrl, settings, log),
    urlsOf("api", databaseUrl, settings, log),
    urlsOf("ops", databaseUrl, settings, log),
    urlsOf("console", databaseUrl, settings, log),
  ]);
  const work = openWorkConnections(life, forWork);
  const serving = await openServingConnections(life, { forApi, forOps, forConsole });
  // like a command: keys and links of this machine are made with all rights
  const ownSql = connect(databaseUrl, { name: "command", max: 1, pooled: forWork.pooled });
  life.onStop("the connection of this machine", () => ownSql.end({ timeout: 2 }));
  return { ...serving, forApi, forOps, forConsole, work, ownSql };
}

/** Starts the worker and the demo houses. */
export async function startWorking(setup: Setup, { work, sql }: Database): Promise<Work & { metrics: Metrics }> {
  const { life, settings, houses, redisUrl, log } = setup;
  let workers: Workers | null = null;
  const sources = { sql, queues: () => workers?.queues ?? null };
  const metrics = createMetrics(sources, { version: VERSION, endpoints: ENDPOINTS, log: quiet(log) });
  const shared = { settings, houses, queues: undefined, connections: work, redisUrl, metrics, log: quiet(log) };
  const working = await startWork(life, shared);
  workers = working.workers;
  life.ending.throwIfAborted();
  return { ...working, metrics };
}

/** Starts the API with the site, the console and the pages of operations. */
export async function startServing(
  setup: Setup,
  database: Database,
  { workers, metrics }: Work & { metrics: Metrics },
): Promise<{ api: Api; checks: Checks }> {
  const { life, settings, directUrl, redisUrl, log } = setup;
  const { sql, meter, opsSql, consoleSql, forApi } = database;
  const checks = readinessChecks({ sql, directUrl, redisUrl, workers });
  await carryOverSecret([opsSql, consoleSql], settings, log);
  const secret = await authSecret(settings);
  let ownUrl = "";
  const ops = openOpsPages(setup, database, { workers, secret, ownUrl: () => ownUrl });
  const consoleSurface = openConsole(setup, database, secret);
  if (mustPrintMails(settings)) startPrintingMails(setup, database, secret);
  const api = await startApi({
    surfaces: [ops, consoleSurface, notifySurface({ sql: consoleSql, settings, log: quiet(log) })],
    sql,
    meter,
    directUrl: forApi.directUrl,
    redisUrl,
    settings,
    log: quiet(log),
    version: VERSION,
    checks,
    secret,
    metrics,
  });
  life.ending.addEventListener("abort", () => api.draining());
  life.onStop("the API", () => api.close());
  ownUrl = api.url;
  life.ending.throwIfAborted();
  return { api, checks };
}

function openOpsPages(
  { life, settings, log }: Setup,
  { opsSql, ownSql, forOps }: Database,
  { workers, secret, ownUrl }: { workers: Workers; secret: string; ownUrl: () => string },
): Ops {
  const printLink = async () => {
    const link = await localLink(ownSql, ownUrl());
    if (link !== null) say(`sign in, once, within an hour: ${link}`);
  };
  const { LIVE_WINDOW_SECONDS: liveWindowSeconds } = settings;
  const ops = startOps({
    parts: { sql: opsSql, queues: workers.queues, liveWindowSeconds, settings, log: quiet(log) },
    directUrl: forOps.directUrl,
    secret,
    settings,
    printLink: servesThisMachineAlone(settings) ? printLink : null,
  });
  life.onStop("the operations pages", () => ops.close());
  return ops;
}

function openConsole(
  { life, settings, houses, log }: Setup,
  { consoleSql, forConsole }: Database,
  secret: string,
): ReturnType<typeof startConsole> {
  const surface = startConsole({
    parts: { sql: consoleSql, settings, log: quiet(log) },
    directUrl: forConsole.directUrl,
    secret,
    isDemo: isDemoInstance(settings, houses),
  });
  life.onStop("the console", () => surface.close());
  return surface;
}

/** Whether mails are printed here: without a mail server, and only on this machine. */
export function mustPrintMails(settings: Settings): boolean {
  return servesThisMachineAlone(settings) && settings.SMTP_URL === undefined;
}

function startPrintingMails({ life, settings, log }: Setup, { work }: Database, secret: string): void {
  const keys = mailKeysOf(secret, settings.AUTH_SECRET_PREVIOUS);
  const printing = printMails(work.work, { say, keys, log, signal: life.ending });
  life.onStop("the printing of mails", () => printing);
}

/** Two lines per second and table would hide what the start prints; LOG_LEVEL=debug shows them all. */
function quiet(log: Log): Log {
  return log.level === "info" ? log.child({}, { level: "warn" }) : log;
}
