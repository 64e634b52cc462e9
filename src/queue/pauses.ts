import type { Sql, Transaction } from "../db/client.ts";
import type { Queues } from "./queues.ts";
import { isRedisUnavailable } from "./redis.ts";
import { deletePause, findPause, insertPause, type Pause } from "./store.ts";

/** The pause before and after a change: null if the queue is not paused. */
export interface PauseChange {
  before: Pause | null;
  after: Pause | null;
}

/** Runs in the transaction of a pause or its end, for example to write an entry in the audit log. */
export type Also = (tx: Transaction, change: PauseChange) => Promise<unknown>;

/**
 * The result. `isApplied` is false if Redis is unavailable: the reconciler applies the change within seconds of its return.
 * `refused` has the present state of the queue and who caused it.
 */
export type ControlOutcome = { kind: "done"; isApplied: boolean } | { kind: "refused"; problem: string };

/** A pause to make; `until` is a time as ISO 8601, null or absent for "until it is resumed". */
export interface PauseRequest {
  queue: string;
  by: string;
  reason: string;
  until?: string | null;
}

const nothingElse: Also = () => Promise.resolve();

/**
 * Pauses a queue in all processes: active runs continue, no run starts. The row in PostgreSQL is written first: if Redis is
 * unavailable or loses the pause, the reconciler applies it. A queue that is paused already is left as it is.
 * @throws UsageError if there is no such queue.
 */
export async function pauseQueue(
  sql: Sql,
  queues: Queues,
  pause: PauseRequest,
  also: Also = nothingElse,
): Promise<ControlOutcome> {
  const queue = queues.get(pause.queue);
  const found = await sql.begin(async (tx) => {
    for (;;) {
      const after = await insertPause(tx, { ...pause, until: pause.until ?? null });
      if (after !== null) {
        await also(tx, { before: null, after });
        return null;
      }
      const before = await findPause(tx, pause.queue);
      if (before !== null) return before; // else it ended between the two statements
    }
  });
  if (found !== null) return { kind: "refused", problem: `${pause.queue} is paused already: ${pauseText(found)}` };
  return { kind: "done", isApplied: await applyInRedis(queues, () => queue.pause()) };
}

/**
 * Resumes a paused queue; with `version` only if its pause has that version.
 * @throws UsageError if there is no such queue.
 */
export async function resumeQueue(
  sql: Sql,
  queues: Queues,
  resume: { queue: string; version?: string | null },
  also: Also = nothingElse,
): Promise<ControlOutcome> {
  const queue = queues.get(resume.queue);
  const outcome = await sql.begin(async (tx) => {
    const before = await deletePause(tx, resume.queue, resume.version ?? null);
    if (before === null) return { isDone: false, found: await findPause(tx, resume.queue) };
    await also(tx, { before, after: null });
    return { isDone: true, found: null };
  });
  if (outcome.isDone) return { kind: "done", isApplied: await applyInRedis(queues, () => queue.resume()) };
  const problem =
    outcome.found === null
      ? `${resume.queue} is not paused: it was never paused, or was resumed meanwhile`
      : `the pause of ${resume.queue} is not the one that you saw: ${pauseText(outcome.found)}`;
  return { kind: "refused", problem };
}

/** A pause as a sentence for staff. */
function pauseText({ pausedBy, pausedAt, reason, until }: Omit<Pause, "queue" | "version">): string {
  const end = until === null ? "until it is resumed" : `until ${minuteText(until)}`;
  return `by ${pausedBy} since ${minuteText(pausedAt)}, ${end}: ${reason}`;
}

/** A pause in the form of the audit log. */
export function pauseFacts(pause: Pause | null): object {
  if (pause === null) return { paused: false };
  const { pausedBy, pausedAt, reason, until } = pause;
  return { paused: true, by: pausedBy, at: pausedAt, reason, until };
}

function minuteText(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")}Z`;
}

/** Applies a change in Redis; false if Redis is unavailable. */
async function applyInRedis(queues: Queues, apply: () => Promise<unknown>): Promise<boolean> {
  if (queues.redis.status !== "ready") return false;
  try {
    await apply();
    return true;
  } catch (error) {
    if (isRedisUnavailable(error) || isGone(queues)) return false;
    throw error;
  }
}

/** Commands in flight when the connection breaks fail with errors of the client. */
function isGone({ redis }: Queues): boolean {
  return redis.status !== "ready";
}
