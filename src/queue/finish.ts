import type { Log } from "../log.ts";
import { LATE, valueOrLate } from "../within.ts";
import type { Consumer } from "./consumer.ts";

/** Aborted runs have two seconds to end; then the process exits, and their locks expire. */
const ABORT_MS = 3_000;

/** Waits for active runs, aborts them after `deadlineMs`, and leaves behind those that do not end even then. */
export async function finish(
  consumers: readonly Consumer[],
  deadlineMs: number,
  stop: AbortController,
  log: Log,
): Promise<void> {
  const runs = () => consumers.reduce((sum, { runner }) => sum + runner.active(), 0);
  const finished = Promise.allSettled(consumers.map((consumer) => consumer.close()));
  if ((await valueOrLate(deadlineMs, finished)) !== LATE) return;
  if (runs() === 0) {
    log.warn("the connections to Redis do not close: leaving them open");
    return;
  }
  log.warn({ runs: runs() }, `runs did not end within ${deadlineMs} ms: aborting them`);
  stop.abort(new Error("the worker stops"));
  if ((await valueOrLate(ABORT_MS, finished)) !== LATE) return;
  log.error({ runs: runs() }, "leaving runs behind: another process runs them again when their locks expire");
}
