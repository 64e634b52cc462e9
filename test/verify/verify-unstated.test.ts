import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { declareLog } from "../../src/record/log/declare.ts";
import { publishLog } from "../../src/record/log/publish-log.ts";
import { verifyStated } from "../../src/record/log/verify-log.ts";
import { verify } from "../../src/verify/verify.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { createWorld } from "../forecasts/world.ts";
import { timesFrom } from "../support/passes.ts";

const MINUTE = 60_000;

/** Two tables without rounds, and the log folder of their worker. */
async function logged() {
  const world = await createWorld({ ownDatabase: true, tables: [{}, {}] });
  const folder = await mkdtemp(join(tmpdir(), "log-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const publication = { folder, publicUrl: "https://crash.example", witnesses: [] };
  const [first = 0, second = 0] = world.tableIds;
  const start = (Math.floor(Date.now() / MINUTE) - 60) * MINUTE;
  return {
    ...world,
    first,
    second,
    publication,
    publish: () => publishLog(world.sql, publication, new AbortController().signal),
    /** Plays a round with forecasts every 15 seconds, from a minute on. */
    playFrom: (tableId: number, minute: number, count = 4) =>
      world.play(
        generatedRounds(count).map(({ hundredths }) => hundredths),
        tableId,
        { atOnce: 1, times: timesFrom(start + minute * MINUTE, 15_000) },
      ),
    signedAt: (minute: number) =>
      world.sql`update log_checkpoints set signed_at = ${new Date(start + minute * MINUTE)}`,
    timeAt: (minute: number) => new Date(start + minute * MINUTE).toISOString().slice(0, 16),
  };
}

describe("forecasts that the log does not state", () => {
  test("fail if it was signed more than five minutes later, also if another table is newer", async () => {
    const world = await logged();
    await world.playFrom(world.first, 0);
    await world.publish();
    await world.playFrom(world.first, 10);
    await world.playFrom(world.second, 10);
    await world.publish();
    await world.signedAt(11);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    await world.playFrom(world.second, 12);
    await world.signedAt(16);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    await world.signedAt(18);
    const failure = {
      kind: "log_statement",
      id: expect.stringMatching(/^about .*m1$/) as string,
      expected: expect.stringContaining(`soon after ${world.timeAt(12)}`) as string,
      found: expect.stringContaining(`signed at ${world.timeAt(18)}`) as string,
    };
    expect(await verify(world.sql)).toMatchObject({ ok: false, first_failure: failure });
    expect(await verify(world.sql, { tableId: world.second })).toMatchObject({ ok: false, first_failure: failure });
    expect(await verify(world.sql, { tableId: world.first })).toMatchObject({ ok: true });
    await world.publish();
    expect(await verify(world.sql)).toMatchObject({ ok: true });
  });

  test("fail if others were issued for more than five minutes and nothing was signed", async () => {
    const world = await logged();
    await world.playFrom(world.first, 0);
    await world.publish();
    await world.signedAt(1);
    await world.playFrom(world.first, 2, 16);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    await world.playFrom(world.second, 10);
    expect(await verify(world.sql)).toMatchObject({
      ok: false,
      first_failure: {
        kind: "log_statement",
        found: expect.stringContaining(`signed at ${world.timeAt(1)}`) as string,
      },
    });
    await world.sql`insert into queue_controls (queue, paused_by, reason) values ('publish-log', 'ana', 'moved')`;
    expect(await verify(world.sql)).toMatchObject({
      ok: true,
      unstated: { since: expect.stringContaining(world.timeAt(2)) as string, reason: "paused" },
    });
  });

  test("fail if entries state them and no checkpoint covers these", async () => {
    const world = await logged();
    await world.playFrom(world.first, 0);
    await world.publish();
    await world.signedAt(1);
    await world.playFrom(world.first, 2);
    await world.playFrom(world.first, 9);
    await world.publish();
    await world.sql`delete from log_checkpoints where size = (select max(size) from log_checkpoints)`;
    expect(await verify(world.sql)).toMatchObject({ ok: false, first_failure: { kind: "log_statement" } });
  });

  test("fail if only a column of an entry states them", async () => {
    const world = await logged();
    await world.playFrom(world.first, 0);
    await world.publish();
    await world.playFrom(world.first, 2);
    await world.playFrom(world.first, 9);
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`
        update log_entries
        set forecast_seq = (select forecast_seq from table_heads where table_id = ${world.first})
        where table_id = ${world.first} and forecast_seq is not null`;
    });
    await world.signedAt(9);
    const found = await world.sql.begin((tx) => verifyStated(tx, world.first));
    expect(found.failure).toMatchObject({ expected: expect.stringContaining(world.timeAt(2)) as string });
  });

  test("are reported if no checkpoint of the newest log was signed yet", async () => {
    const world = await logged();
    await world.playFrom(world.first, 0);
    expect(await verify(world.sql)).not.toHaveProperty("unstated");
    await world.playFrom(world.first, 8);
    const unstated = { since: expect.stringContaining(world.timeAt(0)) as string, reason: "no log" };
    expect(await verify(world.sql)).toMatchObject({ ok: true, unstated });
    await world.publish();
    expect(await verify(world.sql)).not.toHaveProperty("unstated");
    await world.sql.begin((tx) => declareLog(tx, { ...world.publication, by: "ana", reason: "restored" }));
    expect(await verify(world.sql)).toMatchObject({ ok: true, unstated });
    await world.publish();
    expect(await verify(world.sql)).not.toHaveProperty("unstated");
  });

  test("are no failure if others were issued or signed at a time that has not come yet", async () => {
    const world = await logged();
    await world.playFrom(world.first, 60 + 1440, 2); // while the clock was a day ahead
    await world.publish();
    await world.playFrom(world.second, 59);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    expect(await verify(world.sql, { tableId: world.second })).toMatchObject({ ok: true });
    await world.signedAt(60 + 1440);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    expect(await verify(world.sql)).not.toHaveProperty("unstated");
  });

  test("are no failure after an import, a stop of all processes, and while a table has only rounds", async () => {
    const world = await logged();
    await world.playFrom(world.first, 0, 1); // a first response has no forecasts
    await world.publish();
    await world.playFrom(world.first, 3, 8);
    await world.addLate("import", [{ roundId: "1", hundredths: 150 }]);
    await world.signedAt(1);
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    expect(await verify(world.sql)).not.toHaveProperty("unstated");
  });
});
