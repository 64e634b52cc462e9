import type { HouseEntry } from "../../houses-file/load.ts";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Command } from "commander";
import type { Api } from "../../serve/server.ts";
import type { Checks } from "../../http/health.ts";
import { loadSettings, type Settings } from "../../config/environment.ts";
import { migrate } from "../../db/migrate.ts";
import { requireSession } from "../../db/connections/pooler.ts";
import { claimDataDir } from "../../embedded/lock.ts";
import { removeRunFile, writeRunFile } from "../../embedded/run-file.ts";
import { startServers } from "../../embedded/servers.ts";
import { reasonOf } from "../../errors.ts";
import { createLog, type Log } from "../../log.ts";
import { startTelemetry } from "../../telemetry.ts";
import { VERSION } from "../../version.ts";
import { examples } from "../arguments.ts";
import { mintDemoKey } from "./demo-key.ts";
import { type Life, live } from "./life.ts";
import { servesThisMachineAlone } from "../../this-machine.ts";
import { localLink } from "./ops.ts";
import { paint, print, printJson, say } from "../output.ts";
import { findDirectUrl, reaching } from "../session.ts";
import { readHousesFile } from "./work.ts";
import { mustPrintMails, openDatabase, type Setup, startServing, startWorking } from "./up-parts.ts";

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
          await startTelemetry(settings.OTEL_EXPORTER_OTLP_ENDPOINT, { part: "up", version: VERSION, log }),
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
  /** When the key ends; another start on the same database revokes it too. */
  keyEnd: string;
  /** A link that signs the local operator in, once; null if other machines can reach us. */
  opsLink: string | null;
  /** Whether mails are printed here because there is no mail server. */
  printsMails: boolean;
  houses: HouseEntry[];
}

async function start(life: Life, settings: Settings, log: Log): Promise<Started> {
  const startedAt = new Date().toISOString();
  const houses = readHousesFile(settings, log);
  life.onStop("the claim on the data folder", await claimDataDir(settings.DATA_DIR));
  life.ending.throwIfAborted();
  const { databaseUrl, redisUrl } = await openServers(life, settings);
  const directUrl = await findDirectUrl(settings, databaseUrl);
  const setup = { life, settings, houses, databaseUrl, directUrl, redisUrl, log };
  await migrateDatabase(setup);
  const database = await openDatabase(setup);
  const working = await startWorking(setup, database);
  const serving = await startServing(setup, database, working);
  const { url } = serving.api;
  const { key, revoke } = await mintDemoKey(database.ownSql);
  // if the database is unreachable, the next start does it
  life.onStop("the demo key", () => revoke().catch((error: unknown) => log.debug(`not revoked: ${reasonOf(error)}`)));
  await saveRunFile(setup, { startedAt, url, demoUrl: working.demo.url(), key });
  await firstRounds(serving.api, serving.checks, life.ending);
  const opsLink = servesThisMachineAlone(settings) ? await localLink(database.ownSql, url) : null;
  const keyEnd =
    settings.DATABASE_URL === undefined ? "this stops" : "this stops or another `up` starts on its database";
  return { url, key, keyEnd, opsLink, printsMails: mustPrintMails(settings), houses };
}

async function migrateDatabase({ life, directUrl, log }: Setup): Promise<void> {
  await reaching(directUrl, () => requireSession(directUrl));
  await migrate(directUrl, (line) => log.info(line));
  life.ending.throwIfAborted();
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

/** Waits until polls have brought rounds, so that the first pasted call finds rounds of every table. */
async function firstRounds(api: Api, { polling }: Checks, ending: AbortSignal): Promise<void> {
  const deadline = performance.now() + FIRST_ROUNDS_WITHIN_MS;
  while (performance.now() < deadline && !(api.hasRounds() && (await polling.isGood().catch(() => false)))) {
    await delay(50, undefined, { signal: ending });
  }
}

async function greet({ url, key, keyEnd, opsLink, printsMails, houses }: Started): Promise<void> {
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
    `  demo key  ${paint.bold(key)}  (all houses; works until ${keyEnd})`,
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
