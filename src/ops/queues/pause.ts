import type { Sql } from "../../db/client.ts";
import { listPauses, type Pause } from "../../queue/inspect.ts";

/** The pause of a queue; null where it goes on. */
export async function findQueuePause(sql: Sql, queue: string): Promise<Pause | null> {
  return (await listPauses(sql)).find((pause) => pause.queue === queue) ?? null;
}
