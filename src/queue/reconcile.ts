import { closeAlert, openAlert, syncAlerts } from "../alerts/store.ts";
import { appendAudit } from "../audit/store.ts";
import type { Settings } from "../config.ts";
import type { Sql } from "../db/client.ts";
import type { Leadership } from "../db/leader.ts";
import type { Log } from "../log.ts";
import { findMark, setMark } from "./boot-mark.ts";
import type { Job, SweepContext } from "./job.ts";
import { createParts } from "./parts.ts";
import type { Queues } from "./queues.ts";
import { inBatches, syncSchedulers } from "./schedulers.ts";
import {
  deleteEndedPauses,
  deleteSilentWorkers,
  findHeartbeat,
  listPauses,
  listWrongClocks,
  saveHeartbeat,
} from "./store.ts";

/** The advisory lock of the one reconciler that leads: "rh", 2. */
export const LEADER_LOCK = 0x7268_0002;

const LEADERLESS_MS = 60_000;

/** Brings the queues in Redis back to what PostgreSQL says, tick after tick. */
export interface Reconciler {
  /**
   * One tick: leads it where this process holds the place, else only watches that somebody does. Every part stands
   * alone: one that fails is logged and the others go on. `mayLead` is false where this machine's clock is wrong.
   */
  tick(mayLead: boolean): Promise<void>;
  isLeading(): boolean;
}

/**
 * What makes "facts live in PostgreSQL, Redis only nudges" true. It does not itself live in Redis, so it survives the
 * loss of all of it. Everything it does may be done twice, since a leader learns of its loss a tick late.
 *
 * A leader's tick: end the pauses whose time is over; see whether Redis lost its data; put pauses and schedules back;
 * send every job the work its sweep finds undone; run `everyTick`; forget dead workers; leave a heartbeat.
 */
export function createReconciler(options: {
  id: string;
  queues: Queues;
  sql: Sql;
  settings: Settings;
  leadership: Leadership;
  everyTick: readonly ((sql: Sql) => Promise<void>)[];
  log: Log;
}): Reconciler {
  const { id, queues, sql, settings, leadership, everyTick, log } = options;
  const parts = createParts(log);
  const context: SweepContext = { sql, settings };
  const startedAt = performance.now();
  let leading = false;

  async function elect(mayLead: boolean): Promise<void> {
    const before = leading;
    try {
      leading = mayLead ? await leadership.hold() : false;
      if (!mayLead) await leadership.release();
    } catch (error) {
      leading = false;
      throw error;
    }
    if (leading !== before) log.info(leading ? "leads the reconciliation" : "no longer leads the reconciliation");
  }

  async function watchLeader(): Promise<void> {
    const heartbeat = await findHeartbeat(sql);
    const ageMs = heartbeat?.ageMs ?? performance.now() - startedAt;
    if (ageMs <= LEADERLESS_MS) return;
    const text = `no worker has reconciled the queues for ${Math.round(ageMs / 1_000)} s: schedules, pauses and lost work are not looked after; start or restart a worker`;
    await openAlert(sql, log, { kind: "no_leader", subject: "reconcile", text });
  }

  async function lead(): Promise<void> {
    const last = await findHeartbeat(sql);
    let redisMark = last?.redisMark ?? null;
    let found: string | null = null;
    await parts.attempt("pauses that end", endPauses);
    const reached = await parts.attempt("Redis", async () => {
      if (queues.redis.status !== "ready") throw new Error("it is away, so nothing is reconciled");
      const { mark, isLost } = await findMark(queues, redisMark);
      found = mark;
      if (isLost) await noticeLoss();
    });
    if (reached) {
      if (await restore()) {
        redisMark = found ?? (await markAgain());
        await parts.attempt("alerts", () => closeAlert(sql, log, { kind: "redis_lost", subject: "redis" }));
      }
      for (const job of queues.jobs) await parts.attempt(`sweep of ${job.name}`, () => sweep(job));
    }
    for (const [at, work] of everyTick.entries()) {
      await parts.attempt(work.name || `hook ${at + 1}`, () => work(sql));
    }
    await parts.attempt("workers", () => lookAfterWorkers());
    await saveHeartbeat(sql, { leader: id, redisMark, troubles: parts.troubles() });
    await closeAlert(sql, log, { kind: "no_leader", subject: "reconcile" });
  }

  async function noticeLoss(): Promise<void> {
    const text =
      "Redis lost its data: schedules, pauses and queued work are put back from PostgreSQL; no round is lost, failed runs are no longer listed";
    await openAlert(sql, log, { kind: "redis_lost", subject: "redis", text });
  }

  async function markAgain(): Promise<string> {
    await queues.restoreSettings();
    return setMark(queues, id);
  }

  async function restore(): Promise<boolean> {
    let complete = await parts.attempt("pauses", () => syncPauses());
    for (const job of queues.jobs) {
      const set = await parts.attempt(`schedules of ${job.name}`, async () => {
        const schedules = (await job.schedule?.(context)) ?? [];
        await syncSchedulers(queues.get(job.name), job, schedules, Date.now());
      });
      complete &&= set;
    }
    return complete;
  }

  async function endPauses(): Promise<void> {
    const ended = await sql.begin(async (tx) => {
      const pauses = await deleteEndedPauses(tx);
      for (const { queue, until, pausedBy, reason } of pauses) {
        const by = { surface: "system", actor: "reconciler", role: null, requestId: null, address: null } as const;
        const target = `queue ${queue}`;
        const told = { before: { pausedBy, reason, until }, after: { paused: false }, reason: "its time was over" };
        await appendAudit(tx, { ...by, action: "queue.resume", target, ...told });
      }
      return pauses;
    });
    for (const { queue, pausedBy } of ended) log.info({ queue }, `the pause by ${pausedBy} is over`);
  }

  async function syncPauses(): Promise<void> {
    const paused = new Set((await listPauses(sql)).map(({ queue }) => queue));
    const failures: unknown[] = [];
    for (const { name } of queues.jobs) {
      const queue = queues.get(name);
      const wanted = paused.has(name);
      try {
        if (wanted === (await queue.isPaused())) continue;
        await (wanted ? queue.pause() : queue.resume());
        log.info({ queue: name }, wanted ? "paused, as PostgreSQL says" : "resumed, as PostgreSQL says");
      } catch (error) {
        failures.push(error); // in a cluster the other queues may be on a node that answers
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  async function sweep(job: Job<unknown>): Promise<void> {
    const undone = (await job.sweep?.(context)) ?? [];
    await inBatches(undone, (payload) => queues.enqueue(job, payload));
  }

  async function lookAfterWorkers(): Promise<void> {
    await deleteSilentWorkers(sql);
    await syncAlerts(sql, log, "clock_skew", await listWrongClocks(sql));
  }

  return {
    async tick(mayLead) {
      await parts.attempt("leadership", () => elect(mayLead));
      if (leading) await parts.attempt("reconciliation", lead);
      else await parts.attempt("watch over the leader", watchLeader);
    },
    isLeading: () => leading,
  };
}
