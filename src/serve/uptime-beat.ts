import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";

const BEAT_EVERY_MS = 20_000;

/** Reports several times per minute that this process works. */
export interface UptimeBeat {
  /** Stops, after the last report has ended. */
  close(): Promise<void>;
}

/** Calls `note` immediately and every 20 s, never twice at a time. A minute without a report counts as down. */
export function beatUptime(note: () => Promise<void>, log: Log): UptimeBeat {
  let running: Promise<void> | null = null;
  let isFailing = false;

  async function beat(): Promise<void> {
    try {
      await note();
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.warn(`this process cannot report that it works: ${reasonOf(error)}`);
      isFailing = true;
    }
  }

  const start = () => {
    running ??= beat().finally(() => (running = null));
  };
  start();
  const timer = setInterval(start, BEAT_EVERY_MS);
  timer.unref();
  return {
    async close() {
      clearInterval(timer);
      await running;
    },
  };
}
