import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { makeFolder, type Ready, roundhouse } from "../cli/world.ts";
import { openServers } from "./postgres.ts";
import {
  callAll,
  expectCounted,
  expectVerified,
  makeKey,
  must,
  startPart,
  untilNewer,
  untilScored,
  using,
} from "./world.ts";

const CALLS = 40;
const ACCOUNT = "ann@example.com";
const LAG_SECONDS = 3;

const shown = z.looseObject({
  tables: z.array(z.looseObject({ rounds: z.array(z.looseObject({ round_id: z.string(), multiplier: z.number() })) })),
});

/** What an API shows of bustabit, and how old it says that is. */
async function look(api: Ready): Promise<{ age: number; rounds: Map<string, number>; newest: number }> {
  const response = await eventually(async () => {
    const answer = await fetch(`${api.url}/api/v1/rounds?house=bustabit&limit=100`, {
      headers: { "x-api-key": api.api_key },
    });
    return answer.status === 200 && answer; // the burst of the plan may be used up
  });
  const rounds = shown.parse(await response.json()).tables[0]?.rounds ?? [];
  return {
    age: Number(response.headers.get("x-data-age")),
    rounds: new Map(rounds.map(({ round_id, multiplier }) => [round_id, multiplier])),
    newest: Number(rounds[0]?.round_id ?? 0),
  };
}

describe("a streaming replica", () => {
  it("serves published data, shows its lag as X-Data-Age, and takes over manually without a lost call or a wrong response", async () => {
    const servers = await openServers();
    const primary = await servers.create("primary", { wal_level: "replica", max_connections: "150" });
    const folder = await makeFolder();
    const redis = await createRedis();
    const env = {
      DATABASE_URL: primary.url,
      REDIS_URL: redis.url,
      DATA_DIR: join(folder, "data"),
      PORT: "0",
      WORKER_PORT: "0",
      DRAIN_SECONDS: "0",
    };
    await must(["migrate"], env);
    const key = await makeKey(env, ACCOUNT, "Max");
    const copy = await servers.backUp(primary, "replica");
    const streaming = { primary_conninfo: primary.primaryConninfo, hot_standby: "on", max_connections: "150" };
    const replica = await servers.startFrom(copy, streaming, "standby.signal");

    const other = await servers.create("other", {});
    const refused = await roundhouse(["api"], { env: { ...env, DATABASE_READ_URL: other.url } });
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining("DATABASE_READ_URL: expected a replica"),
    ]);

    const start = (args: string[], more: Record<string, string>) =>
      startPart(args, { ...env, ...more }).then((part) => ({ ...part, api_key: key }));
    const worker = await start(["worker"], {});
    const reader = await start(["api"], { DATABASE_READ_URL: replica.url });
    const direct = await start(["api"], {});
    await untilNewer(reader);
    await untilScored(primary.sql);
    expect((await look(reader)).age).toBeLessThan(60);
    await expectCounted(primary.sql, ACCOUNT, [reader, direct], CALLS);

    // the replica stops replaying: what is shown stands still, is right, and says that it is old
    await replica.sql`select pg_wal_replay_pause()`;
    await eventually(async () => (await look(reader)).age >= LAG_SECONDS, { timeoutMs: 60_000 });
    await untilNewer(direct);
    const [behind, ahead] = [await look(reader), await look(direct)];
    expect(behind.newest).toBeLessThan(ahead.newest);
    for (const [id, multiplier] of behind.rounds) expect(ahead.rounds.get(id) ?? multiplier).toBe(multiplier);
    await expectCounted(primary.sql, ACCOUNT, [reader], CALLS / 4); // counted by the primary all the same
    await replica.sql`select pg_wal_replay_resume()`;
    await untilNewer(reader);

    // from here on a commit waits for the replica, so that a failover loses none
    await primary.sql`alter system set synchronous_standby_names = 'replica'`;
    await primary.sql`select pg_reload_conf()`;
    await eventually(async () => {
      const [row] = await primary.sql<{ state: string }[]>`select sync_state as state from pg_stat_replication`;
      return row?.state === "sync";
    });
    const answered = (await callAll([reader], CALLS)).get(200) ?? 0;
    const before = await look(direct);
    await primary.kill();

    // without a primary nothing can be counted, and what is published is still there
    await eventually(async () => (await callAll([reader], 1)).get(503) === 1);
    await replica.sql`select pg_promote()`;
    for (const part of [worker, reader, direct]) part.process.kill("SIGKILL");
    const after = { ...env, DATABASE_URL: replica.url };
    const [newWorker, newApi] = await Promise.all([startPart(["worker"], after), startPart(["api"], after)]);
    const api = { ...newApi, api_key: key };
    await untilNewer(api);
    const now = await look(api);
    expect(now.newest).toBeGreaterThanOrEqual(before.newest);
    await eventually(async () => (await look(api)).age < LAG_SECONDS);
    await using(replica.url, async (sql) => {
      const [row] = await sql<{ used: number }[]>`
        select sum(used)::integer as used from quotas where length(period) = 7`;
      expect(row?.used).toBeGreaterThanOrEqual(answered);
      await expectCounted(sql, ACCOUNT, [api], CALLS);
    });
    await expectVerified(after);
    for (const part of [newWorker, newApi]) {
      part.process.kill("SIGTERM");
      expect(await part.process.ended).toMatchObject({ code: 0 });
    }
  }, 600_000);
});
