import type { Queue } from "bullmq";
import type { Log } from "../../log.ts";
import type { Consumer } from "../consumer.ts";
import type { Queues } from "../queues.ts";
import { WAKE } from "../runs/run.ts";

/** Delayed runs are due to the millisecond; a worker should have taken them after this time. */
const OVERDUE_MS = 10_000;
const CHECKS_TO_WAKE = 2;
const CHECKS_TO_REPLACE = 4;
const REPLACED_IN_VAIN = 3;

/**
 * Finds queues that are stuck although they have work and a worker: delayed runs that are overdue, runs that wait while
 * none is active, or a worker whose loop has ended (taskforcesh/bullmq#3516, #3185). First any new run wakes such a queue;
 * if that fails, workers that stopped are replaced, or, if none did and no run is active, all on new connections; after
 * three times `onFatal` is called, since only a new process helps.
 */
export function createOverdueWatch(options: {
  queues: Queues;
  log: Log;
  onFatal: (error: Error) => void;
}): (consumer: Consumer) => Promise<void> {
  const { queues, log, onFatal } = options;
  const states = new Map<string, { checks: number; replaced: number }>();

  return async (consumer) => {
    const queue = queues.get(consumer.queue);
    const state = states.get(consumer.queue) ?? { checks: 0, replaced: 0 };
    const left = (await queue.isPaused()) ? NOTHING_LEFT : await countLeft(queue);
    if (consumer.isTaking() && left.overdue === 0 && left.waiting === 0) {
      states.delete(consumer.queue);
      return;
    }
    states.set(consumer.queue, state);
    state.checks++;
    if (state.checks === CHECKS_TO_WAKE) {
      log.warn({ queue: consumer.queue, ...left }, "runs are not taken: waking the queue");
      const once = { deduplication: { id: WAKE }, removeOnComplete: true, removeOnFail: true };
      await queue.add(WAKE, {}, once);
    }
    if (state.checks < CHECKS_TO_REPLACE || (consumer.isTaking() && consumer.runner.active() > 0)) return;
    if (state.replaced === REPLACED_IN_VAIN) {
      onFatal(
        new Error(`queue ${consumer.queue} has work, and no worker of this process gets any; it must start again`),
      );
      return;
    }
    log.warn({ queue: consumer.queue, ...left }, "runs are still not taken: restarting the worker of this queue");
    state.checks = 0;
    state.replaced++;
    await consumer.replace();
  };
}

/** Runs that a worker should have taken: delayed ones that are overdue, and waiting ones while none is active. */
interface Left {
  overdue: number;
  waiting: number;
}

const NOTHING_LEFT: Left = { overdue: 0, waiting: 0 };

async function countLeft(queue: Queue): Promise<Left> {
  const overdue = await queue.getDelayedCount(Date.now() - OVERDUE_MS);
  const { waiting = 0, active = 0 } = await queue.getJobCounts("waiting", "active");
  // while one is active the others may be waiting for a free worker
  return { overdue, waiting: active === 0 ? waiting : 0 };
}
