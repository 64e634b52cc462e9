import { NO_PASSES } from "../../support/context.ts";
import pino from "pino";
import { loadSettings } from "../../../src/config/environment.ts";
import type { Sql } from "../../../src/db/client.ts";
import type { Job } from "../../../src/queue/job.ts";
import { startWorkers } from "../../../src/queue/worker.ts";

/** The servers of our queue. */
export interface QueueServers {
  sql: Sql;
  databaseUrl: string;
  redisUrl: string;
}

/** A log at the level of production that discards its lines. */
export const silent = pino({ level: "info" }, { write: () => undefined });

/** Starts workers of one job in this process as `roundhouse worker` does. Returns the function that stops them. */
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
    http: { fetch: () => Promise.reject(new Error("expected no request to a house")), close: () => Promise.resolve() },
    log: silent,
    version: "0.0.0",
    onFatal: (error) => {
      throw error;
    },
  });
  return async () => workers.stop(2_000);
}
