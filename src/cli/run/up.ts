import type { HouseEntry } from "../../houses-file/load.ts";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Command } from "commander";
import { type Api, ENDPOINTS, startApi } from "../../serve/server.ts";
import type { Checks } from "../../http/health.ts";
import { loadSettings, type Settings } from "../../config/environment.ts";
import { connect } from "../../db/client.ts";
import { migrate } from "../../db/migrate.ts";
import { requireSession } from "../../db/pooler.ts";
import { claimDataDir } from "../../embedded/lock.ts";
import { removeRunFile, writeRunFile } from "../../embedded/run-file.ts";
import { startServers } from "../../embedded/servers.ts";
import { reasonOf } from "../../errors.ts";
import { createLog, type Log } from "../../log.ts";
import { createMetrics, type Metrics } from "../../metrics/metrics.ts";
import type { Workers } from "../../queue/worker.ts";
import { startTelemetry } from "../../telemetry.ts";
import { VERSION } from "../../version.ts";
import { examples } from "../arguments.ts";
import { startConsole } from "../../console/start.ts";
import { notifySurface } from "../../console/top-up/notify.ts";
import { type Ops, startOps } from "../../ops/start.ts";
import { mintDemoKey } from "./demo-key.ts";
import { type Life, live } from "./life.ts";
import { isDemoInstance } from "../../topups/demo/method.ts";
import { servesThisMachineAlone } from "../../this-machine.ts";
import { authSecret } from "../../config/auth-secret.ts";
import { mailKeysOf } from "../../mail/seal.ts";
import { carryOverSecret, localLink } from "./ops.ts";
import { paint, print, printJson, say } from "../output.ts";
import { urlsOf } from "./part.ts";
import { printMails } from "./print-mails.ts";
import { readinessChecks } from "./readiness.ts";
import { reaching } from "../session.ts";
import { openServingConnections } from "./serving-connections.ts";
import { openWorkConnections, readHousesFile, startWork, type Work } from "./work.ts";

/** A first poll that takes longer belongs to a failing house; the start does not wait for it. */
const FIRST_ROUNDS_WITHIN_MS = 5_000;

/** `roundhouse up`, which is `npm start`: everything in one process, on private servers if none are configured. */
export function upCommand(): Command {
  return new Command("up")
    .description(
      "run everything in one process: private servers unless given, schema, demo houses, worker, API and site",
    )
    .option("--json", "print one line of JSON when it is ready", false)
    .addHelpText("after", examples("up", "up --json"))
    .action(async ({ json }: { json: boolean }) => {
      const settings = loadSettings();
      const log = createLog(settings.LOG_LEVEL, process.stderr.isTTY);
      await live(log, async (life) => {
        life.onStop(
          "telemetry",
          await startTelemetry(settings.OTEL_EXPORTER_OTLP_ENDPOINT, { part: "up", version: VERSION }),
        );
        const started = await start(life, settings, log);
        const { url, key, opsLink } = started;
        if (json) await printJson({ event: "ready", url, api_key: key, ops_url: opsLink ?? `${url}/ops` });
        else await greet(started);
      });
    });
}

/** The result of a start. */
interface Started {
  url: string;
  key: string;
  /** A link that signs the local operator in, once; null if other machines can reach us. */
  opsLink: string | null;
  /** Whether mails are printed here because there is no mail server. */
  printsMails: boolean;
  houses: HouseEntry[];
}

/** What the steps of a start share. */
interface Setup {
  life: Life;
  settings: Settings;
  houses: HouseEntry[];
  databaseUrl: string;
  /** Past a pooler. */
  directUrl: string;
  redisUrl: string;
  log: Log;
}

async function start(life: Life, settings: Settings, log: Log): Promise<Started> {
  const startedAt = new Date().toISOString();
  const houses = readHousesFile(settings, log);
  life.onStop("the claim on the data folder", await claimDataDir(settings.DATA_DIR));
  life.ending.throwIfAborted();
  const { databaseUrl, redisUrl } = await openServers(life, settings);
  const directUrl = settings.DATABASE_DIRECT_URL ?? databaseUrl;
  const setup = { life, settings, houses, databaseUrl, directUrl, redisUrl, log };
  await migrateDatabase(setup);
  const database = await openDatabase(setup);
  const working = await startWorking(setup, database);
  const serving = await startServing(setup, database, working);
  const { url } = serving.api;
  const { key, revoke } = await mintDemoKey(database.ownSql, settings.DATA_DIR);
  // if the database is unreachable, the next start does it
  life.onStop("the demo key", () => revoke().catch((error: unknown) => log.debug(`not revoked: ${reasonOf(error)}`)));
  await saveRunFile(setup, { startedAt, url, demoUrl: working.demo.url(), key });
  await firstRounds(serving.api, serving.checks, life.ending);
  const opsLink = servesThisMachineAlone(settings) ? await localLink(database.ownSql, url) : null;
  return { url, key, opsLink, printsMails: mustPrintMails(settings), houses };
}

async function migrateDatabase({ life, directUrl, log }: Setup): Promise<void> {
  await reaching(directUrl, async () => {
    await requireSession(directUrl);
    await migrate(directUrl, (line) => log.info(line));
  });
  life.ending.throwIfAborted();
}

/** The connections of all parts, and the URLs of those that open more. */
type Database = Awaited<ReturnType<typeof openDatabase>>;

async function openDatabase({ life, settings, databaseUrl, log }: Setup) {
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

async function startWorking(setup: Setup, { work, sql }: Database): Promise<Work & { metrics: Metrics }> {
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

async function startServing(
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
function mustPrintMails(settings: Settings): boolean {
  return servesThisMachineAlone(settings) && settings.SMTP_URL === undefined;
}

function startPrintingMails({ life, settings, log }: Setup, { work }: Database, secret: string): void {
  const keys = mailKeysOf(secret, settings.AUTH_SECRET_PREVIOUS);
  const printing = printMails(work.work, { say, keys, log, signal: life.ending });
  life.onStop("the printing of mails", () => printing);
}

async function saveRunFile(
  { life, settings, databaseUrl, redisUrl }: Setup,
  { startedAt, url, demoUrl, key }: { startedAt: string; url: string; demoUrl: string | null; key: string },
): Promise<void> {
  await writeRunFile(settings.DATA_DIR, {
    pid: process.pid,
    started_at: startedAt,
    version: VERSION,
    url,
    worker_url: null,
    database_url: databaseUrl,
    redis_url: redisUrl,
    demo_house_url: demoUrl,
    api_key: key,
  });
  life.onStop("run.json", () => removeRunFile(settings.DATA_DIR));
}

async function openServers(life: Life, settings: Settings): Promise<{ databaseUrl: string; redisUrl: string }> {
  const servers = await startServers({
    dataDir: settings.DATA_DIR,
    databaseUrl: settings.DATABASE_URL,
    redisUrl: settings.REDIS_URL,
    say,
  });
  life.onStop("the private servers", () => servers.stop());
  servers.onDeath((what, detail) => {
    const name = { postgres: "PostgreSQL", redis: "Redis" }[what];
    const [how = ""] = detail.split(";");
    const log = join(settings.DATA_DIR, `${what}.log`);
    life.fail(`the private ${name} is gone (${how}; see ${log}); start again: nothing that was stored is lost`);
  });
  life.ending.throwIfAborted();
  return servers;
}

/** Two lines per second and table would hide what the start prints; LOG_LEVEL=debug shows them all. */
function quiet(log: Log): Log {
  return log.level === "info" ? log.child({}, { level: "warn" }) : log;
}

/** Waits until polls have brought rounds, so that the first pasted call finds rounds of every table. */
async function firstRounds(api: Api, { polling }: Checks, ending: AbortSignal): Promise<void> {
  const deadline = performance.now() + FIRST_ROUNDS_WITHIN_MS;
  while (performance.now() < deadline && !(api.hasRounds() && (await polling.isGood().catch(() => false)))) {
    await delay(50, undefined, { signal: ending });
  }
}

async function greet({ url, key, opsLink, printsMails, houses }: Started): Promise<void> {
  const simulated = houses.filter(({ settings }) => settings.simulated && settings.enabled);
  const demos = houses.filter(({ settings }) => settings.demo && !settings.simulated && settings.enabled);
  const names = (some: HouseEntry[]) => some.map(({ settings }) => settings.id).join(", ");
  const lines = [
    paint.green("Roundhouse is running."),
    "",
    `  site      ${paint.bold(url)}`,
    opsLink === null
      ? `  operate   ${paint.bold(`${url}/ops`)}  (\`npx roundhouse ops-user create\` makes the first admin)`
      : `  operate   ${paint.bold(opsLink)}\n            (signs you in, once, within an hour; ${url}/ops prints another)`,
    `  console   ${paint.bold(`${url}/console`)}  (where callers sign up, top up, buy and make keys)`,
    ...(printsMails ? ["            (mails to them, with their links, are printed here: SMTP_URL is not set)"] : []),
    `  demo key  ${paint.bold(key)}  (all houses; works until this stops)`,
    "",
    `  curl -H "X-Api-Key: ${key}" ${url}/api/v1/games`,
    "",
    ...(demos.length === 0 ? [] : [`  ${names(demos)}: true rounds of the past, played again by a demo house.`]),
    ...(simulated.length === 0 ? [] : [`  ${names(simulated)}: simulated rounds, with errors on purpose.`]),
    "  Look around in another terminal: npx roundhouse table list, house list, queue list, doctor.",
    "  Ctrl-C stops everything.",
  ];
  await print(lines.join("\n"));
}
