import type { Log } from "../log.ts";
import type { Consumer } from "./consumer.ts";
import type { Queues } from "./queues.ts";
import { WAKE } from "./run.ts";

/** Delayed runs are due to the millisecond; this late, somebody should have taken them. */
const OVERDUE_MS = 10_000;
const CHECKS_TO_WAKE = 2;
const CHECKS_TO_REPLACE = 4;
const REPLACED_IN_VAIN = 3;

/**
 * Finds queues that have work and a worker, and where nothing happens: delayed runs that are overdue, or a worker whose
 * loop has ended (taskforcesh/bullmq#3516, #3185). First any new run wakes such a queue; if that does not help and we
 * are idle, our worker begins anew on a new connection; if three in a row do not help, `onFatal` is told, since only a
 * new process will.
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
    const overdue = (await queue.isPaused()) ? 0 : await queue.getDelayedCount(Date.now() - OVERDUE_MS);
    if (consumer.isTaking() && overdue === 0) {
      states.delete(consumer.queue);
      return;
    }
    states.set(consumer.queue, state);
    state.checks++;
    if (state.checks === CHECKS_TO_WAKE) {
      log.warn({ queue: consumer.queue, overdue }, "delayed runs are overdue: waking the queue");
      const once = { deduplication: { id: WAKE }, removeOnComplete: true, removeOnFail: true };
      await queue.add(WAKE, {}, once);
    }
    if (state.checks < CHECKS_TO_REPLACE || consumer.runner.active() > 0) return;
    if (state.replaced === REPLACED_IN_VAIN) {
      onFatal(
        new Error(`queue ${consumer.queue} has work, and no worker of this process gets any; it must start anew`),
      );
      return;
    }
    log.warn({ queue: consumer.queue, overdue }, "delayed runs are still overdue: beginning anew with this queue");
    state.checks = 0;
    state.replaced++;
    await consumer.replace();
  };
}
