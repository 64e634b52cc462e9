import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { CallCounts, type CallMinute } from "../usage/call-counts.ts";
import { OPERATIONS } from "./operations.ts";
import type { Facts } from "../http/request.ts";
import { USAGE_PATH } from "./usage.ts";

const WRITE_EVERY_MS = 1_000;

/** Records finished calls for the pages of their account. Writes are delayed, since a call must not wait for them. */
export interface RecordedCalls {
  /** Records a finished request; one without a caller is ignored. */
  note(path: string, status: number, facts: Facts): void;
  /** Writes what is pending. */
  close(): Promise<void>;
}

const endpointOf = new Map([
  ...OPERATIONS.map(({ path, endpoint }) => [path, endpoint] as const),
  [USAGE_PATH, "usage"],
]);

/**
 * Passes finished calls to `write` about once a second, one batch at a time; a failed write is retried with the next.
 * `write` returns how many calls it left out, which are only logged. `nowMs` is database time.
 */
export function recordCalls(
  write: (minutes: CallMinute[]) => Promise<number>,
  nowMs: () => number,
  log: Log,
): RecordedCalls {
  const counts = new CallCounts();
  let writing: Promise<void> | null = null;
  let isFailing = false;

  async function writeDue(): Promise<void> {
    const due = counts.take();
    if (due.length === 0) return;
    try {
      const leftOut = await write(due);
      if (leftOut > 0 && !isFailing)
        log.warn(`${leftOut} calls are not stored per minute: their day has no partition, is a worker running?`);
      isFailing = leftOut > 0;
    } catch (error) {
      if (!isFailing) log.warn(`the calls per minute cannot be stored: ${reasonOf(error)}`);
      isFailing = true;
      counts.putBack(due);
    }
  }

  const timer = setInterval(() => {
    writing ??= writeDue().finally(() => (writing = null));
  }, WRITE_EVERY_MS);
  timer.unref();
  return {
    note(path, status, { caller, refusal }) {
      const endpoint = endpointOf.get(path);
      if (caller === undefined || endpoint === undefined) return;
      const outcome = refusal ?? (status === 304 ? "not_modified" : "ok");
      counts.note({ accountId: caller.accountId, keyId: caller.keyId, endpoint, outcome }, nowMs());
    },
    async close() {
      clearInterval(timer);
      await writing;
      await writeDue();
    },
  };
}
