import { cp, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type * as Migrate from "../../src/db/migrate.ts";
import { reasonOf } from "../../src/errors.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { sendCalls, makeCallers, QUOTA, waitUntilUsedUp } from "./callers.ts";
import { startProcess, type ManagedProcess } from "./processes.ts";
import { makeDisk } from "./disks.ts";
import {
  checkApisAgree,
  checkCounts,
  checkOutcomes,
  verifyRecord,
  checkUsageCounts,
  waitForMissingRounds,
} from "./final-checks.ts";
import { drawFaults, type FaultKind } from "./faults.ts";
import { runFaults, type FaultRunResults } from "./run-faults.ts";
import { serveHouses } from "./house.ts";
import { houseEntries, writeHousesFile } from "./houses-file.ts";
import { checkInvariants } from "./invariants.ts";
import { makeRunFolder, removeFolder, HISTORY_FILE } from "./run-folder.ts";
import { growthOf, type Growth } from "./memory.ts";
import { startSimulatedServers, type SimulatedServers } from "./servers.ts";
import { describeRound } from "./describe-round.ts";
import { type Payments, startPayments } from "./payments.ts";
import { startExternalServices, type ExternalServices } from "./external-services.ts";
import { drawHouseFaults, drawTruth, faultsOfHouse, type HouseFaultKind, type Truth } from "./truth.ts";

/** Settings of a simulated day. */
export interface DayOptions {
  seed: number;
  /** How long faults occur. After that there are none, until all rounds that can be fetched are stored. */
  lastsMs: number;
  /** Timeout for that quiet phase. */
  quietMs: number;
  houses: number;
  tablesPerHouse: number;
  workers: number;
  apis: number;
  /** The average interval between two faults of servers or processes. */
  faultEveryMs: number;
  /** Only these faults of servers and processes, and only these faults of houses; all kinds if not given. */
  faults?: readonly FaultKind[];
  houseFaults?: readonly HouseFaultKind[];
  /** Keeps one worker and one API alive throughout, to measure their memory. */
  isSoak: boolean;
  /** The checkout whose code runs. */
  root: string;
  /** Keep logs and data if an invariant was violated. Default: true. */
  isKept?: boolean;
  say: (line: string) => void;
}

/** The result of a day. */
export interface Day {
  /** Why the day failed; null if every invariant held. */
  failure: string | null;
  /** The day before, if it failed and was repeated; null if it was not. */
  repeatedAfter: Pick<Day, "failure" | "history" | "folder"> | null;
  rounds: number;
  sets: number;
  scores: number;
  /** Calls with status 200, with status 304, and refused ones by code. */
  calls: number;
  unchanged: number;
  refused: Record<string, number>;
  /** Seconds from the end of each fault until every house without a fault of its own delivered a round again. */
  recoveries: FaultRunResults["recoveries"];
  memory: Growth[];
  /** Every event in order. */
  history: string[];
  /** The folder of logs and data; null if it was removed because every invariant held. */
  folder: string | null;
}

const MEMBERS_DISK_BYTES = 32 * 1024 ** 2;
/** How often the caller without a quota calls, and the others. */
const CALL_EVERY_MS = [60, 300] as const;

/** The invariant that also fails if a machine stood still between the last guard of a transaction and its commit. */
const LATE_COMMIT = /were committed \d+ ms after the next round had begun/;

/**
 * Simulates one day as {@link simulateDay} does. A day in which forecasts were committed late is repeated once, since the
 * machine may be the cause, but not if `expected` matches its failure.
 */
export async function simulateRepeatably(options: DayOptions, expected?: RegExp): Promise<Day> {
  const day = await simulateDay(options);
  if (day.failure === null || !LATE_COMMIT.test(day.failure) || expected?.test(day.failure) === true) return day;
  options.say("repeating the day, since a machine that stands still commits late, too");
  const { failure, history, folder } = day;
  return { ...(await simulateDay(options)), repeatedAfter: { failure, history, folder } };
}

/** Simulates one day and checks it. The seed decides every event; real processes shift its effect by milliseconds. */
export async function simulateDay(options: DayOptions): Promise<Day> {
  const { seed, lastsMs, root, say } = options;
  const { folder, close } = await makeRunFolder(String(seed));
  const day: Day = {
    failure: null,
    repeatedAfter: null,
    rounds: 0,
    sets: 0,
    scores: 0,
    calls: 0,
    unchanged: 0,
    refused: {},
    recoveries: [],
    memory: [],
    history: [],
    folder,
  };
  const startMs = Date.now();
  const note = (text: string) => {
    const line = `${((Date.now() - startMs) / 1_000).toFixed(1).padStart(7)} s  ${text}`;
    day.history.push(line);
    say(line);
  };
  const serversFolder = join(folder, "servers");
  const processes: ManagedProcess[] = [];
  const ended = new AbortController();
  let servers: SimulatedServers | undefined;
  let houses: Awaited<ReturnType<typeof serveHouses>> | undefined;
  let services: ExternalServices | undefined;
  let payments: Payments | undefined;
  let truth: Truth | undefined;
  try {
    servers = await startSimulatedServers(serversFolder, join(homedir(), ".cache", "roundhouse"), note);
    const { sql, databaseUrl } = servers;
    await migrateAs(root, databaseUrl);
    truth = drawTruth(seed, { ...options, nowMs: Date.now() });
    houses = await serveHouses(truth);
    services = await startExternalServices(truth);
    payments = await startPayments();
    const housesFile = await writeHousesFile(sql, join(folder, "houses.yaml"), houseEntries(truth, houses.url));
    const dataFolder = join(folder, "processes");
    const disk = await makeDisk(dataFolder, MEMBERS_DISK_BYTES);
    const env = {
      DATABASE_URL: databaseUrl,
      REDIS_URL: servers.redisUrl,
      HOUSES_FILE: housesFile.path,
      LOG_DIR: join(folder, "log"),
      ALLOW_PRIVATE_HOUSES: "1",
      LIVE_WINDOW_SECONDS: "60",
      LOG_LEVEL: "info",
      ...services.env,
      ...payments.env,
    };
    const begin = async (name: string, n: number) => {
      const managed = await startProcess(`${name}-${n}`, [name], { root, folder, dataFolder, env });
      processes.push(managed);
      return managed;
    };
    const beginAll = async (name: string, size: number) => {
      const begun = await Promise.allSettled(Array.from({ length: size }, (_, n) => begin(name, n)));
      for (const one of begun) if (one.status === "rejected") throw one.reason;
      return processes.filter((managed) => managed.name.startsWith(name));
    };
    const workers = await beginAll("worker", options.workers);
    const apis = await beginAll("api", options.apis);
    note(`started: ${truth.tables.length} tables, ${workers.length} workers, ${apis.length} APIs`);
    drawHouseFaults(truth, Date.now(), lastsMs, options.houseFaults);
    day.history.push(...planOf(truth, startMs));

    const known = truth;
    const callers = await makeCallers(sql);
    const [shortPauseMs, longPauseMs] = CALL_EVERY_MS;
    const calling = callers.map((caller, n) =>
      sendCalls(caller, { truth: known, apis, signal: ended.signal, pauseMs: n === 0 ? shortPauseMs : longPauseMs }),
    );
    const callerFailure = Promise.race(calling).then(() => new Promise<never>(() => undefined));
    callerFailure.catch(() => undefined); // the race below reports it
    const faults = drawFaults(seed, lastsMs, options.faultEveryMs, options.faults);
    const keptAlive = new Set(options.isSoak ? processes.filter(({ name }) => name.endsWith("-0")) : []);
    const commandContext = { root, folder, env };
    const run = {
      seed,
      truth,
      faults,
      servers,
      disk,
      workers,
      apis,
      processes,
      keptAlive,
      note,
      houses,
      housesFile,
      services,
      payments,
      callers,
      commandContext,
    };
    const { recoveries, samples } = await Promise.race([callerFailure, runFaults(run)]);
    Object.assign(day, { recoveries, memory: growthOf(samples) });
    await Promise.race([callerFailure, waitUntilUsedUp(callers)]);
    ended.abort();
    await Promise.all(calling);
    for (const caller of callers) {
      day.calls += caller.served;
      day.unchanged += caller.unchanged;
      for (const [code, n] of caller.refused) day.refused[code] = (day.refused[code] ?? 0) + n;
    }

    note("no more faults: waiting until missing rounds are fetched");
    await checkCounts(sql, callers);
    await waitForMissingRounds(sql, truth, options.quietMs);
    await payments.check(sql);
    note("every listed round is stored; recomputing chains, scores and accuracy");
    truth.frozenAtMs = Date.now();
    Object.assign(day, await checkInvariants(sql, truth));
    await checkOutcomes(sql, truth);
    day.scores = await verifyRecord(databaseUrl);
    const [unlimited, limited] = callers;
    if (unlimited !== undefined) await checkApisAgree(sql, truth, { apis, caller: unlimited });
    if (limited !== undefined && limited.served > QUOTA) {
      throw new InvariantViolation(`a caller with a quota of ${QUOTA} got ${limited.served} responses`);
    }
    await checkUsageCounts(sql);
    await services.checkMails(sql);
    for (const managed of processes.splice(0)) {
      const code = await managed.stop();
      if (code !== 0) throw new InvariantViolation(`${managed.name} did not shut down cleanly: exit code ${code}`);
    }
    if (lastsMs > 0 && day.rounds === 0) throw new InvariantViolation("no round was stored");
  } catch (error) {
    day.failure = error instanceof InvariantViolation ? error.message : reasonOf(error);
    note(`failed: ${day.failure}`);
    if (!(error instanceof InvariantViolation) && error instanceof Error) day.history.push(error.stack ?? "");
    if (
      error instanceof InvariantViolation &&
      error.reference !== undefined &&
      servers !== undefined &&
      truth !== undefined
    ) {
      const description = describeRound(servers.sql, truth, error.reference);
      day.history.push(...(await description.catch((reason: unknown) => [`no round history: ${reasonOf(reason)}`])));
    }
  } finally {
    ended.abort();
    await Promise.all(processes.map((managed) => managed.stop()));
    await houses?.close();
    await services?.close();
    await payments?.close();
    await servers?.stop();
    if (day.failure === null || options.isKept === false) {
      await removeFolder(folder);
      day.folder = null;
    } else {
      await keep(folder, serversFolder, day.history);
    }
    close();
  }
  return day;
}

/** Migrates with the code of `root`, whose migrations may contain a planted fault. */
async function migrateAs(root: string, databaseUrl: string): Promise<void> {
  const { migrate } = (await import(join(root, "src/db/migrate.ts"))) as typeof Migrate;
  await migrate(databaseUrl);
}

function planOf(truth: Truth, startMs: number): string[] {
  const second = (atMs: number) => ((atMs - startMs) / 1_000).toFixed(1);
  return [...truth.houseFaults.keys()].flatMap((house) =>
    faultsOfHouse(truth, house).map(
      ({ kind, fromMs, toMs }) => `planned: ${house} ${kind} from ${second(fromMs)} s to ${second(toMs)} s`,
    ),
  );
}

/** Keeps logs, data and history. Data on a mounted disk is copied, because the mount disappears with this process. */
async function keep(folder: string, serversFolder: string, history: readonly string[]): Promise<void> {
  const kept = `${serversFolder}.kept`;
  await cp(serversFolder, kept, { recursive: true }).catch(() => undefined);
  await removeFolder(serversFolder);
  await rename(kept, serversFolder).catch(() => undefined);
  await writeFile(join(folder, HISTORY_FILE), history.map((line) => `${line}\n`).join(""));
}
