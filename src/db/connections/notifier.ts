import { setTimeout as delay } from "node:timers/promises";
import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import type { Sql } from "../client.ts";

/** The channel on which API processes hear that tables changed. */
export const PUBLISHED_CHANNEL = "roundhouse_published";
/** Twenty per second are more than a page can show. */
const SPACING_MS = 50;
/** A payload has at most 8,000 bytes; listeners check all versions cheaply. */
const MOST_TABLES = 700;

/** Notifies API processes that tables changed. */
export interface Notifier {
  /** Sends one NOTIFY for these tables, or for all if none is given. Call it after the commit. Never throws. */
  published: (tableIds?: readonly number[]) => void;
  /** Sends what is pending. */
  close(): Promise<void>;
}

/**
 * Sends `NOTIFY roundhouse_published` at most once per 50 ms, with the ids of all tables that changed meanwhile, outside of
 * transactions: within one it would take a database-wide lock at commit. A lost notification costs listeners a few seconds,
 * since they also poll; so a failure is logged and not thrown.
 */
export function createNotifier(sql: Sql, log: Log): Notifier {
  let due: Set<number> | "all" | null = null;
  let sending: Promise<void> | null = null;

  async function send(): Promise<void> {
    await Promise.resolve(); // several in one tick are one
    while (due !== null) {
      const ids = due === "all" || due.size > MOST_TABLES ? [] : [...due];
      due = null;
      await Promise.all([notify(sql, ids, log), delay(SPACING_MS)]);
    }
    sending = null;
  }

  return {
    published(tableIds = []) {
      if (tableIds.length === 0) due = "all";
      else if (due !== "all") {
        due ??= new Set();
        for (const id of tableIds) due.add(id);
      }
      sending ??= send();
    },
    async close() {
      await sending;
    },
  };
}

/** The tables that a notification names; null for all. */
export function notifiedTables(payload: string): number[] | null {
  const ids = payload.split(",").map(Number);
  return payload === "" || ids.some((id) => !Number.isSafeInteger(id)) ? null : ids;
}

async function notify(sql: Sql, ids: readonly number[], log: Log): Promise<void> {
  try {
    await sql`select pg_notify(${PUBLISHED_CHANNEL}, ${ids.join(",")})`;
  } catch (error) {
    log.warn(`changed tables were not announced: ${reasonOf(error)}`);
  }
}
