import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { connect, type Sql } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { rememberFresh } from "./fresh.ts";
import { startTestServers } from "./servers.ts";
import { allowSetAge } from "./set-age.ts";

declare module "vitest" {
  interface ProvidedContext {
    databaseUrl: string;
    redisUrl: string;
    templateDatabase: string;
  }
}

/**
 * Before all tests: the servers, and one database with the newest schema, which every test file clones for itself.
 * Its name is of this run alone, since other runs may use the same given servers.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // where src/start.js keeps it: every process that a test starts then begins in half the time
  process.env["NODE_COMPILE_CACHE"] ??= join(tmpdir(), "node-compile-cache");
  const { TEST_SERVERS, DATABASE_URL, REDIS_URL } = process.env;
  const servers = await startTestServers(TEST_SERVERS, { databaseUrl: DATABASE_URL, redisUrl: REDIS_URL });
  const run = randomBytes(4).toString("hex");
  const templateDatabase = `roundhouse_template_${run}`;
  const sql = connect(servers.databaseUrl, { name: "test", max: 1, use: "bulk" });
  const teardown = async () => {
    if (servers.kind === "urls") await dropDatabases(sql, run);
    await sql.end();
    await servers.stop();
  };
  try {
    await sql`create database ${sql(templateDatabase)}`;
    const template = new URL(servers.databaseUrl);
    template.pathname = templateDatabase;
    await migrate(template.href);
    await allowSetAge(template.href, "1 minute");
    await rememberFresh(template.href);
  } catch (error) {
    await teardown();
    throw error;
  }
  project.provide("databaseUrl", servers.databaseUrl);
  project.provide("redisUrl", servers.redisUrl);
  project.provide("templateDatabase", templateDatabase);
  return teardown;
}

/** Of a run that was interrupted, too, clones may be left: their names end like the template's. */
async function dropDatabases(sql: Sql, run: string): Promise<void> {
  const left = await sql<{ datname: string }[]>`
    select datname
    from pg_database
    where datname like ${`roundhouse_%_${run}`}`;
  for (const { datname } of left) await sql`drop database if exists ${sql(datname)} with (force)`;
}
