import pino from "pino";
import { z } from "zod";
import { loadSettings } from "../../src/config/environment.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import type { Log } from "../../src/log.ts";
import type { Job } from "../../src/queue/job.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import { startWorkers, type WorkerOptions, type Workers } from "../../src/queue/worker.ts";
import { NO_PASSES } from "../support/context.ts";
import { createDatabase, createRedis } from "../support/database.ts";

const line = z.looseObject({ level: z.number(), msg: z.string() });
/** A line of a log. */
export type Line = z.infer<typeof line>;

/** A log that can be read. */
export function readableLog(): { log: Log; lines: Line[] } {
  const lines: Line[] = [];
  const log = pino(
    { level: "debug", base: null },
    { write: (text: string) => lines.push(line.parse(JSON.parse(text))) },
  );
  return { log, lines };
}

/** Levels of pino's lines. */
export const LEVEL = { debug: 20, info: 30, warn: 40, error: 50 };

/** A database, an empty Redis, and worker processes in this process. */
export interface World {
  sql: Sql;
  databaseUrl: string;
  redisUrl: string;
  log: Log;
  lines: Line[];
  /** Starts workers that tick every 100 ms; they are stopped with the world. */
  start(jobs: readonly Job<unknown>[], options?: Partial<WorkerOptions>): Promise<Workers>;
  open(jobs: readonly Job<unknown>[]): Promise<Queues>;
  end(): Promise<void>;
}

export async function createWorld(): Promise<World> {
  const [database, redis] = await Promise.all([createDatabase(), createRedis()]);
  const sql = connect(database.url, { name: "test" });
  const { log, lines } = readableLog();
  const endings: (() => Promise<void>)[] = [];
  return {
    sql,
    databaseUrl: database.url,
    redisUrl: redis.url,
    log,
    lines,
    async start(jobs, options) {
      const workers = await startWorkers({
        jobs,
        sql,
        passes: NO_PASSES,
        redisUrl: redis.url,
        settings: loadSettings({}),
        variables: () => undefined,
        http: { fetch: () => Promise.reject(new Error("no house is asked here")), close: () => Promise.resolve() },
        log,
        version: "0.0.0",
        onFatal: (error) => log.fatal(error),
        tickMs: 100,
        ...options,
      });
      endings.push(() => workers.stop(0));
      return workers;
    },
    async open(jobs) {
      const queues = await openQueues(jobs, redis.url, log);
      endings.push(() => queues.close());
      return queues;
    },
    async end() {
      for (const end of endings.toReversed()) await end();
      await sql.end({ timeout: 1 }); // without one it waits for ever for a connection that the server cut
      await database.drop();
    },
  };
}

/** The payload of every job made here. */
export interface Task {
  house: string;
  note?: string | undefined;
}

/** A job about houses that does nothing, but for what is given. */
export function makeJob(given: Partial<Job<Task>> & { name: string }): Job<Task> {
  return {
    payload: z.object({ house: z.string(), note: z.string().optional() }),
    key: ({ house }) => house,
    schedule: null,
    sweep: null,
    concurrency: 5,
    timeoutMs: 10_000,
    retry: { attempts: 3, firstMs: 1, maxMs: 10 },
    run: () => Promise.resolve({}),
    ...given,
  };
}

/** A promise and the way to keep it. */
export function gate(): { open(): void; passed: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { open: () => resolve(), passed: promise };
}
