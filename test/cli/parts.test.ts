import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { createDatabase, createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { ask, askUntilServed, makeFolder, roundhouse, startRoundhouse, untilReady } from "./world.ts";

let env: Record<string, string>;

beforeAll(async () => {
  const database = await createDatabase();
  env = { DATABASE_URL: database.url, REDIS_URL: (await createRedis()).url, PORT: "0", WORKER_PORT: "0" };
  return () => database.drop();
});

/** The partition of tomorrow for sums of polls. */
async function tomorrow(sql: Sql): Promise<string> {
  const [row] = await sql<{ name: string }[]>`
    select 'polls_' || to_char((now() at time zone 'UTC')::date + 1, 'YYYYMMDD') as name`;
  return row?.name ?? "";
}

describe("api and worker apart", () => {
  it("the workers store what the api serves, through a restart of the database too; it serves without them", async () => {
    const folder = await makeFolder();
    const start = (name: string, ...args: string[]) =>
      startRoundhouse([name, "--json", ...args], { env: { ...env, DATA_DIR: join(folder, args.join("") || name) } });
    await roundhouse(["account", "create", "ann@example.com"], { env });
    const key = await roundhouse(["key", "create", "--account", "ann@example.com", "--plan", "Max"], { env });

    const api = start("api");
    const answers = { ...(await untilReady(api)), api_key: key.stdout.trim() };
    expect((await askUntilServed(answers, "/api/v1/games")).body).toMatchObject({ ok: true, games: [] });
    // as after days without work
    const operator = connect(env["DATABASE_URL"] ?? "", { name: "operator", max: 1 });
    await operator`drop table ${operator(await tomorrow(operator))}`;
    const worker = start("worker");
    const health = await untilReady(worker);
    expect(await operator`select from pg_class where relname = ${await tomorrow(operator)}`).toHaveLength(1);
    const other = start("worker", "--queues", "poll-house,normalize-rounds");
    await untilReady(other);

    const newest = async () => {
      const { body } = await ask(answers, "/api/v1/rounds?house=bustabit");
      const [table] = body["tables"] as { status: string; rounds: { round_id: string }[] }[];
      return table?.status === "live" ? Number(table.rounds[0]?.round_id) : undefined;
    };
    const first = await eventually(newest, { timeoutMs: 60_000 });
    await eventually(async () => (await ask(health, "/readyz")).status === 200);
    expect(await ask(health, "/healthz")).toEqual({ status: 200, body: { ok: true, version: "0.1.0" } });
    await eventually(async () =>
      expect(await ask(answers, "/readyz")).toMatchObject({ status: 200, body: { ok: true, checks: { redis: true } } }),
    );

    // a restart of the database ends every connection to it, whatever runs on it
    await operator`
      select pg_terminate_backend(pid)
      from pg_stat_activity
      where datname = current_database()
        and pid <> pg_backend_pid()`;
    await operator.end();
    await eventually(async () => ((await newest()) ?? 0) > first, { timeoutMs: 60_000 });

    // the first worker plays the demo houses; when it stops, the other one takes that over
    worker.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ code: 0 });
    const before = await eventually(newest, { timeoutMs: 60_000 });
    await eventually(async () => ((await newest()) ?? 0) > before, { timeoutMs: 60_000 });

    other.kill("SIGTERM");
    expect(await other.ended).toMatchObject({ code: 0 });
    expect((await askUntilServed(answers, "/api/v1/rounds?house=bustabit")).status).toBe(200);
    api.kill("SIGTERM");
    expect(await api.ended).toMatchObject({ code: 0 });
  });

  it.each([["DATABASE_DIRECT_URL"], ["DATABASE_READ_URL"]])("an API refuses a %s of another database", async (name) => {
    const other = await createDatabase();
    try {
      const api = await roundhouse(["api"], { env: { ...env, [name]: other.url, DATA_DIR: await makeFolder() } });
      expect([api.code, api.stderr]).toEqual([2, expect.stringContaining(`${name}: expected`)]);
    } finally {
      await other.drop();
    }
  });

  it("what bypasses the pooler runs while the pooler is away; what needs it does not start", async () => {
    const { DATABASE_URL: direct = "" } = env;
    const away = { ...env, DATABASE_URL: "postgres://127.0.0.1:1/x", DATABASE_DIRECT_URL: direct };
    for (const args of [["migrate"], ["ledger", "check"]]) {
      const { code, stderr } = await roundhouse(args, { env: away });
      expect([args, code, stderr]).toEqual([
        args,
        0,
        expect.stringContaining(
          "DATABASE_DIRECT_URL is not compared with DATABASE_URL: the database postgres://127.0.0.1:1/x cannot be used",
        ),
      ]);
    }
    for (const args of [["api"], ["worker"], ["account", "list"]]) {
      const { code, stderr } = await roundhouse(args, { env: { ...away, DATA_DIR: await makeFolder() } });
      expect([args, code, stderr]).toEqual([
        args,
        1,
        expect.stringContaining("postgres://127.0.0.1:1/x cannot be used"),
      ]);
    }
    const other = await createDatabase();
    try {
      for (const args of [["migrate"], ["ledger", "check"]]) {
        const { code, stderr } = await roundhouse(args, { env: { ...env, DATABASE_DIRECT_URL: other.url } });
        expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining("DATABASE_DIRECT_URL: expected")]);
      }
    } finally {
      await other.drop();
    }
  });

  it("an API serves while it drains, reports it in /readyz, and closes its connections; a second SIGTERM ends the drain", async () => {
    const place = { ...env, DATA_DIR: await makeFolder() };
    const api = startRoundhouse(["api", "--json"], { env: { ...place, DRAIN_SECONDS: "300" } });
    const ready = await untilReady(api);
    await eventually(async () => (await ask(ready, "/readyz")).status === 200);
    expect((await fetch(`${ready.url}/healthz`)).headers.get("connection")).toBe("keep-alive");

    api.kill("SIGTERM");
    await eventually(async () =>
      expect(await ask(ready, "/readyz")).toMatchObject({
        status: 503,
        body: { checks: { postgres: true, migrations: true } },
      }),
    );
    const answered = await fetch(`${ready.url}/healthz`);
    expect([answered.status, answered.headers.get("connection")]).toEqual([200, "close"]);
    expect((await askUntilServed(ready, "/api/v1/games")).status).toBe(401); // still answered
    api.kill("SIGTERM");
    expect(await api.ended).toMatchObject({ code: 0 });

    // without a second signal it ends by itself
    const other = startRoundhouse(["api", "--json"], { env: { ...place, DRAIN_SECONDS: "1" } });
    await untilReady(other);
    other.kill("SIGTERM");
    expect(await other.ended).toMatchObject({ code: 0 });
  });

  it("an API that runs stays ready when migrations of a newer version are applied, and one that starts refuses them", async () => {
    const database = await createDatabase();
    const place = { ...env, DATABASE_URL: database.url, DATA_DIR: await makeFolder(), DRAIN_SECONDS: "0" };
    try {
      const api = startRoundhouse(["api", "--json"], { env: place });
      const ready = await untilReady(api);
      const operator = connect(database.url, { name: "operator", max: 1 });
      await operator`insert into migrations (name, run_on) values ('9999_newer', now())`;
      await operator.end();
      await eventually(async () => (await ask(ready, "/readyz")).status === 200);
      const late = await startRoundhouse(["api"], { env: place }).ended;
      expect([late.code, late.stderr]).toEqual([2, expect.stringContaining("the database is newer than this version")]);
      api.kill("SIGKILL");
      await api.ended;
    } finally {
      await database.drop();
    }
  });

  it("a worker that sends mails warns that links are encrypted with AUTH_SECRET if it has none", async () => {
    const warning = "AUTH_SECRET is not set: mails with links";
    const start = async (more: Record<string, string>) => {
      const place = { ...env, DATA_DIR: await makeFolder(), SMTP_URL: "smtp://127.0.0.1:1", ...more };
      return startRoundhouse(["worker", "--queues", "nothing"], { env: place }).ended;
    };
    expect((await start({})).stderr).toContain(warning);
    expect((await start({ AUTH_SECRET: "a".repeat(32) })).stderr).not.toContain(warning);
    expect((await start({ SMTP_URL: "" })).stderr).not.toContain(warning);
  });

  it("a worker refuses a queue that is not there, and lists those that are", async () => {
    const { code, stderr } = await startRoundhouse(["worker", "--queues", "poll-houses"], {
      env: { ...env, DATA_DIR: await makeFolder() },
    }).ended;
    expect(code).toBe(2);
    expect(stderr).toContain("there is no queue poll-houses; the queues are poll-house, normalize-rounds");
  });
});
