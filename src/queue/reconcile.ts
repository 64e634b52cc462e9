import { closeAlert, openAlert } from "../alerts/store.ts";
import type { Settings } from "../config/environment.ts";
import type { Sql } from "../db/client.ts";
import type { Lease, LeaseState } from "../db/lease.ts";
import type { Log } from "../log.ts";
import { findMark, setMark } from "./boot-mark.ts";
import type { PeriodicTasks } from "./periodic.ts";
import type { Queues } from "./queues.ts";
import { checkWorkers, endPauses, reportRedisLoss, restorePauses, restoreSchedules, sweep } from "./reconcile-steps.ts";
import { createSteps } from "./steps.ts";
import { findHeartbeat, saveHeartbeat } from "./store.ts";

const LEADERLESS_MS = 60_000;

const NOT_HELD: LeaseState = { isHeld: false, freeInMs: Infinity };

/** Makes the queues in Redis equal to what PostgreSQL states, tick after tick. */
export interface Reconciler {
  /**
   * One tick: reconciles if this process holds the lease, otherwise only watches the leader. A step that fails is logged
   * and the others continue. `mayLead` is false while the clock of this machine is wrong.
   * @returns milliseconds until the lease of another leader expires; Infinity if this process leads or may not lead.
   */
  tick(mayLead: boolean): Promise<number>;
  isLeading(): boolean;
}

/**
 * Keeps "facts live in PostgreSQL, Redis only wakes workers" true. It does not depend on Redis, so it survives the loss of
 * all data there.
 *
 * Each step of a tick renews the lease before it starts, so a leader that hangs in a step loses the lease and starts no
 * further step. Two processes can still run a step at the same time: if one was stopped in the middle of it, and during an
 * upgrade from a version that leads by an advisory lock, which ignores leases. That is harmless: every step is idempotent,
 * and a heartbeat is saved only in the current epoch.
 */
export function createReconciler(options: {
  id: string;
  queues: Queues;
  sql: Sql;
  settings: Settings;
  lease: Lease;
  periodic: PeriodicTasks;
  log: Log;
}): Reconciler {
  const { id, queues, sql, settings, lease, periodic, log } = options;
  const steps = createSteps(log);
  const world = { sql, settings, queues, log };
  const startedAt = performance.now();
  let state = NOT_HELD;

  /** Acquires, renews or releases the lease. It counts as not held if the database cannot be reached. */
  async function elect(mayLead: boolean): Promise<LeaseState> {
    let next = NOT_HELD;
    await steps.attempt("leadership", async () => {
      if (mayLead) next = await lease.hold();
      else await lease.release();
    });
    if (next.isHeld !== state.isHeld) {
      log.info(next.isHeld ? "leads the reconciliation" : "no longer leads the reconciliation");
    }
    state = next;
    return state;
  }

  /** Runs one step of a tick, unless the lease was lost in this tick. */
  async function attempt(step: string, work: () => Promise<unknown>): Promise<boolean> {
    if (!state.isHeld || !(await elect(true)).isHeld) return false;
    return steps.attempt(step, work);
  }

  async function lead(): Promise<void> {
    const last = await findHeartbeat(sql);
    await attempt("pauses that end", () => endPauses(world));
    const redisMark = await reconcileRedis(last?.redisMark ?? null);
    await periodic.runDue(attempt);
    await attempt("workers", () => checkWorkers(world));
    await saveTick(redisMark);
  }

  /** Restores pauses and schedules in Redis and queues undone work. Returns the boot mark of Redis, null if it has none. */
  async function reconcileRedis(known: string | null): Promise<string | null> {
    let found: string | null = null;
    const isReached = await attempt("Redis", async () => {
      if (queues.redis.status !== "ready") throw new Error("it is away, so nothing is reconciled");
      const { mark, isLost } = await findMark(queues, known);
      found = mark;
      if (isLost) await reportRedisLoss(world);
    });
    if (!isReached) return known;
    let mark = known;
    if (await restore()) {
      mark = found ?? (await markRedis());
      await attempt("alerts", () => closeAlert(sql, log, { kind: "redis_lost", subject: "redis" }));
    }
    for (const job of queues.jobs) await attempt(`sweep of ${job.name}`, () => sweep(world, job));
    return mark;
  }

  /** Whether all pauses and schedules were restored. */
  async function restore(): Promise<boolean> {
    let isComplete = await attempt("pauses", () => restorePauses(world));
    for (const job of queues.jobs) {
      const isRestored = await attempt(`schedules of ${job.name}`, () => restoreSchedules(world, job));
      isComplete &&= isRestored;
    }
    return isComplete;
  }

  async function markRedis(): Promise<string> {
    await queues.restoreSettings();
    return setMark(queues, id);
  }

  async function saveTick(redisMark: string | null): Promise<void> {
    const now = await elect(true);
    if (!now.isHeld) return;
    const heartbeat = { leader: id, redisMark, failures: steps.failures(), tasks: periodic.states() };
    await saveHeartbeat(sql, heartbeat, now.epoch);
    await closeAlert(sql, log, { kind: "no_leader", subject: "reconcile" });
  }

  async function watchLeader(): Promise<void> {
    const heartbeat = await findHeartbeat(sql);
    const ageMs = heartbeat?.ageMs ?? performance.now() - startedAt;
    if (ageMs <= LEADERLESS_MS) return;
    const text = `no worker has reconciled the queues for ${Math.round(ageMs / 1_000)} s: schedules, pauses and lost work are not restored; start or restart a worker`;
    await openAlert(sql, log, { kind: "no_leader", subject: "reconcile", text });
  }

  return {
    async tick(mayLead) {
      const now = await elect(mayLead);
      await (now.isHeld ? steps.attempt("reconciliation", lead) : steps.attempt("watch over the leader", watchLeader));
      return now.isHeld ? Infinity : now.freeInMs;
    },
    isLeading: () => state.isHeld && lease.isHeld(),
  };
}
