import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";
import { draw, drawInteger } from "../../src/demo/draw.ts";
import { drawOne, type ManagedProcess } from "./processes.ts";
import type { Disk } from "./disks.ts";
import type { Fault } from "./faults.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import type { Caller } from "./callers.ts";
import type { CommandContext } from "./run-command.ts";
import type { HouseServer } from "./house.ts";
import { extraHouseEntry, type HousesFile } from "./houses-file.ts";
import { restoreBackup } from "./restore-backup.ts";
import { pauseRollUp } from "./roll-up.ts";
import { CHAIN_LIES } from "./chain-lies.ts";
import type { Payments } from "./payments.ts";
import type { SimulatedServers } from "./servers.ts";
import { slowDisk } from "./slow-disk.ts";
import type { ExternalServices } from "./external-services.ts";
import type { Truth } from "./truth.ts";
import { waitUntil } from "./wait-until.ts";

/** Everything that a fault may affect. */
export interface FaultTargets {
  seed: number;
  servers: SimulatedServers;
  workers: readonly ManagedProcess[];
  apis: readonly ManagedProcess[];
  truth: Truth;
  houses: HouseServer;
  housesFile: HousesFile;
  services: ExternalServices;
  payments: Payments;
  callers: readonly Caller[];
  /** Where commands run. */
  commandContext: CommandContext;
  /** Processes that no fault kills, so that their memory can be measured over a long time. */
  keptAlive: ReadonlySet<ManagedProcess>;
  /** The disk of the processes' data folders; null if nothing can be mounted. */
  disk: Disk | null;
  note: (text: string) => void;
}

/** A worker checks its clock every five seconds; the rest is reserve for a busy machine. */
const NOTICED_WITHIN_MS = 25_000;
const REFUSED_WITHIN_MS = 60_000;
const STARTED_WITHIN_MS = 60_000;
/** Above the half second that schedules tolerate. */
const WRONG_FROM_MS = 1_000;
const WRONG_TO_MS = 90_000;
/** Free space on a full disk: almost none, or enough for open files but not for new ones. */
const LEFT_BYTES = [16_384, 262_144, 2_097_152];
const LOG_LEFT_BYTES = 1 << 20;
/** A query times out after a second, so the first queries to a slower name server fail. */
const LATE_FROM_MS = 200;
const LATE_TO_MS = 3_000;
/** Longer than the newest rounds that a house lists cover, so that the others must be fetched from its history. */
const BEYOND_LISTED_MS = 12_000;
const EXTRA_HOUSE_TABLES = 7_000;
const MOST_MAILS = 5;
/** Workers read a chain every ten seconds: the first read finds a deposit, the second decides on it. */
const READ_TWICE_MS = 22_000;

/** Causes a fault. Returns when the fault has ended; processes may still be starting. */
export async function injectFault({ kind, number }: Fault, targets: FaultTargets): Promise<void> {
  const { seed, servers, keptAlive, disk, note } = targets;
  const [workers, apis] = [targets.workers, targets.apis].map((all) => all.filter((one) => !keptAlive.has(one)));
  const forMs = 1_000 + 4_000 * draw(seed, "fault", "lasts", number);
  const wrongMs = Math.round(
    (WRONG_FROM_MS + (WRONG_TO_MS - WRONG_FROM_MS) * draw(seed, "fault", "clock", number) ** 2) *
      (draw(seed, "fault", "direction", number) < 0.5 ? -1 : 1),
  );
  const roomBytes = drawOne(LEFT_BYTES, seed, "room", number);
  const worker = drawOne(workers ?? [], seed, "victim", number);
  const api = drawOne(apis ?? [], seed, "victim", number);
  switch (kind) {
    case "kill worker":
      return worker.kill();
    case "kill all workers":
      return void (await Promise.all((workers ?? []).map((one) => one.kill())));
    case "stop all workers": {
      const starts = await Promise.all((workers ?? []).map((one) => one.down()));
      await delay(BEYOND_LISTED_MS + forMs);
      for (const start of starts) start();
      return;
    }
    case "kill api":
      return api.kill();
    case "kill Redis":
      return servers.killRedis();
    case "empty Redis":
      return servers.flushRedis();
    case "freeze Redis":
      return servers.freezeRedis(forMs);
    case "disconnect Redis":
      return servers.cut("redis", forMs);
    case "restart PostgreSQL":
      return servers.restartPostgres();
    case "freeze PostgreSQL":
      return servers.freezePostgres(forMs);
    case "disconnect PostgreSQL":
      return servers.cut("postgres", forMs);
    case "depose leader":
      return servers.deposeLeader();
    case "set clock of worker":
      return setClock(targets, worker, wrongMs, forMs);
    case "start worker with wrong clock": {
      note(`  ${worker.name} by ${wrongMs} ms`);
      worker.setClock(wrongMs);
      await worker.kill();
      await waitForRefusal(worker);
      await delay(forMs);
      return worker.setClock(0);
    }
    case "set clock of api":
      note(`  ${api.name} by ${wrongMs} ms`);
      api.setClock(wrongMs);
      await delay(forMs);
      return api.setClock(0);
    case "fill disk of servers":
      return servers.fillDisk(roomBytes, forMs, { isLogToo: draw(seed, "fault", "log", number) < 0.5 });
    case "fill disk of processes": {
      if (disk === null) throw new Error("expected a disk of the processes' own");
      await disk.fill(0);
      // a process must also be able to start on a full disk
      await Promise.all([worker.kill(), api.kill()]);
      await delay(forMs + 2_000);
      return disk.free();
    }
    case "slow disk":
      return slowDisk(servers.sql, 2 * forMs);
    case "fill disk of log":
      return servers.fillDisk(LOG_LEFT_BYTES, forMs, { isLogToo: true });
    case "step clock of worker back":
      return setClock(targets, worker, -Math.abs(wrongMs), forMs);
    default:
      return injectServiceFault({ kind, number }, targets, forMs);
  }
}

/** Sets the clock of a worker wrong until `forMs` after the worker reported it. */
async function setClock(
  { servers, note }: FaultTargets,
  worker: ManagedProcess,
  wrongMs: number,
  forMs: number,
): Promise<void> {
  note(`  ${worker.name} by ${wrongMs} ms`);
  // it may still be starting after the fault before
  await waitUntil(`${worker.name} did not start`, STARTED_WITHIN_MS, () => Promise.resolve(worker.url() !== null));
  worker.setClock(wrongMs);
  await noticed(servers.sql, worker, true);
  note(`  ${worker.name} stopped taking work`);
  await delay(forMs);
  worker.setClock(0);
  await noticed(servers.sql, worker, false);
}

/** Causes a fault of the services around processes and servers. */
async function injectServiceFault(
  { kind, number }: Omit<Fault, "atMs">,
  targets: FaultTargets,
  forMs: number,
): Promise<void> {
  const { seed, servers, note, services, payments, workers, apis } = targets;
  switch (kind) {
    case "add hanging house": {
      services.extraHouse.setMode("hangs");
      const entry = extraHouseEntry("extra", EXTRA_HOUSE_TABLES, services.extraHouse.url);
      const remove = await targets.housesFile.add(workers, entry);
      note(`  with ${EXTRA_HOUSE_TABLES} tables`);
      await delay(2 * forMs);
      return remove();
    }
    case "pause roll-up": {
      const { raised, summed } = await pauseRollUp(servers.sql);
      return note(`  alert after ${raised.toFixed(1)} s, summed ${summed.toFixed(1)} s after the queue was resumed`);
    }
    case "restore backup": {
      const isRedisLost = draw(seed, "fault", "redis", number) < 0.5;
      await restoreBackup({ ...targets, processes: [...workers, ...apis] }, { lostForMs: forMs, isRedisLost });
      return note(`  restored${isRedisLost ? ", and Redis emptied" : ""}`);
    }
    case "delay DNS": {
      const lateMs = Math.round(LATE_FROM_MS + (LATE_TO_MS - LATE_FROM_MS) * draw(seed, "fault", "late", number));
      note(`  by ${lateMs} ms`);
      services.names.setDelay(lateMs);
      targets.houses.endConnections();
      await delay(2 * forMs);
      return services.names.setDelay(0);
    }
    case "stop mail server": {
      const away = services.mail.cut(forMs);
      await services.queueMails(servers.sql, 1 + drawInteger(MOST_MAILS, seed, "fault", "mails", number));
      return away;
    }
    case "stop payment app":
      await payments.stopApp(servers.sql);
      await delay(2 * forMs);
      return payments.resumeApp();
    case "false deposits": {
      const lie = drawOne(CHAIN_LIES, seed, "fault", "lie", number);
      note(`  ${lie}`);
      await payments.lie(servers.sql, lie);
      await delay(READ_TWICE_MS + forMs);
      return payments.stopLying();
    }
    default:
      throw new Error(`expected a fault of a service, found ${kind}`);
  }
}

/** Waits until a worker reported that its clock is wrong, or correct again. */
async function noticed(sql: Sql, worker: ManagedProcess, isWrong: boolean): Promise<void> {
  const deadline = performance.now() + NOTICED_WITHIN_MS;
  while (performance.now() < deadline) {
    const [row] = await sql<{ problem: string | null }[]>`
      select clock_problem as problem
      from workers
      where pid = ${worker.pid()}
      order by seen_at desc
      limit 1`;
    if (row !== undefined && (row.problem !== null) === isWrong) return;
    await delay(200);
  }
  throw new InvariantViolation(
    `${worker.name}, whose clock was set ${isWrong ? "wrong" : "correctly again"}, did not report it within ${NOTICED_WITHIN_MS / 1_000} s`,
  );
}

/** Waits until a worker that was started with a wrong clock has refused to work and exited. */
async function waitForRefusal(worker: ManagedProcess): Promise<void> {
  const before = worker.exits();
  const deadline = performance.now() + REFUSED_WITHIN_MS;
  while (worker.exits() === before) {
    if (worker.url() !== null)
      throw new InvariantViolation(`${worker.name} was started with a wrong clock and is working`);
    if (performance.now() > deadline)
      throw new InvariantViolation(`${worker.name} was started with a wrong clock and did not exit`);
    await delay(50);
  }
}
