import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Sql } from "../../src/db/client.ts";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";
import { stallCommits } from "../simulate/slow-disk.ts";
import { blockWriters } from "./locks.ts";

/** PostgreSQL and Redis are emptied, restarted, frozen, disconnected or out of connections. */
export const SERVER_CASES: readonly FaultCase[] = [
  {
    name: "FLUSHALL",
    targetSeconds: TARGET_SECONDS.redisEmptied,
    from: "beginning",
    isShort: true,
    async run({ servers }) {
      await servers.flushRedis();
      return { fromMs: Date.now() };
    },
  },
  {
    name: "FLUSHALL mid-score",
    targetSeconds: TARGET_SECONDS.redisEmptied,
    from: "beginning",
    async run({ sql, servers }) {
      const lock = await blockWriters(sql, "score_sets");
      await servers.flushRedis();
      const fromMs = Date.now();
      await lock.release();
      return { fromMs };
    },
  },
  {
    name: "Redis killed and restarted",
    targetSeconds: TARGET_SECONDS.redisEmptied,
    from: "end",
    async run({ servers }) {
      await servers.killRedis();
      return { fromMs: Date.now() };
    },
  },
  {
    name: "Redis unavailable for longer than a run's lock, mid-ingest",
    targetSeconds: TARGET_SECONDS.redisEmptied,
    from: "end",
    async run({ sql, servers }) {
      const lock = await blockWriters(sql, "rounds");
      const outage = servers.cut("redis", LONGER_THAN_A_LOCK_MS);
      await delay(LONGER_THAN_A_LOCK_MS - 1_000);
      await lock.release(); // the run completes while its result cannot be reported
      await outage;
      return { fromMs: Date.now() };
    },
  },
  {
    name: "Redis frozen",
    targetSeconds: TARGET_SECONDS.redisEmptied,
    from: "end",
    async run({ servers }) {
      await servers.freezeRedis(6_000);
      return { fromMs: Date.now() };
    },
  },
  {
    name: "workers disconnected from Redis",
    targetSeconds: TARGET_SECONDS.redisEmptied,
    from: "end",
    async run({ servers }) {
      await servers.cut("redis", 5_000);
      return { fromMs: Date.now() };
    },
  },
  {
    name: "PostgreSQL restarted with -m immediate, mid-ingest",
    targetSeconds: TARGET_SECONDS.postgresBack,
    from: "end",
    isShort: true,
    async run({ sql, servers }) {
      const lock = await blockWriters(sql, "rounds");
      await servers.restartPostgres();
      const fromMs = Date.now();
      await lock.release();
      return { fromMs };
    },
  },
  {
    name: "PostgreSQL frozen",
    targetSeconds: TARGET_SECONDS.postgresBack,
    from: "end",
    async run({ servers }) {
      await servers.freezePostgres(8_000);
      return { fromMs: Date.now() };
    },
  },
  {
    // writes under the lease of the killed worker may commit after another worker has taken it over
    name: "commits stall for 20 s while a worker is killed",
    targetSeconds: TARGET_SECONDS.postgresBack,
    from: "end",
    async run({ sql, workers }) {
      const stall = await stallCommits(sql);
      await workers[0]?.kill();
      await delay(20_000);
      await stall.release();
      return { fromMs: Date.now() };
    },
  },
  {
    name: "workers and API disconnected from PostgreSQL",
    targetSeconds: TARGET_SECONDS.postgresBack,
    from: "end",
    async run({ servers }) {
      await servers.cut("postgres", 5_000);
      return { fromMs: Date.now() };
    },
  },
  {
    name: "PostgreSQL out of connections",
    targetSeconds: TARGET_SECONDS.postgresBack,
    from: "end",
    async run({ sql, servers }) {
      const taken = await takeAllConnections(sql, servers.databaseUrl);
      await delay(5_000);
      await Promise.all(taken.map((client) => client.end().catch(() => undefined)));
      return { fromMs: Date.now(), observed: `${taken.length} connections were taken by other clients` };
    },
  },
];

const LONGER_THAN_A_LOCK_MS = 13_000; // BullMQ's locks here last 10 s

/** Closes all connections of Roundhouse, and opens connections until the limit is reached. */
async function takeAllConnections(sql: Sql, databaseUrl: string): Promise<pg.Client[]> {
  const taken: pg.Client[] = [];
  for (let round = 0; round < 3; round++) {
    await sql`
      select pg_terminate_backend(pid)
      from pg_stat_activity
      where application_name like 'roundhouse%'
        and application_name <> 'roundhouse simulate'`;
    while (await takeConnection(databaseUrl, taken));
  }
  return taken;
}

async function takeConnection(databaseUrl: string, taken: pg.Client[]): Promise<boolean> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "other client" });
  client.on("error", () => undefined);
  try {
    await client.connect();
    taken.push(client);
    return true;
  } catch (error) {
    if ((error as { code?: string }).code === TOO_MANY_CONNECTIONS) return false;
    throw error;
  }
}

const TOO_MANY_CONNECTIONS = "53300";
