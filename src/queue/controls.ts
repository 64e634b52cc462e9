import type { Sql, Transaction } from "../db/client.ts";
import type { Queues } from "./queues.ts";
import { isRedisTrouble } from "./redis.ts";
import { deletePause, findPause, insertPause, type Pause } from "./store.ts";

/** A pause as it was before and after: null if the queue continues. */
export interface PauseChange {
  before: Pause | null;
  after: Pause | null;
}

/** What goes into the transaction of a pause or its end, such as an entry in the audit log. */
export type Also = (tx: Transaction, change: PauseChange) => Promise<unknown>;

/**
 * What came of it. `isTold` is false where Redis could not be told now: the reconciler tells it within seconds of its
 * coming back. `refused` says how it is meanwhile, and who made it so.
 */
export type ControlOutcome = { kind: "done"; isTold: boolean } | { kind: "refused"; problem: string };

/** How a queue is to be paused; `until` is a time as ISO 8601, null or left out for "until someone lets it continue". */
export interface PauseRequest {
  queue: string;
  by: string;
  reason: string;
  until?: string | null;
}

const nothingElse: Also = () => Promise.resolve();

/**
 * Pauses a queue everywhere: what runs continues, nothing new begins. The row in PostgreSQL comes first: where Redis
 * cannot be told now, or forgets it, the reconciler tells it. A queue that is paused is left as it is, whoever asks.
 * @throws UsageError where there is no such queue.
 */
export async function pauseQueue(
  sql: Sql,
  queues: Queues,
  pause: PauseRequest,
  also: Also = nothingElse,
): Promise<ControlOutcome> {
  const queue = queues.get(pause.queue);
  const found = await sql.begin(async (tx) => {
    const after = await insertPause(tx, { ...pause, until: pause.until ?? null });
    if (after === null) return findPause(tx, pause.queue);
    await also(tx, { before: null, after });
    return null;
  });
  if (found !== null) return { kind: "refused", problem: `${pause.queue} is paused already: ${pauseText(found)}` };
  return { kind: "done", isTold: await tellRedis(queues, () => queue.pause()) };
}

/**
 * Lets a paused queue continue. With `version` only where its pause is the one that was looked at.
 * @throws UsageError where there is no such queue.
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
  if (outcome.isDone) return { kind: "done", isTold: await tellRedis(queues, () => queue.resume()) };
  const problem =
    outcome.found === null
      ? `${resume.queue} is not paused: it continues, or someone let it continue meanwhile`
      : `the pause of ${resume.queue} is not the one that you saw: ${pauseText(outcome.found)}`;
  return { kind: "refused", problem };
}

/** Who paused a queue, when, why and until when, in words. */
function pauseText({ pausedBy, pausedAt, reason, until }: Omit<Pause, "queue" | "version">): string {
  const end = until === null ? "until someone lets it continue" : `until ${minuteText(until)}`;
  return `by ${pausedBy} since ${minuteText(pausedAt)}, ${end}: ${reason}`;
}

/** A pause as the audit log keeps it. */
export function pauseFacts(pause: Pause | null): object {
  if (pause === null) return { paused: false };
  const { pausedBy, pausedAt, reason, until } = pause;
  return { paused: true, by: pausedBy, at: pausedAt, reason, until };
}

function minuteText(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")}Z`;
}

/** False where Redis is out of reach. */
async function tellRedis(queues: Queues, tell: () => Promise<unknown>): Promise<boolean> {
  if (queues.redis.status !== "ready") return false;
  try {
    await tell();
    return true;
  } catch (error) {
    if (isRedisTrouble(error) || isGone(queues)) return false;
    throw error;
  }
}

/** Commands that were under way when the connection broke fail with errors of the client's own. */
function isGone({ redis }: Queues): boolean {
  return redis.status !== "ready";
}
