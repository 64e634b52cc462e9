import { loadHouses } from "../../houses-file/load.ts";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Settings, variablesOf } from "../../config/environment.ts";
import { withConnections } from "../../db/with-connections.ts";
import { readDatabaseFacts } from "../../db/facts.ts";
import { schemaState } from "../../db/migrate.ts";
import { codeOf, reasonOf, UsageError } from "../../errors.ts";
import { DISK_ADVICE, diskProblem, readDisk } from "../../housekeeping/disk.ts";
import { type HouseFacts, readHouses } from "../../health/house-facts-store.ts";
import { statusOf } from "../../houses/status.ts";
import { createLog, withoutPassword } from "../../log.ts";
import { clockProblem, readClocks } from "../../queue/clock.ts";
import { checkRedis, connectProducer } from "../../queue/redis.ts";
import { findHeartbeat } from "../../queue/store.ts";
import { checkPooler } from "./pooler.ts";
import { slowPolls } from "../run/poll-rate.ts";
import type { Found } from "../session.ts";
import { fail, type Finding, ok, warn } from "./finding.ts";

const CONNECTION = { name: "doctor", max: 1 } as const;
const OLDEST_POSTGRES = 15;
/** The reconciler beats every 5 s; the alert has the same limit. */
const SILENT_MS = 60_000;

/** One line lists at most this many houses; `house list` has all. */
const MOST_NAMED = 5;

/** Neither set, nor of an instance here that has the other server. */
const NOTHING_FOUND = "no server is set, and no instance runs here with these settings";
const START_ADVICE = "start it with `npm start`, or set DATABASE_URL and REDIS_URL";

/** Checks this machine: Node and the data folder. */
export async function checkHere({ settings, running }: Found): Promise<Finding[]> {
  return [
    ok("node", process.versions.node),
    ok(
      "instance",
      running === null ? "none runs on this data folder" : `pid ${running.pid} since ${running.started_at}`,
    ),
    ...(await checkFolder(settings.DATA_DIR)),
  ];
}

/** Checks PostgreSQL, Redis, their clocks, the schema and the workers. Checks that need a failed server are skipped. */
export async function checkServers(found: Found): Promise<Finding[]> {
  const { databaseUrl } = found;
  const pooler = databaseUrl === undefined ? null : await checkPooler(databaseUrl, found.settings.DATABASE_DIRECT_URL);
  const ownUrl = databaseUrl === undefined ? undefined : (found.settings.DATABASE_DIRECT_URL ?? databaseUrl);
  const postgres = pooler?.status === "fail" ? pooler : await checkPostgres(ownUrl);
  const redis = await checkRedisServer(found.redisUrl);
  const usable = { database: usableUrl(postgres, ownUrl), redis: usableUrl(redis, found.redisUrl) };
  const migrations = usable.database === null ? null : await checkMigrations(usable.database);
  return [
    postgres,
    ...(pooler === null || pooler === postgres ? [] : [pooler]),
    redis,
    ...(migrations === null ? [] : [migrations]),
    ...(usable.database === null || usable.redis === null ? [] : [await checkClocks(usable.database, usable.redis)]),
    ...(usable.database === null || migrations?.status !== "ok"
      ? []
      : [await checkWorkers(usable.database), await checkHouses(usable.database, found.settings.LIVE_WINDOW_SECONDS)]),
  ];
}

/** Checks the houses file and its poll intervals. Returns the ids of the polled houses if the file can be read. */
export function checkHousesFile(settings: Settings): { findings: Finding[]; houses: string[] } {
  const check = "houses file";
  try {
    const houses = loadHouses(settings.HOUSES_FILE, variablesOf(), { allowPrivate: settings.ALLOW_PRIVATE_HOUSES });
    const tables = houses.reduce((sum, house) => sum + house.settings.tables.length, 0);
    const slow = slowPolls(houses.map((house) => house.settings));
    const findings = [
      ok(check, `${settings.HOUSES_FILE}: ${houses.length} houses, ${tables} tables`),
      ...slow.map(({ found, advice }) => warn("poll rate", found, advice)),
    ];
    return { findings, houses: houses.flatMap(({ settings: { id, enabled } }) => (enabled ? [id] : [])) };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const [first = "", ...problems] = error.message.split("\n");
    const text = problems.map((problem) => problem.trim()).join("; ");
    return { findings: [fail(check, first, text || "correct the file")], houses: [] };
  }
}

function usableUrl({ status }: Finding, url: string | undefined): string | null {
  return status === "fail" || url === undefined ? null : url;
}

async function checkFolder(dataDir: string): Promise<Finding[]> {
  const folder = await nearestFolder(resolve(dataDir));
  try {
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const advice = `make ${folder} writable for user ${process.getuid?.()}, or set DATA_DIR to another folder`;
    return [fail("data folder", `${folder} cannot be written (${codeOf(error)})`, advice)];
  }
  const { free, total } = await readDisk(folder);
  const found = `${((free / total) * 100).toFixed(0)} % free, ${(free / 1e9).toFixed(1)} GB`;
  const isLow = diskProblem(folder, { free, total }) !== null;
  return [ok("data folder", resolve(dataDir)), isLow ? warn("disk", found, DISK_ADVICE) : ok("disk", found)];
}

/** The folder, or its nearest existing ancestor. */
async function nearestFolder(folder: string): Promise<string> {
  for (let here = folder; ; here = dirname(here)) {
    const isThere = await access(here).then(
      () => true,
      (error: unknown) => codeOf(error) !== "ENOENT",
    );
    if (isThere || here === dirname(here)) return here;
  }
}

async function checkPostgres(url: string | undefined): Promise<Finding> {
  const check = "postgres";
  if (url === undefined) return fail(check, NOTHING_FOUND, START_ADVICE);
  try {
    const { version, versionText, connections, mostConnections } = await readDatabaseFacts(url);
    const found = `${versionText}, ${connections} of ${mostConnections} connections, ${withoutPassword(url)}`;
    if (version < OLDEST_POSTGRES) return fail(check, found, `use PostgreSQL ${OLDEST_POSTGRES} or newer`);
    const isFull = connections > mostConnections * 0.8;
    return isFull
      ? warn(check, found, "raise max_connections, or put a pooler between (DATABASE_DIRECT_URL)")
      : ok(check, found);
  } catch (error) {
    const found = `${withoutPassword(url)} cannot be used: ${reasonOf(error)}`;
    return fail(check, found, "start it, or set DATABASE_URL to one that runs");
  }
}

async function checkRedisServer(url: string | undefined): Promise<Finding> {
  const check = "redis";
  if (url === undefined) return fail(check, NOTHING_FOUND, START_ADVICE);
  try {
    const { version, nodes } = await checkRedis(url);
    return ok(check, `${version}, ${nodes > 1 ? `${nodes} nodes, ` : ""}noeviction, ${withoutPassword(url)}`);
  } catch (error) {
    return fail(check, reasonOf(error), "start or configure it as described, or set REDIS_URL to another");
  }
}

async function checkMigrations(url: string): Promise<Finding> {
  const check = "migrations";
  const { pending, other } = await schemaState(url);
  if (other !== null) return { check, status: "fail", ...other };
  return pending.length > 0
    ? fail(check, `missing: ${pending.join(", ")}`, "run `roundhouse migrate`")
    : ok(check, "up to date");
}

async function checkClocks(databaseUrl: string, redisUrl: string): Promise<Finding> {
  const redis = await connectProducer(redisUrl, createLog("silent", false));
  try {
    const readings = await withConnections(databaseUrl, CONNECTION, (sql) => readClocks(sql, redis, Date.now));
    const problem = clockProblem(readings);
    const found = readings.map(({ server, skewMs }) => `${Math.round(skewMs)} ms from ${server}`).join(", ");
    return problem === null
      ? ok("clocks", found)
      : fail("clocks", problem.split("; ")[0] ?? found, "set the clocks by NTP");
  } finally {
    redis.disconnect();
  }
}

async function checkWorkers(databaseUrl: string): Promise<Finding> {
  const check = "workers";
  const beat = await withConnections(databaseUrl, CONNECTION, findHeartbeat);
  const advice = "start a worker with `npm start` or `roundhouse worker`, and read its log";
  if (beat === null) return warn(check, "none has worked yet", advice);
  const age = `${Math.round(beat.ageMs / 1000)} s ago`;
  if (beat.ageMs > SILENT_MS) return fail(check, `the last one was seen ${age}`, advice);
  const problems = Object.entries(beat.failures).map(([part, problem]) => `${part}: ${problem}`);
  const found = `the leader ${beat.leader} was seen ${age}`;
  return problems.length === 0
    ? ok(check, found)
    : warn(check, `${found}; ${problems.join("; ")}`, "read the workers' logs");
}

/** Checks the polled houses by the stored results of their polls; sends no request. */
async function checkHouses(databaseUrl: string, liveWindowSeconds: number): Promise<Finding> {
  const check = "houses";
  const houses = await withConnections(databaseUrl, CONNECTION, (sql) => readHouses(sql));
  const polled = houses.filter(({ nextPollAt }) => nextPollAt !== null);
  const failing = polled.flatMap((house) => {
    const problem = problemOf(house, liveWindowSeconds);
    return problem === null ? [] : [`${house.id}: ${problem}`];
  });
  if (failing.length === 0)
    return ok(check, polled.length === 0 ? "none is polled" : `${polled.length} polled, all well`);
  const named = failing.slice(0, MOST_NAMED).join("; ");
  const more = failing.length > MOST_NAMED ? `; and ${failing.length - MOST_NAMED} more` : "";
  const found = `${failing.length} of ${polled.length} failing: ${named}${more}`;
  return warn(check, found, "see `roundhouse house list`, and look closer with `roundhouse house check ID --explain`");
}

/** The problem of a polled house; null if there is none. */
function problemOf(house: HouseFacts, liveWindowSeconds: number): string | null {
  const { circuit, lastError, lastErrorAt, lastOkAt } = house;
  const isNow = circuit !== "closed" || lastOkAt === null || (lastErrorAt ?? "") >= lastOkAt;
  if (lastError !== null && isNow) return lastError;
  const status = statusOf(house, liveWindowSeconds * 1_000);
  return status === "live" ? null : `no new round; it is ${status}`;
}
