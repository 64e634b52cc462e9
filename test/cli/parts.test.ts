import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/db/client.ts";
import { createDatabase, createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { ask, makeFolder, roundhouse, startRoundhouse, untilReady } from "./world.ts";

let env: Record<string, string>;

beforeAll(async () => {
  const database = await createDatabase();
  env = { DATABASE_URL: database.url, REDIS_URL: (await createRedis()).url, PORT: "0", WORKER_PORT: "0" };
  return () => database.drop();
});

describe("api and worker apart", () => {
  it("the workers fill what the api serves, through a restart of the database too; it answers on without them", async () => {
    const folder = await makeFolder();
    const start = (name: string, ...args: string[]) =>
      startRoundhouse([name, "--json", ...args], { env: { ...env, DATA_DIR: join(folder, args.join("") || name) } });
    await roundhouse(["account", "create", "ann@example.com"], { env });
    const key = await roundhouse(["key", "create", "--account", "ann@example.com", "--plan", "Max"], { env });

    const api = start("api");
    const answers = { ...(await untilReady(api)), api_key: key.stdout.trim() };
    expect((await ask(answers, "/api/v1/games")).body).toMatchObject({ ok: true, games: [] });
    const worker = start("worker");
    const health = await untilReady(worker);
    const other = start("worker", "--queues", "poll-house,normalize-rounds");
    await untilReady(other);

    const newest = async () => {
      const { body } = await ask(answers, "/api/v1/rounds?house=bustabit");
      const [table] = body["tables"] as { status: string; rounds: { round_id: string }[] }[];
      return table?.status === "live" ? Number(table.rounds[0]?.round_id) : undefined;
    };
    const first = await eventually(newest, { timeoutMs: 20_000 });
    await eventually(async () => (await ask(health, "/readyz")).status === 200);
    expect(await ask(health, "/healthz")).toEqual({ status: 200, body: { ok: true, version: "0.1.0" } });
    expect(await ask(answers, "/readyz")).toMatchObject({ status: 200, body: { ok: true, checks: { redis: true } } });

    // a restart of the database ends every connection to it, whatever runs on it
    const operator = connect(env["DATABASE_URL"] ?? "", { name: "operator", max: 1 });
    await operator`
      select pg_terminate_backend(pid)
      from pg_stat_activity
      where datname = current_database()
        and pid <> pg_backend_pid()`;
    await operator.end();
    await eventually(async () => ((await newest()) ?? 0) > first, { timeoutMs: 20_000 });

    // the first worker plays the demo houses; when it stops, the other one takes that over
    worker.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ code: 0 });
    const before = (await newest()) ?? 0;
    await eventually(async () => ((await newest()) ?? 0) !== before, { timeoutMs: 20_000 });

    other.kill("SIGTERM");
    expect(await other.ended).toMatchObject({ code: 0 });
    expect((await ask(answers, "/api/v1/rounds?house=bustabit")).status).toBe(200);
    api.kill("SIGTERM");
    expect(await api.ended).toMatchObject({ code: 0 });
  }, 90_000);

  it("a worker refuses a queue that is not there, and lists those that are", async () => {
    const { code, stderr } = await roundhouse(["worker", "--queues", "poll-houses"], {
      env: { ...env, DATA_DIR: await makeFolder() },
    });
    expect(code).toBe(2);
    expect(stderr).toContain("there is no queue poll-houses; the queues are poll-house, normalize-rounds");
  });
});
