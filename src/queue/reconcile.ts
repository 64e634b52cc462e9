import { closeAlert, openAlert, syncAlerts } from "../alerts/store.ts";
import { appendAudit } from "../audit/store.ts";
import type { Settings } from "../config/environment.ts";
import type { Sql } from "../db/client.ts";
import type { Lease, LeaseState } from "../db/lease.ts";
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

const LEADERLESS_MS = 60_000;

const NOT_HELD: LeaseState = { isHeld: false, freeInMs: Infinity };

/** Brings the queues in Redis back to what PostgreSQL says, tick after tick. */
export interface Reconciler {
  /**
   * One tick: reconciles if this process holds the lease, otherwise only watches the leader. A part that fails is logged
   * and the others continue. `mayLead` is false while this machine's clock is wrong.
   * @returns milliseconds until the lease of another leader expires; Infinity if this process leads or may not lead.
   */
  tick(mayLead: boolean): Promise<number>;
  isLeading(): boolean;
}

/**
 * What makes "facts live in PostgreSQL, Redis only nudges" true. It does not itself live in Redis, so it survives the
 * loss of all of it.
 *
 * Each part of a tick renews the lease before it starts, so a leader that hangs in one loses it, and starts no other part
 * once it has. Two processes can still be in a part together: if one was stopped in the middle of it, and during an upgrade
 * from a version that leads by an advisory lock, which knows no lease. That is harmless: every part is idempotent, and a
 * heartbeat is saved only in the current epoch.
 *
 * A leader's tick: end the pauses whose time is over; see whether Redis lost its data; put pauses and schedules back;
 * send every job the work its sweep finds undone; run `everyTick`; forget dead workers; leave a heartbeat.
 */
export function createReconciler(options: {
  id: string;
  queues: Queues;
  sql: Sql;
  settings: Settings;
  lease: Lease;
  everyTick: readonly ((sql: Sql) => Promise<void>)[];
  log: Log;
}): Reconciler {
  const { id, queues, sql, settings, lease, everyTick, log } = options;
  const parts = createParts(log);
  const context: SweepContext = { sql, settings };
  const startedAt = performance.now();
  let state = NOT_HELD;

  /** Acquires, renews or releases the lease; it counts as not held if the database cannot be asked. */
  async function elect(mayLead: boolean): Promise<LeaseState> {
    let next = NOT_HELD;
    await parts.attempt("leadership", async () => {
      if (mayLead) next = await lease.hold();
      else await lease.release();
    });
    if (next.isHeld !== state.isHeld) {
      log.info(next.isHeld ? "leads the reconciliation" : "no longer leads the reconciliation");
    }
    state = next;
    return state;
  }

  /** Does one part of a tick, unless the lease was lost in this tick. */
  async function attempt(part: string, work: () => Promise<unknown>): Promise<boolean> {
    if (!state.isHeld || !(await elect(true)).isHeld) return false;
    return parts.attempt(part, work);
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
    await attempt("pauses that end", endPauses);
    const reached = await attempt("Redis", async () => {
      if (queues.redis.status !== "ready") throw new Error("it is away, so nothing is reconciled");
      const { mark, isLost } = await findMark(queues, redisMark);
      found = mark;
      if (isLost) await noticeLoss();
    });
    if (reached) {
      if (await restore()) {
        redisMark = found ?? (await markAgain());
        await attempt("alerts", () => closeAlert(sql, log, { kind: "redis_lost", subject: "redis" }));
      }
      for (const job of queues.jobs) await attempt(`sweep of ${job.name}`, () => sweep(job));
    }
    for (const [at, work] of everyTick.entries()) {
      await attempt(work.name || `hook ${at + 1}`, () => work(sql));
    }
    await attempt("workers", () => lookAfterWorkers());
    const now = await elect(true);
    if (!now.isHeld) return;
    await saveHeartbeat(sql, { leader: id, redisMark, troubles: parts.troubles() }, now.epoch);
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
    let complete = await attempt("pauses", () => syncPauses());
    for (const job of queues.jobs) {
      const set = await attempt(`schedules of ${job.name}`, async () => {
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
      const now = await elect(mayLead);
      await (now.isHeld ? parts.attempt("reconciliation", lead) : parts.attempt("watch over the leader", watchLeader));
      return now.isHeld ? Infinity : now.freeInMs;
    },
    isLeading: () => state.isHeld && lease.isHeld(),
  };
}
