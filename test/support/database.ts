import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import type Postgres from "postgres";
import { inject } from "vitest";
import { postgres } from "../../src/db/driver.ts";

/**
 * A database of one's own with the newest schema and nothing in it: a copy of the run's template. Call `drop` when
 * done with it.
 */
export async function createDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const template = inject("templateDatabase");
  const name = template.replace("template", `test_${randomBytes(6).toString("hex")}`);
  await administer((sql) => sql`create database ${sql(name)} template ${sql(template)} strategy file_copy`);
  const url = new URL(inject("databaseUrl"));
  url.pathname = name;
  return {
    url: url.href,
    drop: () => administer((sql) => sql`drop database if exists ${sql(name)} with (force)`),
  };
}

/**
 * An empty Redis for one test file: the logical database of the worker that runs it, flushed. Each call empties it
 * again.
 */
export async function createRedis(): Promise<{ url: string }> {
  const url = new URL(inject("redisUrl"));
  // Workers are counted from 1 and have one file at a time; database 0 stays free for whoever looks by hand.
  url.pathname = `/${process.env["VITEST_POOL_ID"] ?? 1}`;
  const redis = new Redis(url.href, { lazyConnect: true, maxRetriesPerRequest: 1 });
  await redis.connect();
  await redis.flushdb();
  redis.disconnect();
  return { url: url.href };
}

async function administer(statement: (sql: Postgres.Sql) => PromiseLike<unknown>): Promise<void> {
  const sql = postgres(inject("databaseUrl"), { max: 1, onnotice: () => undefined });
  try {
    await statement(sql);
  } finally {
    await sql.end();
  }
}
