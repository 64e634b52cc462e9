import { type HouseEntry, loadHouses } from "../../houses-file/load.ts";
import { loadHousesInThread } from "../../houses-file/load-in-thread.ts";
import { jobs } from "../../../jobs/index.ts";
import { listPeriodicTasks } from "../../../jobs/periodic.ts";
import { type Settings, variablesOf } from "../../config/environment.ts";
import { connect, openPipeline, type Pipeline, type Sql } from "../../db/client.ts";
import type { HouseClient } from "../../houses/polling/client.ts";
import { createHouseClient } from "../../houses/polling/http.ts";
import { makeMissingPartitions } from "../../housekeeping/store.ts";
import type { Log } from "../../log.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { createPasses } from "../../pass/passes.ts";
import type { WorkerPools } from "../../queue/job.ts";
import { startWorkers, type Workers } from "../../queue/worker.ts";
import { requireUsdt } from "../../topups/usdt/ready.ts";
import { VERSION } from "../../version.ts";
import { createDemoServer, type DemoServer } from "./demo-server.ts";
import { adaptHeap } from "./heap.ts";
import { createHousesInForce } from "./houses-in-force.ts";
import type { Life } from "./life.ts";
import type { PartUrls } from "./part.ts";
import { slowPolls } from "./poll-rate.ts";

/** How long active runs may take when the process stops, unless the command sets another time: a person waits for `up`. */
const RUNS_END_WITHIN_MS = 5_000;

/** The connections of the working half: those that most jobs share, and separate ones. */
export interface WorkConnections extends WorkerPools {
  work: Sql;
  passes: Pipeline;
}

/**
 * Opens the connections of the working half; they are closed when the process stops. Thirteen in all: a run may wait a
 * little, since each connection costs the database memory for its own plans.
 */
export function openWorkConnections(life: Life, { url, pooled }: PartUrls): WorkConnections {
  const open = (use: "work" | "long", max: number) => {
    // long jobs read ranges of time and need plans for them
    const sql = connect(url, { name: "worker", use, max, pooled, isSteady: use === "work" });
    life.onStop("the workers' connections", () => sql.end({ timeout: 2 }));
    return sql;
  };
  const passes = openPipeline(url, { name: "worker", max: 4, pooled });
  life.onStop("the connections of passes", () => passes.end({ timeout: 2 }));
  return { work: open("work", 4), polling: open("work", 2), long: open("long", 3), passes };
}

/** The working half of a process. */
export interface Work {
  workers: Workers;
  demo: DemoServer;
}

/** Tables that are named in a warning; a file may have thousands. */
const TABLES_NAMED = 10;

/**
 * Reads the houses file, and logs a warning for each table that is polled too seldom.
 * @throws UsageError that lists every problem of the file.
 */
export function readHousesFile(settings: Settings, log: Log): HouseEntry[] {
  const houses = loadHouses(settings.HOUSES_FILE, variablesOf(), { allowPrivate: settings.ALLOW_PRIVATE_HOUSES });
  warnOfSlowPolls(houses, log);
  return houses;
}

/** The same without blocking the process: a file of 7,000 tables takes seconds to read. */
async function readHousesFileAgain(settings: Settings, log: Log): Promise<HouseEntry[]> {
  const houses = await loadHousesInThread(settings.HOUSES_FILE, { allowPrivate: settings.ALLOW_PRIVATE_HOUSES });
  warnOfSlowPolls(houses, log);
  return houses;
}

function warnOfSlowPolls(houses: readonly HouseEntry[], log: Log): void {
  const slow = slowPolls(houses.map((house) => house.settings));
  for (const { found, advice } of slow.slice(0, TABLES_NAMED)) log.warn(`${found}; ${advice}`);
  const others = slow.length - TABLES_NAMED;
  if (others > 0)
    log.warn(
      `${others} other tables are polled too seldom as well: compare poll_every_ms and pause_ms of their houses`,
    );
}

/** What the working half needs. */
export interface WorkOptions {
  settings: Settings;
  houses: readonly HouseEntry[];
  /** Names of the queues to work on; all if undefined. */
  queues: readonly string[] | undefined;
  connections: WorkConnections;
  redisUrl: string;
  metrics: Metrics;
  log: Log;
  /** How long active runs may take when the process stops. */
  runsEndWithinMs?: number;
}

/**
 * Starts the working half of the system: creates missing partitions, applies the houses (in the background while a table
 * is locked), serves the demo ones unless another process does, and works on the queues.
 */
export async function startWork(life: Life, options: WorkOptions): Promise<Work> {
  await requireUsdt(options.connections.work, options.settings, options.log);
  const { missing, reason } = await makeMissingPartitions(options.connections.work);
  if (missing.length > 0)
    options.log.warn({ missing }, `${missing.length} partitions cannot be created yet: ${reason}`);
  const demo = openDemoServer(life, options);
  await keepHousesApplied(life, options, demo);
  life.ending.throwIfAborted();
  const http = openHouseClient(life, options);
  const workers = await startQueueWorkers(life, options, http);
  adaptHeap();
  return { workers, demo };
}

function openDemoServer(life: Life, { settings, connections, log }: WorkOptions): DemoServer {
  const demo = createDemoServer({
    sql: connections.work,
    dataDir: settings.DATA_DIR,
    givenUrl: settings.DEMO_HOUSE_URL,
    log,
  });
  life.onStop("the demo houses", () => demo.close());
  return demo;
}

/** Applies the houses, and the houses file again on SIGHUP; a file with problems is logged and changes nothing. */
async function keepHousesApplied(life: Life, options: WorkOptions, demo: DemoServer): Promise<void> {
  const { settings, houses, connections, log } = options;
  const inForce = createHousesInForce(life, { sql: connections.work, demo, file: settings.HOUSES_FILE, log });
  await inForce.start(houses);
  life.onHangup(() => inForce.reload(() => readHousesFileAgain(settings, log)));
}

function openHouseClient(life: Life, { settings, metrics }: WorkOptions): HouseClient {
  const http = metrics.houses(createHouseClient({ version: VERSION, nameServers: settings.HOUSE_NAME_SERVERS }));
  life.onStop("the connections to houses", () => http.close());
  return http;
}

async function startQueueWorkers(life: Life, options: WorkOptions, http: HouseClient): Promise<Workers> {
  const { settings, queues, redisUrl, metrics, log, runsEndWithinMs = RUNS_END_WITHIN_MS } = options;
  const { work: sql, passes, ...pools } = options.connections;
  const workers = await startWorkers({
    jobs,
    queues,
    sql,
    pools,
    passes: createPasses(passes),
    redisUrl,
    settings,
    variables: variablesOf(),
    http,
    log,
    version: VERSION,
    ran: metrics.ran,
    periodicTasks: listPeriodicTasks,
    onFatal: (error) => life.fail(`this process cannot work any more: ${error.message}`),
  });
  life.onStop("the workers", () => workers.stop(runsEndWithinMs));
  return workers;
}
