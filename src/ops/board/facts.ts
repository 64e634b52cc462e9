import { findHeartbeat, listPauses, listWorkers } from "../../queue/inspect.ts";
import type { OpsParts } from "../contract.ts";
import { readHouses } from "./house-facts-store.ts";
import { readAlerts, readNotices, readOpen, readUsual } from "./open-store.ts";
import type { ProblemFacts } from "./problems.ts";
import type { BoardFacts } from "./rows.ts";
import { readTables } from "./table-facts-store.ts";

/** Everything that the board is made of, read at the same time. */
export async function readBoard({ sql, liveWindowSeconds }: OpsParts): Promise<BoardFacts & ProblemFacts> {
  const [tables, houses, open, notices, alerts, usual, pauses, workers, heartbeat] = await Promise.all([
    readTables(sql),
    readHouses(sql),
    readOpen(sql),
    readNotices(sql),
    readAlerts(sql),
    readUsual(sql),
    listPauses(sql),
    listWorkers(sql),
    findHeartbeat(sql),
  ]);
  const reconciledMsAgo = heartbeat?.ageMs ?? null;
  const reconcilerErrors = heartbeat?.failures ?? {};
  const now = new Date();
  const queues = { pauses, workers, reconciledMsAgo, reconcilerErrors };
  return { tables, houses, open, notices, alerts, usual, ...queues, liveWindowSeconds, now };
}
