import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, inject } from "vitest";
import pg from "pg";
import { connect, openPipeline, type Pipeline, type Sql } from "../../src/db/client.ts";
import { makeFresh } from "./fresh.ts";

/** A database for all tests of a file, with its connections. They are closed and it is dropped after the last test. */
export async function openTestDatabase(options: { max?: number } = {}): Promise<{
  url: string;
  sql: Sql;
  pipeline: Pipeline;
}> {
  const { url, drop } = await createDatabase();
  const sql = connect(url, { name: "test", ...options });
  const pipeline = openPipeline(url, { name: "test" });
  afterAll(async () => {
    await pipeline.end();
    await sql.end();
    await drop();
  });
  return { url, sql, pipeline };
}

/**
 * An empty database with the newest schema: a copy of the run's template, or a restored one of an earlier test, unless it
 * must be one without statistics of PostgreSQL (`isUncounted`).
 * Call `drop` when done with it.
 */
export async function createDatabase({ isUncounted = false } = {}): Promise<{ url: string; drop(): Promise<void> }> {
  const template = inject("templateDatabase");
  const named = (kind: string) => template.replace("template", `${kind}_${randomBytes(6).toString("hex")}`);
  const name = named("test");
  await administer(async (sql) => {
    if (!isUncounted && (await takeUsed(sql, template.replace("template", "used\\_%"), name))) return;
    await sql`create database ${sql(name)} template ${sql(template)} strategy file_copy`;
    await sql`revoke temporary on database ${sql(name)} from public`; // as migrate does: a template passes no rights on
  });
  const url = new URL(inject("databaseUrl"));
  url.pathname = name;
  return {
    url: url.href,
    drop: () =>
      administer(async (sql) => {
        await sql`
          select pg_terminate_backend(pid, 5000)
          from pg_stat_activity
          where datname = ${name}`;
        const isFresh = await makeFresh(url.href).catch(() => false); // then it is thrown away, whatever was wrong
        if (isFresh && (await rename(sql, name, named("used")))) return;
        await sql`drop database if exists ${sql(name)} with (force)`;
      }),
  };
}

/** Renames a restored database, so that a client with the old name cannot reconnect. */
async function takeUsed(sql: Sql, pattern: string, name: string): Promise<boolean> {
  const used = await sql<{ datname: string }[]>`
    select datname
    from pg_database
    where datname like ${pattern}
    order by oid
    limit 4`;
  for (const { datname } of used) if (await rename(sql, datname, name)) return true;
  return false;
}

/** False if another worker was faster, or a session is open in it. */
async function rename(sql: Sql, from: string, to: string): Promise<boolean> {
  try {
    await sql`alter database ${sql(from)} rename to ${sql(to)}`;
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return false;
    throw error;
  }
}

/**
 * An empty Redis for one test file: the logical database of the worker that runs it, flushed. Each call empties it
 * again.
 */
export async function createRedis(): Promise<{ url: string }> {
  const url = new URL(inject("redisUrl"));
  // Workers are counted from 1 and have one file at a time; database 0 stays free for manual use.
  url.pathname = `/${process.env["VITEST_POOL_ID"] ?? 1}`;
  const redis = new Redis(url.href, { lazyConnect: true, maxRetriesPerRequest: 1 });
  await redis.connect();
  await redis.flushdb();
  redis.disconnect();
  return { url: url.href };
}

async function administer(statement: (sql: Sql) => PromiseLike<unknown>): Promise<void> {
  const sql = connect(inject("databaseUrl"), { name: "test", max: 1, use: "bulk" });
  try {
    await statement(sql);
  } finally {
    await sql.end();
  }
}
