import type { Decided, Made, Refusal } from "../audit/decision.ts";
import type { Sql, Transaction } from "../db/client.ts";
import type { Queues } from "./queues.ts";
import { isRedisUnavailable } from "./redis.ts";
import { deletePause, findPause, insertPause, type Pause } from "./store.ts";

/** Runs in the transaction of a pause or its end, to write its entry in the audit log. */
type Also = (tx: Transaction, made: Made) => Promise<unknown>;

/** `isApplied` is false if Redis is unavailable: the reconciler applies the change within seconds of its return. */
type PauseDecision = Decided<{ isApplied: boolean }>;

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
): Promise<PauseDecision> {
  const queue = queues.get(pause.queue);
  const decided = await sql.begin(async (tx): Promise<Decided> => {
    for (;;) {
      const after = await insertPause(tx, { ...pause, until: pause.until ?? null });
      if (after !== null) return changed(tx, pause.queue, { before: null, after }, also);
      const before = await findPause(tx, pause.queue); // null if it ended between the two statements
      if (before !== null) return refuse(`${pause.queue} is paused already: ${pauseText(before)}`);
    }
  });
  return applied(queues, decided, () => queue.pause());
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
): Promise<PauseDecision> {
  const queue = queues.get(resume.queue);
  const decided = await sql.begin(async (tx): Promise<Decided> => {
    const before = await deletePause(tx, resume.queue, resume.version ?? null);
    if (before !== null) return changed(tx, resume.queue, { before, after: null }, also);
    const found = await findPause(tx, resume.queue);
    return refuse(
      found === null
        ? `${resume.queue} is not paused: it was never paused, or was resumed meanwhile`
        : `the pause of ${resume.queue} is not the one that you saw: ${pauseText(found)}`,
    );
  });
  return applied(queues, decided, () => queue.resume());
}

async function changed(
  tx: Transaction,
  queue: string,
  { before, after }: { before: Pause | null; after: Pause | null },
  also: Also,
): Promise<Made> {
  const end = after?.until == null ? "" : ` until ${minuteText(after.until)}`;
  const message = after === null ? `${queue} is resumed` : `${queue} is paused${end}`;
  const made = { ok: true, target: `queue ${queue}`, before: factsOf(before), after: factsOf(after), message } as const;
  await also(tx, made);
  return made;
}

function refuse(problem: string): Refusal {
  return { ok: false, problem };
}

async function applied(queues: Queues, decided: Decided, apply: () => Promise<unknown>): Promise<PauseDecision> {
  if (!decided.ok) return decided;
  const isApplied = await applyInRedis(queues, apply);
  const later = isApplied ? "" : "; Redis is unavailable, and the change applies within seconds of its return";
  return { ...decided, message: decided.message + later, isApplied };
}

/** A pause as a sentence for staff. */
function pauseText({ pausedBy, pausedAt, reason, until }: Omit<Pause, "queue" | "version">): string {
  const end = until === null ? "until it is resumed" : `until ${minuteText(until)}`;
  return `by ${pausedBy} since ${minuteText(pausedAt)}, ${end}: ${reason}`;
}

/** A pause in the form of the audit log. */
function factsOf(pause: Pause | null): object {
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
