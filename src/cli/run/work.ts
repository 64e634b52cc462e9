import { type HouseEntry, loadHouses } from "../../houses-file/load.ts";
import { loadHousesInThread } from "../../houses-file/load-in-thread.ts";
import { jobs } from "../../../jobs/index.ts";
import { findLogBehind, findUnreadBacklog } from "../../alerts/behind-store.ts";
import { createLasting } from "../../alerts/lasting.ts";
import { syncAlerts } from "../../alerts/store.ts";
import { type Settings, variablesOf } from "../../config/environment.ts";
import { connect, openPipeline, type Pipeline, type Sql } from "../../db/client.ts";
import { createNotifier } from "../../db/notifier.ts";
import { createHouseClient } from "../../houses/polling/http.ts";
import { applyHouses } from "../../houses-file/apply-store.ts";
import { findOfflineHouses, findUnreadableTables } from "../../houses-file/watch-store.ts";
import type { Log } from "../../log.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { createPasses } from "../../pass/passes.ts";
import type { WorkerPools } from "../../queue/job.ts";
import { startWorkers, type Workers } from "../../queue/worker.ts";
import { sumCells } from "../../rounds/gaps/cells-store.ts";
import { expireNotices, refreshStalledNotices } from "../../rounds/notices/notices-store.ts";
import { syncProofAlerts } from "../../rounds/proofs/proof-alerts-store.ts";
import { findPaymentAppProblems } from "../../topups/binance-pay/problem-store.ts";
import { binancePayOf } from "../../config/binance-pay.ts";
import { requireUsdt } from "../../topups/usdt/ready.ts";
import { findUsdtProblems } from "../../topups/usdt/problem-store.ts";
import { usdtOf } from "../../config/usdt.ts";
import { findUsageBehind } from "../../usage/days-store.ts";
import { VERSION } from "../../version.ts";
import { createDemoServer, type DemoServer } from "./demo-server.ts";
import type { Life } from "./life.ts";
import type { PartUrls } from "./part.ts";
import { slowPolls } from "./poll-rate.ts";

/** How long runs may take to end before they are aborted, if the command sets nothing else: a person waits for `up`. */
const RUNS_END_WITHIN_MS = 5_000;

/** Work that stays undone for so long is a problem; a worker that starts catches up with what it finds within seconds. */
const BEHIND_SECONDS = 20;

/** The connections of the working half: those that most jobs share, and those apart. */
export interface WorkConnections extends WorkerPools {
  work: Sql;
  passes: Pipeline;
}

/**
 * Opens the connections of the working half; `end` of each is called when the process stops. Thirteen in all: enough for
 * runs to wait a little rather than to crowd the database, where each connection keeps plans of its own.
 */
export function openWorkConnections(life: Life, { url, pooled }: PartUrls): WorkConnections {
  const open = (use: "work" | "long", max: number) => {
    // long jobs read stretches of time, by plans of their own
    const sql = connect(url, { name: "worker", use, max, pooled, isSteady: use === "work" });
    life.onStop("the workers' connections", () => sql.end({ timeout: 2 }));
    return sql;
  };
  const passes = openPipeline(url, { name: "worker", max: 4, pooled });
  life.onStop("the connections of passes", () => passes.end({ timeout: 2 }));
  return { work: open("work", 4), polling: open("work", 2), long: open("long", 3), passes };
}

/** What works on the queues in one process. */
export interface Work {
  workers: Workers;
  demo: DemoServer;
}

/** Tables that are named as polled too seldom; a file may have thousands. */
const SLOW_POLLS_NAMED = 10;

/**
 * Reads the houses file; a table that is polled too seldom is worth a warning.
 * @throws UsageError listing every problem of the file.
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
  for (const sentence of slow.slice(0, SLOW_POLLS_NAMED)) log.warn(sentence);
  const others = slow.length - SLOW_POLLS_NAMED;
  if (others > 0)
    log.warn(
      `${others} other tables are polled too seldom as well: compare poll_every_ms and pause_ms of their houses`,
    );
}

/**
 * Starts the working half of the system: applies the houses, plays the demo ones if nobody else does, and works on the queues. SIGHUP
 * applies the houses file again; one that is wrong is logged and changes nothing.
 */
export async function startWork(
  life: Life,
  parts: {
    settings: Settings;
    houses: readonly HouseEntry[];
    queues: readonly string[] | undefined;
    connections: WorkConnections;
    redisUrl: string;
    metrics: Metrics;
    log: Log;
    runsEndWithinMs?: number;
  },
): Promise<Work> {
  const { settings, houses, queues, redisUrl, metrics, log, runsEndWithinMs = RUNS_END_WITHIN_MS } = parts;
  const { work: sql, passes, ...pools } = parts.connections;
  await requireUsdt(sql, settings, log);
  const demo = createDemoServer({
    sql,
    dataDir: settings.DATA_DIR,
    givenUrl: settings.DEMO_HOUSE_URL,
    log,
  });
  life.onStop("the demo houses", () => demo.close());
  const apply = async (entries: readonly HouseEntry[]) => {
    const applied = await applyHouses(sql, entries);
    await demo.refresh(entries);
    const left = applied.disabled.length === 0 ? "" : `; no longer polled: ${applied.disabled.join(", ")}`;
    log.info(`${settings.HOUSES_FILE}: ${applied.houses} houses, ${applied.tables} tables${left}`);
  };
  await apply(houses);
  life.onHangup(async () => apply(await readHousesFileAgain(settings, log)));
  life.ending.throwIfAborted();

  const http = metrics.houses(createHouseClient({ version: VERSION, nameServers: settings.HOUSE_NAME_SERVERS }));
  life.onStop("the connections to houses", () => http.close());
  const notifier = createNotifier(sql, log);
  life.onStop("announcements", () => notifier.close());
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
    everyTick: upkeep(settings, log, (tableIds) => notifier.published(tableIds)),
    onFatal: (error) => life.fail(`this process cannot work any more: ${error.message}`),
  });
  life.onStop("the workers", () => workers.stop(runsEndWithinMs));
  return { workers, demo };
}

/** What the leading worker does every few seconds beside its queues: what nothing but time changes or makes due. */
function upkeep(
  settings: Settings,
  log: Log,
  published: (tableIds: readonly number[]) => void,
): ((sql: Sql) => Promise<void>)[] {
  const tell = (changed: readonly number[]) => {
    if (changed.length > 0) published(changed);
  };
  const lasting = { backlog: createLasting(BEHIND_SECONDS), log: createLasting(BEHIND_SECONDS) };
  return [
    async function expire(sql) {
      tell(await expireNotices(sql));
    },
    async function stalled(sql) {
      tell(await refreshStalledNotices(sql, settings.LIVE_WINDOW_SECONDS));
    },
    async function proofs(sql) {
      await syncProofAlerts(sql, log);
    },
    async function offline(sql) {
      await syncAlerts(sql, log, "house_offline", await findOfflineHouses(sql, settings.LIVE_WINDOW_SECONDS));
    },
    async function cells(sql) {
      await sumCells(sql);
    },
    async function usdt(sql) {
      await syncAlerts(sql, log, "usdt", await findUsdtProblems(sql, usdtOf(settings)));
    },
    async function paymentApp(sql) {
      const isConfigured = binancePayOf(settings) !== null;
      await syncAlerts(sql, log, "payment-app", await findPaymentAppProblems(sql, isConfigured));
    },
    async function usage(sql) {
      await syncAlerts(sql, log, "usage_behind", await findUsageBehind(sql));
    },
    async function backlog(sql) {
      await syncAlerts(sql, log, "backlog", lasting.backlog(await findUnreadBacklog(sql)));
    },
    async function logBehind(sql) {
      await syncAlerts(sql, log, "log_behind", lasting.log(await findLogBehind(sql)));
    },
    async function unreadable(sql) {
      await syncAlerts(sql, log, "answers_unreadable", await findUnreadableTables(sql));
    },
  ];
}
