import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { jobs } from "../../jobs/index.ts";
import { connect } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { eventually } from "../support/eventually.ts";
import { createDatabase, createRedis } from "../support/database.ts";
import { houseEntry } from "../support/houses.ts";
import { makeFolder, roundhouse, startRoundhouse } from "./world.ts";

let env: Record<string, string>;

beforeAll(async () => {
  const database = await createDatabase();
  env = { DATABASE_URL: database.url, REDIS_URL: (await createRedis()).url };
  const sql = connect(database.url, { name: "test", max: 1 });
  await applyHouses(sql, [houseEntry({ id: "acme" }), houseEntry({ id: "bolt", enabled: false })]);
  await sql.end();
  return () => database.drop();
});

const run = (...args: string[]) => roundhouse(args, { env });
async function json(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await run(...args, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

describe("houses and tables", () => {
  it("are listed with how they are doing", async () => {
    expect(await json("house", "list")).toMatchObject([
      { house: "acme", status: "offline", last_ok_at: null, last_status: null, last_error: null, circuit: "closed" },
      { house: "bolt", status: "offline", next_poll_at: null },
    ]);
    expect(await json("table", "list")).toMatchObject([
      {
        table: "acme/crash/global",
        status: "offline",
        last_round_at: null,
        lag_seconds: null,
        rounds: 0,
        gaps: 0,
        coverage: null,
      },
      { table: "bolt/crash/global" },
    ]);
    expect(await json("table", "show", "acme/crash/global")).toMatchObject({
      table: "acme/crash/global",
      status: "offline",
      rounds: 0,
      newest_round: null,
      open: { gaps: 0, missing: 0, quarantined: 0, conflicts: 0, unread_payloads: 0 },
      notices: [],
    });
    expect((await run("table", "show", "acme/crash/global")).stdout).toMatch(/^open gaps +0 \(0 rounds missing\)$/m);
    expect((await run("table", "list")).stdout).toMatch(/^acme\/crash\/global +offline +- +- +0 +0 +-$/m);
  });

  it("a house is paused with a reason that its list shows, and resumed", async () => {
    expect(await run("house", "pause", "acme", "--reason", "they asked us to wait")).toMatchObject({ code: 0 });
    expect(await json("house", "list")).toMatchObject([
      { house: "acme", status: "paused", pause_reason: "they asked us to wait" },
      { house: "bolt" },
    ]);
    expect(await run("house", "resume", "acme", "--reason", "they are back")).toMatchObject({
      code: 0,
      stdout: "acme is polled again\n",
    });
    const reason = "once more";
    expect(await json("house", "pause", "acme", "--reason", reason)).toEqual({ house: "acme", paused: true, reason });
    expect(await json("house", "resume", "acme", "--reason", reason)).toEqual({ house: "acme", paused: false, reason });
    expect(await json("house", "list")).toMatchObject([{ house: "acme", status: "offline", pause_reason: null }, {}]);
    const { code, stderr } = await run("house", "pause", "amce", "--reason", "x");
    expect(code).toBe(2);
    expect(stderr).toContain('there is no house "amce"; there are acme, bolt');
  });
});

describe("queues", () => {
  it("are listed, paused with a reason and resumed", async () => {
    const reason = "a night without polls";
    expect(await run("queue", "pause", "poll-house", "--reason", reason, "--for", "2h")).toMatchObject({ code: 0 });
    const states = (await json("queue", "list")) as {
      queue: string;
      paused: { reason: string; until: string } | null;
    }[];
    expect(states.map(({ queue }) => queue).slice(0, 3)).toEqual(["poll-house", "normalize-rounds", "backfill-gap"]);
    const paused = states.filter((state) => state.paused?.reason === reason);
    expect(paused).toHaveLength(1);
    expect(Date.parse(paused[0]?.paused?.until ?? "") - Date.now()).toBeGreaterThan(3_600_000);
    expect(await run("queue", "resume", "poll-house")).toMatchObject({ code: 0 });
    expect((await run("queue", "list")).stdout).not.toContain(reason);
  });

  it("are shown again and again with --watch, until it is stopped", async () => {
    const watching = startRoundhouse(["queue", "list", "--watch", "--json"], { env });
    await eventually(() => watching.output.stdout.split("\n").length > 2 || undefined, { timeoutMs: 30_000 });
    watching.kill("SIGINT");
    await watching.ended;
    for (const line of watching.output.stdout.trim().split("\n")) expect(JSON.parse(line)).toHaveLength(jobs.length);
  });

  it("have no failed runs to begin with, and refuse a queue or run that is not there", async () => {
    expect(await json("queue", "failed")).toEqual([]);
    expect((await run("queue", "retry", "backfill-gap")).stdout).toBe("0 runs of backfill-gap are retried\n");
    expect(await json("queue", "retry", "backfill-gap")).toEqual({ queue: "backfill-gap", retried: 0 });
    expect(await run("queue", "retry", "backfill-gap", "42")).toMatchObject({ code: 2 });
    const { code, stderr } = await run("queue", "pause", "poll-houses", "--reason", "x");
    expect(code).toBe(2);
    expect(stderr).toContain("Allowed choices are poll-house, ");
    const discard = ["queue", "discard", "backfill-gap", "--reason", "none is left"];
    expect(await json(...discard, "--dry-run")).toEqual({ queue: "backfill-gap", would_discard: [] });
    expect(await json(...discard, "--yes")).toEqual({ queue: "backfill-gap", discarded: 0 });
  });
});

describe("accounts, keys and plans", () => {
  it("a key is printed once, alone, for an account that may be made twice", async () => {
    expect(await run("account", "create", "ann@example.com")).toMatchObject({ code: 0 });
    expect(await run("account", "create", "Ann@example.com")).toMatchObject({ code: 0 });
    const accounts = (await json("account", "list", "--search", "ann@")) as object[];
    expect(accounts).toMatchObject([{ email: "ann@example.com", plan: null, suspended_at: null, keys: 0 }]);
    expect(await json("account", "list", "--state", "suspended")).toEqual([]);
    expect(await run("account", "create", "demo@localhost")).toMatchObject({ code: 0 });
    expect(await json("account", "show", "demo@localhost")).toMatchObject({ email: "demo@localhost" });
    const { code, stdout } = await run("key", "create", "--account", "ann@example.com", "--plan", "pro");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^rh_live_[0-9A-Za-z]{38}\n$/);
    const last4 = stdout.trim().slice(-4);
    expect(await json("key", "list")).toMatchObject([
      { account: "ann@example.com", last4, state: "active", plan: "Pro", last_used_at: null },
    ]);
    const other = await run("key", "create", "--account", "ann@example.com", "--plan", "Max");
    expect(other).toMatchObject({ code: 1, stdout: "" });
    expect(other.stderr).toContain("the account has the plan Pro, not Max");
    expect(await run("key", "revoke", last4)).toMatchObject({ code: 0 });
    expect(await json("key", "list", "--account", "ann@example.com")).toMatchObject([{ last4, state: "revoked" }]);
    expect(await run("key", "revoke", "none")).toMatchObject({ code: 1 });
  });

  it("an account needs an address and a key needs an account", async () => {
    expect(await run("account", "create", "ann")).toMatchObject({ code: 2 });
    const { code, stderr } = await run("key", "create", "--account", "bob@example.com", "--plan", "Pro");
    expect(code).toBe(1);
    expect(stderr).toContain("there is no account bob@example.com");
  });

  it("a plan is changed in what is given, and in nothing else", async () => {
    const before = (await json("plan", "list")) as object[];
    expect(before).toMatchObject([{ name: "Starter" }, { name: "Pro" }, { name: "Max", day_limit: null }]);
    await run(
      "plan",
      "set",
      "starter",
      "--houses",
      "acme",
      "--day",
      "none",
      "--rps",
      "3",
      "--price",
      "9.99",
      "--on-sale",
      "no",
    );
    const after = await json("plan", "list");
    const changed = { houses: ["acme"], day_limit: null, burst_per_second: 3, price: "9.99", on_sale: false };
    expect(after).toEqual([{ ...before[0], ...changed, revision: 2 }, ...before.slice(1)]);
    expect(await run("plan", "set", "Pro")).toMatchObject({ code: 2 });
    expect(await run("plan", "set", "Pro", "--on-sale", "maybe")).toMatchObject({ code: 2 });
    expect(await run("plan", "set", "Gold", "--day", "5")).toMatchObject({ code: 1 });
    expect(await run("plan", "set", "Pro", "--houses", "nobody")).toMatchObject({ code: 1 });
  });
});

describe("finding the servers", () => {
  it("advises what to do if nothing runs", async () => {
    const { code, stderr } = await roundhouse(["table", "list"], { env: { DATA_DIR: await makeFolder() } });
    expect(code).toBe(1);
    expect(stderr).toContain("nothing is running here; start it with `npm start`");
  });

  it("passes over the run.json of an instance that died, with one line", async () => {
    const folder = await makeFolder();
    const dead = 4_194_303;
    const facts = {
      started_at: "",
      version: "0.1.0",
      url: null,
      worker_url: null,
      demo_house_url: null,
      api_key: null,
    };
    const left = { ...facts, pid: dead, database_url: env["DATABASE_URL"], redis_url: env["REDIS_URL"] };
    await writeFile(join(folder, "run.json"), JSON.stringify(left));
    const { code, stderr } = await roundhouse(["table", "list"], { env: { DATA_DIR: folder } });
    expect(code).toBe(1);
    expect(stderr).toContain(`(pid ${dead}) is gone`);
    // with an address of its own the command does not care
    expect(await roundhouse(["table", "list"], { env: { ...env, DATA_DIR: folder } })).toMatchObject({ code: 0 });
  });

  it("never combines one server with the other server of an instance that does not use it", async () => {
    const folder = await makeFolder();
    const dead = { DATABASE_URL: "postgres://app@127.0.0.1:9/other", REDIS_URL: "redis://127.0.0.1:9/1" };
    const facts = { pid: process.pid, started_at: "", version: "0.1.0", url: null, worker_url: null };
    const runAt = (database_url: string | undefined, redis_url: string | undefined) =>
      writeFile(
        join(folder, "run.json"),
        JSON.stringify({ ...facts, database_url, redis_url, demo_house_url: null, api_key: null }),
      );
    const ask = (name: "DATABASE_URL" | "REDIS_URL") =>
      roundhouse(["queue", "list", "--json"], { env: { [name]: env[name] ?? "", DATA_DIR: folder } });
    await runAt(dead.DATABASE_URL, env["REDIS_URL"]);
    expect(await ask("DATABASE_URL")).toMatchObject({ code: 1, stderr: expect.stringContaining("set REDIS_URL too") });
    await runAt(env["DATABASE_URL"], dead.REDIS_URL);
    expect(await ask("REDIS_URL")).toMatchObject({ code: 1, stderr: expect.stringContaining("set DATABASE_URL too") });
    await runAt(env["DATABASE_URL"], env["REDIS_URL"]);
    expect(await ask("DATABASE_URL")).toMatchObject({ code: 0 });
    expect(await ask("REDIS_URL")).toMatchObject({ code: 0 });
  });

  it("names the database that cannot be reached, without its password", async () => {
    const unreachable = { DATABASE_URL: "postgres://app:geheim@127.0.0.1:9/none" };
    const { code, stderr } = await roundhouse(["table", "list"], { env: unreachable });
    expect(code).toBe(1);
    expect(stderr).toContain("the database postgres://app:***@127.0.0.1:9/none cannot be used");
    expect(stderr).not.toContain("geheim");
  });

  it("refuses a database whose schema is missing, until migrate was run, which may be run twice", async () => {
    const empty = await createDatabase();
    const owner = connect(empty.url, { name: "test", max: 1 });
    try {
      await owner.unsafe("drop schema public, auth cascade; create schema public");
      const place = { env: { DATABASE_URL: empty.url } };
      const { code, stderr } = await roundhouse(["table", "list"], place);
      expect(code).toBe(2);
      expect(stderr).toContain("run `roundhouse migrate` first");
      const { stdout: listed } = await roundhouse(["migrate", "--dry-run", "--json"], place);
      const { pending } = JSON.parse(listed) as { pending: string[] };
      expect(pending[0]).toBe("0001_functions");
      expect(await roundhouse(["table", "list"], place)).toMatchObject({ code: 2 });
      const migrated = await roundhouse(["migrate"], place);
      expect(migrated).toMatchObject({ code: 0, stdout: "the schema is up to date\n" });
      expect(migrated.stderr).toContain("migrated to 0001_functions");
      expect(await roundhouse(["migrate"], place)).toMatchObject({ code: 0, stderr: "" });
      const again = await roundhouse(["migrate", "--json"], place);
      expect(JSON.parse(again.stdout)).toEqual({ migrated: [] });
      expect(await roundhouse(["table", "list"], place)).toMatchObject({ code: 0 });
    } finally {
      await owner.end();
      await empty.drop();
    }
  });

  it("reports why a migration failed, and does not advise to start the database", async () => {
    const used = await createDatabase();
    const owner = connect(used.url, { name: "test", max: 1 });
    try {
      await owner.unsafe("drop schema public, auth cascade; create schema public; create table houses ()");
      const failed = await roundhouse(["migrate"], { env: { DATABASE_URL: used.url } });
      expect([failed.code, failed.stderr]).toEqual([
        1,
        expect.stringContaining('roundhouse: relation "houses" already exists') as string,
      ]);
      expect(failed.stderr).not.toContain("cannot be used");
    } finally {
      await owner.end();
      await used.drop();
    }
  });

  it.each([["api"], ["worker"], ["migrate"]])("%s does not start private servers", async (command) => {
    const folder = await makeFolder();
    const { code, stderr } = await startRoundhouse([command], { env: { DATA_DIR: join(folder, "data") } }).ended;
    expect(code).toBe(2);
    expect(stderr).toContain("DATABASE_URL: expected the URL of a server, found it not set");
    await expect(readFile(join(folder, "data"))).rejects.toThrow("ENOENT");
  });
});

describe("doctor", () => {
  const statuses = (stdout: string) =>
    Object.fromEntries(
      (JSON.parse(stdout) as { checks: { check: string; status: string }[] }).checks.map((one) => [
        one.check,
        one.status,
      ]),
    );

  it("finds healthy servers, and reports that no worker has run yet", async () => {
    const { code, stdout } = await roundhouse(["doctor", "--json"], { env: { ...env, DATA_DIR: await makeFolder() } });
    expect(code).toBe(0);
    expect(statuses(stdout)).toMatchObject({
      node: "ok",
      "data folder": "ok",
      postgres: "ok",
      redis: "ok",
      migrations: "ok",
      clocks: "ok",
      workers: "warn",
      houses: "warn",
      "houses file": "ok",
    });
  });

  it("reports a house without rounds, with its newest error, and not a disabled one", async () => {
    const { code, stdout } = await roundhouse(["doctor"], { env: { ...env, DATA_DIR: await makeFolder() } });
    expect(code).toBe(0);
    expect(stdout).toContain("1 of 1 failing: acme: no new round; it is offline");
    const sql = connect(env["DATABASE_URL"] ?? "", { name: "test", max: 1 });
    await sql`
      update poll_leases
      set last_ok_at = now(), last_error = 'crash/global: answered 503', last_error_at = now()
      where house_id = 'acme'`;
    await sql.end();
    const later = await roundhouse(["doctor"], { env: { ...env, DATA_DIR: await makeFolder() } });
    expect(later.stdout).toContain("1 of 1 failing: acme: crash/global: answered 503");
    expect(later.stdout).toContain("- houses: see `roundhouse house list`");
  });

  it("fails if nothing runs and the houses file is wrong, with advice", async () => {
    const folder = await makeFolder();
    await mkdir(join(folder, "data"));
    await writeFile(join(folder, "houses.yaml"), "houses:\n  - id: Acme\n    tables: []\n");
    const place = { env: { DATA_DIR: join(folder, "data"), HOUSES_FILE: join(folder, "houses.yaml") } };
    const { code, stdout } = await roundhouse(["doctor", "--json"], place);
    expect(code).toBe(1);
    expect(statuses(stdout)).toMatchObject({ postgres: "fail", redis: "fail", "houses file": "fail" });
    const shown = await roundhouse(["doctor"], place);
    expect(shown.stdout).toContain("- postgres: start it with `npm start`");
    expect(shown.stdout).toContain("houses[0].id: ");
    expect(shown.stdout).toContain("houses[0].tables: ");
  });

  it("reports a server that cannot be reached and a Redis that would lose work", async () => {
    const wrong = { DATABASE_URL: "postgres://app:geheim@127.0.0.1:9/none", REDIS_URL: "redis://127.0.0.1:9" };
    const { code, stdout } = await roundhouse(["doctor"], { env: { ...wrong, DATA_DIR: await makeFolder() } });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^fail +postgres +postgres:\/\/app:\*\*\*@127\.0\.0\.1:9\/none cannot be used/m);
    expect(stdout).toMatch(/^fail +redis /m);
    expect(stdout).not.toContain("geheim");
  });
});
