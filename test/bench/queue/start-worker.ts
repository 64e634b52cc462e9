import { NO_PASSES } from "../../support/context.ts";
import pino from "pino";
import { loadSettings } from "../../../src/config/environment.ts";
import type { Sql } from "../../../src/db/client.ts";
import type { Job } from "../../../src/queue/job.ts";
import { startWorkers } from "../../../src/queue/worker.ts";

/** Where ours works. */
export interface QueueServers {
  sql: Sql;
  databaseUrl: string;
  redisUrl: string;
}

/** As a process logs that writes to nowhere: runs without work leave no line at its level either. */
export const silent = pino({ level: "info" }, { write: () => undefined });

/** Works on one job in this process as `roundhouse worker` does; gives what stops it. */
export async function startWorker(
  { sql, redisUrl }: QueueServers,
  job: Job<{ house: string }>,
): Promise<() => Promise<void>> {
  const workers = await startWorkers({
    jobs: [job],
    sql,
    passes: NO_PASSES,
    redisUrl,
    settings: loadSettings({}),
    variables: () => undefined,
    http: { fetch: () => Promise.reject(new Error("no house is asked here")), close: () => Promise.resolve() },
    log: silent,
    version: "0.0.0",
    onFatal: (error) => {
      throw error;
    },
  });
  return async () => workers.stop(2_000);
}
