import { findHeartbeat, listPauses, listWorkers } from "../../queue/runs/inspect.ts";
import type { OpsParts } from "../contract.ts";
import { readHouses } from "../../health/house-facts-store.ts";
import { readOpen, readTables } from "../../health/table-facts-store.ts";
import { readAlerts, readNotices, readUsual } from "./open-store.ts";
import type { ProblemFacts } from "./problems.ts";
import type { BoardFacts } from "./rows.ts";
import { listSnoozes } from "./snooze-store.ts";
import type { Snooze } from "./snooze.ts";

/** What the board shows. */
export interface Board extends BoardFacts, ProblemFacts {
  snoozes: readonly Snooze[];
  now: Date;
  liveWindowSeconds: number;
}

/** Reads everything that the board shows, in parallel; of one house and its tables if given. */
export async function readBoard({ sql, liveWindowSeconds }: OpsParts, house: string | null = null): Promise<Board> {
  const own = { house: house ?? undefined };
  const [tables, houses, open, notices, alerts, usual, pauses, workers, heartbeat, snoozes] = await Promise.all([
    readTables(sql, own),
    readHouses(sql, house),
    readOpen(sql, own),
    readNotices(sql, house),
    readAlerts(sql),
    readUsual(sql, house),
    listPauses(sql),
    listWorkers(sql),
    findHeartbeat(sql),
    listSnoozes(sql),
  ]);
  const reconciledMsAgo = heartbeat?.ageMs ?? null;
  const reconcilerErrors = heartbeat?.failures ?? {};
  const now = new Date();
  const queues = { pauses, workers, reconciledMsAgo, reconcilerErrors };
  return { tables, houses, open, notices, alerts, usual, snoozes, ...queues, liveWindowSeconds, now };
}
