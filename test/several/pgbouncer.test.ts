import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { z } from "zod";
import { connect } from "../../src/db/client.ts";
import { makeFolder, roundhouse } from "../cli/world.ts";
import { eventually } from "../support/eventually.ts";
import { openCookieClient } from "../support/cookie-client.ts";
import { startPooler } from "./pgbouncer.ts";
import {
  callAll,
  createEmptyDatabase,
  expectCounted,
  expectVerified,
  makeKey,
  must,
  newest,
  startPart,
  untilNewer,
  untilScored,
  using,
} from "./world.ts";

/** Fewer than the processes have in their pools, so that each one passes through many hands. */
const CONNECTIONS = 5;
const CALLS = 40;
const ACCOUNT = "ann@example.com";

const made = z.looseObject({ email: z.string(), password: z.string() });

describe("PostgreSQL behind pgbouncer in transaction mode", () => {
  // sent one behind the other on a connection, some of them never get an answer
  it("serves many statements of one pool at the same time", async () => {
    const database = await createEmptyDatabase();
    const pooler = await startPooler(database.url, CONNECTIONS);
    const sql = connect(pooler.url, { name: "test", max: 2, pooled: true });
    onTestFinished(async () => {
      await sql.end({ timeout: 1 });
      await pooler.stop();
      await database.drop();
    });
    for (let wave = 0; wave < 100; wave++) {
      const [plain, asked] = [sql<{ n: number }[]>`select 1 as n`, sql<{ n: number }[]>`select ${wave}::integer as n`];
      const others = Array.from({ length: 8 }, (_, n) => sql<{ n: number }[]>`select ${n}::integer as n`);
      const rows = await Promise.all([plain, asked, ...others]);
      expect(rows.map(([row]) => row?.n)).toEqual([1, wave, 0, 1, 2, 3, 4, 5, 6, 7]);
      const inOne = sql.begin((tx) =>
        Promise.all([tx`select ${wave}::integer as n`, tx`select 2 as n`, tx`select ${3}::integer as n`]),
      );
      expect(await inOne).toEqual([[{ n: wave }], [{ n: 2 }], [{ n: 3 }]]);
    }
  }, 30_000);

  it("works as without, through a crash of the pooler too; a missing DATABASE_DIRECT_URL is reported immediately", async () => {
    const [database, folder] = [await createEmptyDatabase(), await makeFolder()];
    const pooler = await startPooler(database.url, CONNECTIONS);
    onTestFinished(async () => {
      await pooler.stop();
      await database.drop();
    });
    const pooled = {
      DATABASE_URL: pooler.url,
      REDIS_URL: inject("redisUrl"),
      AUTH_SECRET: "a secret that is the same for both",
      DATA_DIR: join(folder, "data"),
      PORT: "0",
      WORKER_PORT: "0",
    };
    const env = { ...pooled, DATABASE_DIRECT_URL: database.url };
    for (const args of [["migrate"], ["worker"], ["account", "create", ACCOUNT]]) {
      const { code, stderr } = await roundhouse(args, { env: pooled });
      expect([args, code, stderr]).toEqual([
        args,
        2,
        expect.stringContaining("set DATABASE_DIRECT_URL to the database itself"),
      ]);
    }
    expect((await roundhouse(["doctor"], { env: pooled })).stdout).toMatch(
      /lends its connections for single transactions/,
    );

    expect(await must(["migrate"], env)).toContain("the schema is up to date");
    const key = await makeKey(env, ACCOUNT, "Max");
    const started = await Promise.all([startPart(["worker"], env), startPart(["api"], env), startPart(["api"], env)]);
    const [worker, ...apis] = started.map((part) => ({ ...part, api_key: key }));
    const [api, other] = apis;
    if (worker === undefined || api === undefined || other === undefined) throw new Error("nothing was started");
    await eventually(async () => (await newest(api)) > 0, { timeoutMs: 120_000 });
    await using(database.url, (sql) => untilScored(sql));
    const examined = await roundhouse(["doctor"], { env });
    expect(examined.stdout, examined.stderr).toMatch(/pooler .*it sets no statement timeout/);

    await using(database.url, (sql) => expectCounted(sql, ACCOUNT, apis, CALLS));

    // who signed in at one API is signed in at the other
    const { email, password } = made.parse(
      JSON.parse(
        await must(["ops-user", "create", "olga@example.com", "--role", "admin", "--generate", "--json"], env),
      ),
    );
    const olga = openCookieClient(api.url, "198.51.100.7");
    expect((await olga.post("/ops/sign-in", { email, password })).status).toBe(303);
    expect((await olga.get("/ops/")).status).toBe(200);
    const cookie = [...olga.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const there = await fetch(`${other.url}/ops/`, { headers: { cookie }, redirect: "manual" });
    expect(there.status).toBe(200);

    await pooler.kill();
    await eventually(async () => (await callAll([api], 1)).get(503) === 1);
    await pooler.start();
    console.log(`pgbouncer killed: newer rounds ${(await untilNewer(api)).toFixed(1)} s after its start`);
    await using(database.url, (sql) => expectCounted(sql, ACCOUNT, apis, CALLS));

    await must(["house", "list"], env);
    await must(["queue", "list"], env);
    await must(["calibration", "list"], env);
    await expectVerified(env);

    // a restore keeps things for a session, which there is none of
    const [file, empty] = [join(folder, "backup.gz"), await createEmptyDatabase()];
    onTestFinished(() => empty.drop());
    await must(["backup", "--to", file], env);
    const into = Object.assign(new URL(pooler.url), { pathname: new URL(empty.url).pathname }).href;
    expect(await roundhouse(["restore", "--from", file, "--into", into], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("behind a pooler that lends its connections for one transaction"),
    });

    for (const part of started) {
      part.process.kill("SIGTERM");
      expect(await part.process.ended).toMatchObject({ code: 0 });
      expect(part.process.output.stderr).not.toMatch(/prepared statement|unsupported startup|does not exist|uncaught/i);
    }
    expect(pooler.log()).not.toMatch(/unsupported|prepared statement|ERROR/);
  }, 600_000);
});
