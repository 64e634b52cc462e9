import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask, makeFolder, roundhouse } from "../cli/world.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { allowSetAge } from "../support/set-age.ts";
import { startWatchedRedis } from "./redis-sentinel.ts";
import { expectCounted, expectVerified, makeKey, must, startPart, untilNewer, untilScored, using } from "./world.ts";

const CALLS = 40;
const ACCOUNT = "ann@example.com";

describe("a Redis with replicas behind sentinels", () => {
  it("serves workers and APIs by the name of its master, and follows a failover without losing anything", async () => {
    const [redis, database, folder] = [await startWatchedRedis(), await createDatabase(), await makeFolder()];
    onTestFinished(async () => {
      await redis.stop();
      await database.drop();
    });
    await allowSetAge(database.url, "1 second"); // as in production
    const env = {
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      DATA_DIR: join(folder, "data"),
      PORT: "0",
      WORKER_PORT: "0",
      DRAIN_SECONDS: "0",
    };
    const key = await makeKey(env, ACCOUNT, "Max");
    const started = await Promise.all([startPart(["worker"], env), startPart(["api"], env)]);
    const [worker, api] = started.map((part) => ({ ...part, api_key: key }));
    if (worker === undefined || api === undefined) throw new Error("nothing was started");
    await untilNewer(api);
    await using(database.url, (sql) => untilScored(sql));
    const doctor = await roundhouse(["doctor", "--json"], { env });
    expect(doctor.stdout).toMatch(
      /"check":"redis","status":"ok","found":"[\d.]+, noeviction, redis\+sentinel:\/\/:\*\*\*@/,
    );

    const before = await redis.master();
    const beganMs = performance.now();
    await redis.kill(before);
    const promoted = await eventually(
      async () => {
        const now = await redis.master();
        return now !== before && (await redis.role(now)) === "master" && now;
      },
      { timeoutMs: 60_000 },
    );
    console.log(`another master after ${((performance.now() - beganMs) / 1_000).toFixed(1)} s`);
    console.log(`rounds again ${(await untilNewer(api)).toFixed(1)} s later`);
    for (const part of [worker, api]) {
      await eventually(
        async () => {
          const { status, body } = await ask(part, "/readyz");
          return status === 200 && (body["checks"] as Record<string, boolean>)["redis"] === true;
        },
        { timeoutMs: 60_000 },
      );
    }
    await using(database.url, (sql) => expectCounted(sql, ACCOUNT, [api], CALLS));

    // the old master returns as a replica, and nobody writes to it
    await redis.start(before);
    await eventually(async () => (await redis.role(before)) === "slave", { timeoutMs: 60_000 });
    expect(await redis.master()).toBe(promoted);
    await untilNewer(api);
    await must(["queue", "list"], env);
    await expectVerified(env);
    for (const part of started) {
      part.process.kill("SIGTERM");
      expect(await part.process.ended).toMatchObject({ code: 0 });
      expect(part.process.output.stderr).not.toMatch(/unhandled|uncaught/i);
    }
  }, 600_000);
});
