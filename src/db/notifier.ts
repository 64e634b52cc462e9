import { setTimeout as delay } from "node:timers/promises";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Sql } from "./client.ts";

/** The channel on which API processes hear that published rows changed. */
export const PUBLISHED_CHANNEL = "roundhouse_published";
/** Twenty a second are as live as a page can show; every listener re-reads all that changed. */
const SPACING_MS = 50;

/** Tells API processes that published rows changed. */
export interface Notifier {
  /** Asks for one NOTIFY after the commit; what is asked for within 50 ms becomes one. Never throws. */
  published(): void;
  /** Sends what is still due. */
  close(): Promise<void>;
}

/**
 * Sends `NOTIFY roundhouse_published` at most once per 50 ms, outside of transactions: within one it would take a
 * database-wide lock at commit. A lost one costs listeners a few seconds, since they also look by themselves; so a
 * failure is logged and not thrown.
 */
export function createNotifier(sql: Sql, log: Log): Notifier {
  let due = false;
  let sending: Promise<void> | null = null;

  async function send(): Promise<void> {
    await Promise.resolve(); // several in one go are one
    while (due) {
      due = false;
      await Promise.all([notify(sql, log), delay(SPACING_MS)]);
    }
    sending = null;
  }

  return {
    published() {
      due = true;
      sending ??= send();
    },
    async close() {
      await sending;
    },
  };
}

async function notify(sql: Sql, log: Log): Promise<void> {
  try {
    await sql`select pg_notify(${PUBLISHED_CHANNEL}, '')`;
  } catch (error) {
    log.warn(`published rows were not announced: ${reasonOf(error)}`);
  }
}
