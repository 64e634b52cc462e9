import type { Sql } from "../db/client.ts";
import { createNotifier } from "../db/connections/notifier.ts";
import { createLog } from "../log.ts";

/** Notifies the API processes that data they publish has changed. */
export async function announce(sql: Sql, level: string): Promise<void> {
  const notifier = createNotifier(sql, createLog(level, process.stderr.isTTY));
  notifier.published();
  await notifier.close();
}
