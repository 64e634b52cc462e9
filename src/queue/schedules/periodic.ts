import type { Settings } from "../../config/environment.ts";
import type { Sql } from "../../db/client.ts";
import { LEASE_MS } from "../../db/lease.ts";
import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";

/** Ticks are not exact: a task whose interval ends within this share of it runs now instead of a whole tick later. */
const EARLY_SHARE = 0.1;

/** What a periodic task works with. */
export interface PeriodicContext {
  sql: Sql;
  settings: Settings;
  log: Log;
  /** Notifies the API processes that these tables changed. Call it after the commit. */
  published: (tableIds: readonly number[]) => void;
}

/**
 * Work that only the passing of time makes due. The leading worker runs it, also while Redis is unavailable. A task must
 * be idempotent: after a change of leader two processes can run it at the same time.
 */
export interface PeriodicTask {
  /** Its name in the log and at `/ops/queues/tasks`. */
  name: string;
  /** One sentence for staff. */
  purpose: string;
  intervalSeconds: number;
  /** Its statements are cancelled after this time, and it counts as failed. */
  timeoutSeconds: number;
  run(context: PeriodicContext): Promise<unknown>;
}

/** The last run of a task, as the heartbeat of the leader carries it. */
export interface PeriodicState {
  name: string;
  purpose: string;
  intervalSeconds: number;
  /** When it last started, as ISO 8601; null before its first run by this leader. */
  startedAt: string | null;
  /** Duration of the last run. */
  ms: number | null;
  /** Why the last run failed; null if it did not. */
  failure: string | null;
}

/** The periodic tasks of one worker process. */
export interface PeriodicTasks {
  /**
   * Runs the tasks that are due, one after the other. `attempt` runs a step of the tick, or skips it. In a new `epoch` of
   * the leadership all tasks begin again: what they remember of an earlier one is outdated.
   */
  runDue(attempt: (step: string, work: () => Promise<unknown>) => Promise<boolean>, epoch: bigint): Promise<void>;
  states(): PeriodicState[];
}

/**
 * Creates the tasks of a process; `list` returns them again for each leadership, `now` is a monotonic clock in milliseconds.
 * @throws RangeError if a task may take as long as the leader's lease: it would cost the leadership
 */
export function createPeriodicTasks(
  list: () => readonly PeriodicTask[],
  context: PeriodicContext,
  now: () => number = () => performance.now(),
): PeriodicTasks {
  const begin = () => list().map((task) => ({ task, startedMs: -Infinity, state: stateOf(task) }));
  let entries = begin();
  let lastEpoch: bigint | null = null;
  for (const { task } of entries) requireShort(task);
  return {
    async runDue(attempt, epoch) {
      if (lastEpoch !== null && epoch !== lastEpoch) entries = begin();
      lastEpoch = epoch;
      for (const entry of entries) {
        const { task, state } = entry;
        if (now() - entry.startedMs < task.intervalSeconds * 1_000 * (1 - EARLY_SHARE)) continue;
        await attempt(task.name, async () => {
          entry.startedMs = now();
          state.startedAt = new Date().toISOString();
          try {
            await runTask(task, context);
            state.failure = null;
          } catch (error) {
            state.failure = reasonOf(error);
            throw error;
          } finally {
            state.ms = Math.round(now() - entry.startedMs);
          }
          context.log.debug({ task: task.name, ms: state.ms }, "periodic task done");
        });
      }
    },
    states: () => entries.map(({ state }) => ({ ...state })),
  };
}

async function runTask(task: PeriodicTask, context: PeriodicContext): Promise<void> {
  const deadline = AbortSignal.timeout(task.timeoutSeconds * 1_000);
  try {
    await task.run({ ...context, sql: context.sql.until(deadline) });
  } catch (error) {
    if (!deadline.aborted) throw error;
    throw new Error(`expected an end within ${task.timeoutSeconds} s`, { cause: error });
  }
}

function requireShort({ name, timeoutSeconds }: PeriodicTask): void {
  if (timeoutSeconds * 1_000 < LEASE_MS) return;
  throw new RangeError(
    `expected a timeout below ${LEASE_MS / 1_000} s, the leader's lease, for the periodic task ${name}, found ${timeoutSeconds} s`,
  );
}

function stateOf({ name, purpose, intervalSeconds }: PeriodicTask): PeriodicState {
  return { name, purpose, intervalSeconds, startedAt: null, ms: null, failure: null };
}
