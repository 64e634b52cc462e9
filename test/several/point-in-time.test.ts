import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { makeFolder } from "../cli/world.ts";
import { openServers } from "./postgres.ts";
import { expectVerified, makeKey, must, startPart, untilNewer, untilScored } from "./world.ts";

const ACCOUNT = "ann@example.com";

describe("a recovery to a point in time", () => {
  it("from a base backup and archived WAL restores the state before a mistake, verified, and continues from it", async () => {
    const servers = await openServers();
    const archive = await servers.makeFolder("archive");
    const archiving = { archive_mode: "on", archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f` };
    const primary = await servers.create("primary", archiving);
    const { sql } = primary;
    const redis = await createRedis();
    const env = {
      DATABASE_URL: primary.url,
      REDIS_URL: redis.url,
      DATA_DIR: join(await makeFolder(), "data"),
      PORT: "0",
      WORKER_PORT: "0",
      DRAIN_SECONDS: "0",
    };
    await must(["migrate"], env);
    const key = await makeKey(env, ACCOUNT, "Max");
    const copy = await servers.backUp(primary, "base");
    const [worker, api] = await Promise.all([startPart(["worker"], env), startPart(["api"], env)]);
    await untilNewer({ ...api, api_key: key });
    await untilScored(sql); // all of this is in the archive alone
    for (const part of [worker, api]) part.process.kill("SIGKILL");
    await Promise.all([worker.process.ended, api.process.ended]);
    // a session may still be committing for a process that is gone
    await eventually(async () => {
      const sessions = await sql`
        select
        from pg_stat_activity
        where datname = current_database()
          and application_name like 'roundhouse%'
          and application_name <> current_setting('application_name')`;
      return sessions.length === 0;
    });

    const [good] = await sql<{ at: string; rounds: number }[]>`
      select clock_timestamp()::text as at, (select count(*)::integer from rounds) as rounds`;
    if (good === undefined) throw new Error("expected a time, found none");
    await sql`update accounts set email = 'mistake@example.com' where email = ${ACCOUNT}`;
    const [last] = await sql<{ segment: string }[]>`select pg_walfile_name(pg_switch_wal()) as segment`;
    await eventually(async () => (await readdir(archive)).includes(last?.segment ?? ""));
    await primary.kill();

    const recovered = await servers.startFrom(
      copy,
      {
        restore_command: `cp ${archive}/%f %p`,
        recovery_target_time: good.at,
        recovery_target_action: "promote",
      },
      "recovery.signal",
    );
    await eventually(async () => {
      const [row] = await recovered.sql<{ over: boolean }[]>`select not pg_is_in_recovery() as over`;
      return row?.over;
    });
    const [found] = await recovered.sql<{ rounds: number; email: string }[]>`
      select (select count(*)::integer from rounds) as rounds, (select email from accounts) as email`;
    expect(found).toEqual({ rounds: good.rounds, email: ACCOUNT });
    const after = { ...env, DATABASE_URL: recovered.url };
    await expectVerified(after);
    const again = await Promise.all([startPart(["worker"], after), startPart(["api"], after)]);
    await untilNewer({ ...again[1], api_key: key });
    await expectVerified(after);
  }, 600_000);
});
