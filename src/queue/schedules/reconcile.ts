import { closeAlert } from "../../alerts/store.ts";
import type { Settings } from "../../config/environment.ts";
import type { Sql } from "../../db/client.ts";
import type { Lease, LeaseState } from "../../db/lease.ts";
import type { Log } from "../../log.ts";
import { setMark } from "../boot-mark.ts";
import type { PeriodicTasks } from "./periodic.ts";
import type { Queues } from "../queues.ts";
import {
  alertIfLeaderless,
  checkRedisData,
  checkWorkers,
  endPauses,
  restorePauses,
  restoreSchedules,
  type StepContext,
  sweep,
} from "./reconcile-steps.ts";
import { createSteps, type Steps } from "../runs/steps.ts";
import { findHeartbeat, saveHeartbeat } from "../store.ts";

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
  const leadership = createLeadership(lease, steps, log);
  const { attempt } = leadership;
  const startedAt = performance.now();

  async function lead(epoch: bigint): Promise<void> {
    const last = await findHeartbeat(sql);
    await attempt("pauses that end", () => endPauses(world));
    const redisMark = await reconcileRedis(last?.redisMark ?? null);
    await saveTick(redisMark); // slow periodic tasks can take longer than a leader may be silent
    await periodic.runDue(attempt, epoch);
    await attempt("workers", () => checkWorkers(world));
    await saveTick(redisMark);
  }

  /** Restores pauses and schedules in Redis and queues undone work. Returns the boot mark of Redis, null if it has none. */
  async function reconcileRedis(known: string | null): Promise<string | null> {
    let found: string | null = null;
    const isReached = await attempt("Redis", async () => {
      found = await checkRedisData(world, known);
    });
    if (!isReached) return known;
    let mark = known;
    if (await restore(world, attempt)) {
      mark = found ?? (await markRedis(queues, id));
      await attempt("alerts", () => closeAlert(sql, log, { kind: "redis_lost", subject: "redis" }));
    }
    for (const job of queues.jobs) await attempt(`sweep of ${job.name}`, () => sweep(world, job));
    return mark;
  }

  async function saveTick(redisMark: string | null): Promise<void> {
    const now = await leadership.elect(true);
    if (!now.isHeld) return;
    const heartbeat = { leader: id, redisMark, failures: steps.failures(), tasks: periodic.states() };
    await saveHeartbeat(sql, heartbeat, now.epoch);
    await closeAlert(sql, log, { kind: "no_leader", subject: "reconcile" });
  }

  return {
    async tick(mayLead) {
      const now = await leadership.elect(mayLead);
      await steps.attempt("leader check", async () => now.isHeld || alertIfLeaderless(world, startedAt));
      if (now.isHeld) await steps.attempt("reconciliation", () => lead(now.epoch));
      return now.isHeld ? Infinity : now.freeInMs;
    },
    isLeading: () => leadership.isHeld() && lease.isHeld(),
  };
}

/** Runs a step of a tick, or skips it. */
type Attempt = Steps["attempt"];

/** The leadership of this process. */
interface Leadership {
  /** Acquires, renews or releases the lease. It counts as not held if the database cannot be reached. */
  elect(mayLead: boolean): Promise<LeaseState>;
  /** Runs one step of a tick, unless the lease was lost in this tick. */
  attempt: Attempt;
  isHeld(): boolean;
}

function createLeadership(lease: Lease, steps: Steps, log: Log): Leadership {
  let state = NOT_HELD;
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
  return {
    elect,
    async attempt(step, work) {
      if (!state.isHeld || !(await elect(true)).isHeld) return false;
      return steps.attempt(step, work);
    },
    isHeld: () => state.isHeld,
  };
}

/** Whether all pauses and schedules were restored. */
async function restore(world: StepContext, attempt: Attempt): Promise<boolean> {
  let isComplete = await attempt("pauses", () => restorePauses(world));
  for (const job of world.queues.jobs) {
    const isRestored = await attempt(`schedules of ${job.name}`, () => restoreSchedules(world, job));
    isComplete &&= isRestored;
  }
  return isComplete;
}

async function markRedis(queues: Queues, id: string): Promise<string> {
  await queues.restoreSettings();
  return setMark(queues, id);
}
