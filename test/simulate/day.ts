import { cp, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type * as Migrate from "../../src/db/migrate.ts";
import { reasonOf } from "../../src/errors.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { call, makeCallers, QUOTA } from "./callers.ts";
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

/** How a simulated day is made. */
export interface DayOptions {
  seed: number;
  /** How long houses and faults go on; what follows is quiet, until all that can be fetched is there. */
  lastsMs: number;
  /** How long what can be fetched is waited for at its end. */
  quietMs: number;
  houses: number;
  tablesPerHouse: number;
  workers: number;
  apis: number;
  /** A fault of servers or processes every so often. */
  faultEveryMs: number;
  /** These alone, one after another, instead of those that are drawn; and what is wrong with houses. */
  faults?: readonly FaultKind[];
  houseFaults?: readonly HouseFaultKind[];
  /** Keeps one worker and one API alive all the while, to see what they need. */
  isSoak: boolean;
  /** The checkout that is run. */
  root: string;
  /** Leave logs and data of a day on which something broke; they are left where this is not given. */
  isKept?: boolean;
  say: (line: string) => void;
}

/** What a day came to. */
export interface Day {
  /** Null where every invariant held. */
  broken: string | null;
  rounds: number;
  sets: number;
  scores: number;
  /** Calls that were answered, those that had their answer already, and those that were refused, by code. */
  calls: number;
  unchanged: number;
  refused: Record<string, number>;
  /** Seconds from the end of each fault until every house that is not in trouble itself brought a round again. */
  recoveries: FaultRunResults["recoveries"];
  /** Resident megabytes of each process, at its beginning and at its end. */
  memory: Growth[];
  /** What happened, in order: for whoever looks for the cause. */
  history: string[];
  /** Where its logs and data are; null where it was taken away, since all held. */
  folder: string | null;
}

const MEMBERS_DISK_BYTES = 32 * 1024 ** 2;
/** How often the caller without a quota calls, and the others. */
const CALL_EVERY_MS = [60, 300] as const;

/** Plays one day and checks it; all that happens is drawn from the seed, though not to the millisecond when it is met. */
export async function simulateDay(options: DayOptions): Promise<Day> {
  const { seed, lastsMs, root, say } = options;
  const { folder, close } = await makeRunFolder(String(seed));
  const day: Day = {
    broken: null,
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
      // those that began are stopped with the crew
      for (const one of begun) if (one.status === "rejected") throw one.reason;
      return processes.filter((managed) => managed.name.startsWith(name));
    };
    const workers = await beginAll("worker", options.workers);
    const apis = await beginAll("api", options.apis);
    note(`${truth.tables.length} tables, ${workers.length} workers and ${apis.length} APIs are up`);
    drawHouseFaults(truth, Date.now(), lastsMs, options.houseFaults);
    day.history.push(...planOf(truth, startMs));

    const known = truth;
    const callers = await makeCallers(sql);
    const [often, seldom] = CALL_EVERY_MS;
    const calling = callers.map((caller, n) =>
      call(caller, { truth: known, apis, signal: ended.signal, pauseMs: n === 0 ? often : seldom }),
    );
    const broke = Promise.race(calling).then(() => new Promise<never>(() => undefined));
    broke.catch(() => undefined); // whoever waits for it hears of it
    const faults = drawFaults(seed, lastsMs, options.faultEveryMs, options.faults);
    const keptAlive = new Set(options.isSoak ? processes.filter(({ name }) => name.endsWith("-0")) : []);
    const place = { root, folder, env };
    const going = {
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
      place,
    };
    const { recoveries, samples } = await Promise.race([broke, runFaults(going)]);
    Object.assign(day, { recoveries, memory: growthOf(samples) });
    ended.abort();
    await Promise.all(calling);
    for (const caller of callers) {
      day.calls += caller.served;
      day.unchanged += caller.unchanged;
      for (const [code, n] of caller.refused) day.refused[code] = (day.refused[code] ?? 0) + n;
    }

    note("quiet: what can be fetched again is fetched");
    await checkCounts(sql, callers);
    await waitForMissingRounds(sql, truth, options.quietMs);
    await payments.check(sql);
    note("all that its houses still list is stored; everything is computed again");
    truth.frozenAtMs = Date.now();
    Object.assign(day, await checkInvariants(sql, truth));
    await checkOutcomes(sql, truth);
    day.scores = await verifyRecord(databaseUrl);
    const [richest, poorest] = callers;
    if (richest !== undefined) await checkApisAgree(sql, truth, { apis, caller: richest });
    if (poorest !== undefined && poorest.served > QUOTA) {
      throw new InvariantViolation(`a caller with a quota of ${QUOTA} got ${poorest.served} answers`);
    }
    await checkUsageCounts(sql);
    await services.checkMails(sql);
    for (const managed of processes.splice(0)) {
      const code = await managed.stop();
      if (code !== 0) throw new InvariantViolation(`${managed.name} did not stop in order: exit code ${code}`);
    }
    if (lastsMs > 0 && day.rounds === 0) throw new InvariantViolation("nothing was taken in at all");
  } catch (error) {
    day.broken = error instanceof InvariantViolation ? error.message : reasonOf(error);
    note(`broken: ${day.broken}`);
    if (!(error instanceof InvariantViolation) && error instanceof Error) day.history.push(error.stack ?? "");
    if (
      error instanceof InvariantViolation &&
      error.where !== undefined &&
      servers !== undefined &&
      truth !== undefined
    ) {
      const story = describeRound(servers.sql, truth, error.where);
      day.history.push(...(await story.catch((reason: unknown) => [`no story: ${reasonOf(reason)}`])));
    }
  } finally {
    ended.abort();
    await Promise.all(processes.map((managed) => managed.stop()));
    await houses?.close();
    await services?.close();
    await payments?.close();
    await servers?.stop();
    if (day.broken === null || options.isKept === false) {
      await removeFolder(folder);
      day.folder = null;
    } else {
      await keep(folder, serversFolder, day.history);
    }
    close();
  }
  return day;
}

/** The schema of a build, by its own code: it may have a fault planted in it. */
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

/** Leaves logs, data and what happened to whoever looks for the cause; a disk of its own would go with us. */
async function keep(folder: string, serversFolder: string, history: readonly string[]): Promise<void> {
  const kept = `${serversFolder}.kept`;
  await cp(serversFolder, kept, { recursive: true }).catch(() => undefined);
  await removeFolder(serversFolder);
  await rename(kept, serversFolder).catch(() => undefined);
  await writeFile(join(folder, HISTORY_FILE), history.map((line) => `${line}\n`).join(""));
}
