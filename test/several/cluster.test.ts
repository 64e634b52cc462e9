import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask, makeFolder, roundhouse } from "../cli/world.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { allowSetAge } from "../support/set-age.ts";
import { type ClusterNode, startRedisCluster } from "./redis-cluster.ts";
import { expectCounted, expectVerified, makeKey, must, startPart, untilNewer, untilScored, using } from "./world.ts";

const CALLS = 40;
const ACCOUNT = "ann@example.com";

describe("a Redis Cluster of three nodes", () => {
  it("serves workers and APIs; a node that is emptied or killed costs seconds and loses nothing", async () => {
    const [cluster, database, folder] = [await startRedisCluster(), await createDatabase(), await makeFolder()];
    onTestFinished(async () => {
      await cluster.stop();
      await database.drop();
    });
    await allowSetAge(database.url, "1 second"); // as in production
    const env = {
      DATABASE_URL: database.url,
      REDIS_URL: cluster.url,
      DATA_DIR: join(folder, "data"),
      PORT: "0",
      WORKER_PORT: "0",
    };
    const alone = await roundhouse(["worker"], {
      env: { ...env, REDIS_URL: `redis://:geheim@127.0.0.1:${cluster.nodes[0]?.port}` },
    });
    expect(alone).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("let REDIS_URL begin with redis+cluster://"),
    });

    const key = await makeKey(env, ACCOUNT, "Max");
    const started = await Promise.all([startPart(["worker"], env), startPart(["api"], env), startPart(["api"], env)]);
    const [worker, ...apis] = started.map((part) => ({ ...part, api_key: key }));
    const [api] = apis;
    if (worker === undefined || api === undefined) throw new Error("nothing was started");
    console.log(`first round after ${(await untilNewer(api)).toFixed(1)} s`);
    await using(database.url, (sql) => untilScored(sql));
    for (const part of [worker, ...apis]) {
      await eventually(async () =>
        expect(await ask(part, "/readyz")).toMatchObject({
          status: 200,
          body: { checks: { redis: true, polling: true } },
        }),
      );
    }
    for (const node of cluster.nodes) expect(await node.ask(async (redis) => redis.dbsize())).toBeGreaterThan(0);
    const listed = await roundhouse(["doctor", "--json"], { env });
    expect(listed.stdout).toMatch(
      /"check":"redis","status":"ok","found":"[\d.]+, 3 nodes, noeviction, redis\+cluster:\/\/:\*\*\*@/,
    );
    await must(["queue", "list"], env);

    const home = await homeOf(cluster.nodes, "{rh-poll-house}:boot");
    const emptiedMs = performance.now();
    await home.ask(async (redis) => redis.flushall());
    const schedules = "{rh-poll-house}:poll-house:repeat";
    await eventually(() => home.ask(async (redis) => (await redis.exists(schedules)) === 1));
    const seconds = (performance.now() - emptiedMs) / 1_000;
    console.log(`a node emptied: its schedules were back after ${seconds.toFixed(1)} s`);
    await untilNewer(api);
    await using(database.url, (sql) =>
      eventually(async () => {
        const [alert] = await sql<{ closed: boolean }[]>`
          select closed_at is not null as closed
          from alerts
          where kind = 'redis_lost'`;
        return alert?.closed;
      }),
    );

    for (const coverage of ["no", "yes"]) {
      for (const node of cluster.nodes)
        await node.ask(async (redis) => redis.config("SET", "cluster-require-full-coverage", coverage));
      await home.kill();
      await eventually(async () => {
        const { status, body } = await ask(api, "/readyz");
        return status === 200 && (body["checks"] as Record<string, boolean>)["redis"] === false;
      });
      // limits whose node is away are kept by each API alone
      await using(database.url, (sql) => expectCounted(sql, ACCOUNT, apis, CALLS / 4));
      await home.start();
      console.log(
        `a node killed (full coverage: ${coverage}): polling ${(await untilNewer(api)).toFixed(1)} s after its start`,
      );
    }

    await using(database.url, (sql) => expectCounted(sql, ACCOUNT, apis, CALLS));
    await expectVerified(env);
    for (const part of started) {
      part.process.kill("SIGTERM");
      expect(await part.process.ended).toMatchObject({ code: 0 });
      expect(part.process.output.stderr).not.toMatch(/CROSSSLOT|unhandled|uncaught/i);
    }
  }, 600_000);
});

async function homeOf(nodes: readonly ClusterNode[], key: string): Promise<ClusterNode> {
  for (const node of nodes) {
    if (
      await node.ask(async (redis) =>
        redis.get(key).then(
          (value) => value !== null,
          () => false,
        ),
      )
    )
      return node;
  }
  throw new Error(`no node has ${key}`);
}
