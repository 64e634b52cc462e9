import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { migrate, schemaState } from "../../src/db/migrate.ts";
import { createRedis } from "../support/database.ts";
import { historyProblem, unpackOlder } from "./history.ts";
import { playUpgrade } from "./run.ts";

const ROOT = join(import.meta.dirname, "../..");
/** Calibrations may be read meanwhile and not written. */
const BUILDS_AN_INDEX = "0033_retention";
const problem = await historyProblem(ROOT);

let folder: string;
let server: Sql;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "roundhouse-upgrade-test-"));
  server = connect(inject("databaseUrl"), { name: "test" });
});
afterAll(async () => {
  await server.end();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** A database with nothing in it, not even a schema. */
async function emptyDatabase(): Promise<{ url: string; drop(): Promise<unknown> }> {
  const name = `upgrade_${randomBytes(6).toString("hex")}`;
  await server`create database ${server(name)}`;
  const { href } = Object.assign(new URL(inject("databaseUrl")), { pathname: name });
  return { url: href, drop: () => server`drop database ${server(name)} with (force)` };
}

describe.runIf(problem === null)(
  "a database of an older build (taken from the checkout's history, which must be whole)",
  () => {
    it(
      "is brought to the newest schema while its API answers truly, and both go on with it",
      { timeout: 300_000 },
      async () => {
        const { url, drop } = await emptyDatabase();
        const { url: redisUrl } = await createRedis();
        const upgraded = await playUpgrade({
          rounds: 2_000,
          from: "first",
          databaseUrl: url,
          redisUrl,
          folder,
          say: () => undefined,
        });
        expect(upgraded.problems).toEqual([]);
        expect(upgraded.read.answers[200]).toBeGreaterThan(0);
        expect(upgraded.migrations.length).toBe(upgraded.newer.migrations - upgraded.older.migrations);
        await drop();
      },
    );

    it("is not looked for where no commit holds it", async () => {
      await expect(unpackOlder(ROOT, "nothing", folder)).rejects.toThrow(
        /^there is no build nothing .* there are 19e9cda/,
      );
    });
  },
);

describe("a migration", () => {
  it("that finds a table in use makes room for others who use it, and goes on when it is free", async () => {
    const { url, drop } = await emptyDatabase();
    const names = (await readdir(join(ROOT, "sql"))).map((file) => file.replace(/\.sql$/, "")).toSorted();
    await migrate(url, () => undefined, { upTo: names.slice(0, names.indexOf(BUILDS_AN_INDEX)) });
    const sql = connect(url, { name: "test" });
    const said: string[] = [];
    const isWaiting = Promise.withResolvers<void>();
    let migrating: Promise<void> | undefined;
    await sql.begin(async (long) => {
      await long`lock table calibrations in row exclusive mode`;
      migrating = migrate(url, (line) => {
        said.push(line);
        if (line.includes("making room")) isWaiting.resolve();
      });
      await isWaiting.promise;
      await sql`delete from calibrations`; // it would wait behind the file that waits for us
    });
    await migrating;
    expect((await schemaState(url)).pending).toEqual([]);
    expect(said.filter((line) => line === `migrated to ${BUILDS_AN_INDEX}`)).toHaveLength(1);
    await sql.end();
    await drop();
  });
});
