import { openAlert, syncAlerts } from "../../alerts/store.ts";
import { appendAudit } from "../../audit/store.ts";
import type { Settings } from "../../config/environment.ts";
import type { Sql } from "../../db/client.ts";
import type { Log } from "../../log.ts";
import { findMark } from "../boot-mark.ts";
import type { Job } from "../job.ts";
import type { Queues } from "../queues.ts";
import { inBatches, syncSchedulers } from "./schedulers.ts";
import {
  deleteEndedPauses,
  deleteSilentWorkers,
  findHeartbeat,
  findPause,
  listPauses,
  listWrongClocks,
} from "../store.ts";

const LEADERLESS_MS = 60_000;

/** What the steps of a tick work with. */
export interface StepContext {
  sql: Sql;
  settings: Settings;
  queues: Queues;
  log: Log;
}

/** Ends the pauses whose time is over, with an entry in the audit log. */
export async function endPauses({ sql, log }: StepContext): Promise<void> {
  const ended = await sql.begin(async (tx) => {
    const pauses = await deleteEndedPauses(tx);
    for (const { queue, until, pausedBy, reason } of pauses) {
      const by = { surface: "system", actor: "reconciler", role: null, requestId: null, address: null } as const;
      const change = { before: { pausedBy, reason, until }, after: { paused: false }, reason: "its time was over" };
      await appendAudit(tx, { ...by, action: "queue.resume", target: `queue ${queue}`, ...change });
    }
    return pauses;
  });
  for (const { queue, pausedBy } of ended) log.info({ queue }, `the pause by ${pausedBy} is over`);
}

/**
 * Reads the boot mark of Redis, and opens an alert if Redis lost its data since the mark `known`. Returns the mark; null if
 * Redis has none.
 * @throws Error if Redis is unavailable.
 */
export async function checkRedisData({ sql, queues, log }: StepContext, known: string | null): Promise<string | null> {
  if (queues.redis.status !== "ready") throw new Error("it is away, so nothing is reconciled");
  const { mark, isLost } = await findMark(queues, known);
  const text =
    "Redis lost its data: schedules, pauses and queued work are restored from PostgreSQL; no round is lost, failed runs are no longer listed";
  if (isLost) await openAlert(sql, log, { kind: "redis_lost", subject: "redis", text });
  return mark;
}

/**
 * Pauses and resumes queues in Redis as PostgreSQL states.
 * @throws the first error, after all queues were tried.
 */
export async function restorePauses({ sql, queues, log }: StepContext): Promise<void> {
  const paused = new Set((await listPauses(sql)).map(({ queue }) => queue));
  const failures: unknown[] = [];
  for (const { name } of queues.jobs) {
    const queue = queues.get(name);
    try {
      const isPaused = await queue.isPaused();
      if (isPaused === paused.has(name)) continue;
      const isWanted = (await findPause(sql, name)) !== null; // staff may have changed it since the list was read
      if (isPaused === isWanted) continue;
      await (isWanted ? queue.pause() : queue.resume());
      log.info({ queue: name }, isWanted ? "paused, as in PostgreSQL" : "resumed, as in PostgreSQL");
    } catch (error) {
      failures.push(error); // in a cluster the other queues can be on a node that responds
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Makes the schedules of a job in Redis equal to those that it derives from PostgreSQL. */
export async function restoreSchedules({ sql, settings, queues }: StepContext, job: Job<unknown>): Promise<void> {
  const schedules = (await job.schedule?.({ sql, settings })) ?? [];
  await syncSchedulers(queues.get(job.name), job, schedules, Date.now());
}

/** Queues the work that the sweep of a job finds undone. */
export async function sweep({ sql, settings, queues }: StepContext, job: Job<unknown>): Promise<void> {
  const undone = (await job.sweep?.({ sql, settings })) ?? [];
  await inBatches(undone, (payload) => queues.enqueue(job, payload));
}

/** Forgets worker processes that died, and alerts on those whose clock is wrong. */
export async function checkWorkers({ sql, log }: StepContext): Promise<void> {
  await deleteSilentWorkers(sql);
  await syncAlerts(sql, log, "clock_skew", await listWrongClocks(sql));
}

/** Opens an alert if no worker has led for a minute; `startedAt` is the monotonic time of the start of this process. */
export async function alertIfLeaderless({ sql, log }: StepContext, startedAt: number): Promise<void> {
  const heartbeat = await findHeartbeat(sql);
  const ageMs = heartbeat?.ageMs ?? performance.now() - startedAt;
  if (ageMs <= LEADERLESS_MS) return;
  const text = `no worker has reconciled the queues for ${Math.round(ageMs / 1_000)} s: schedules, pauses and lost work are not restored; start or restart a worker`;
  await openAlert(sql, log, { kind: "no_leader", subject: "reconcile", text });
}
