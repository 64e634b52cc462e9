import type { Job as QueuedRun } from "bullmq";
import { describe, expect, test } from "vitest";
import calibrateTable from "../../jobs/calibrate-table.ts";
import { takeRun } from "../../src/calibration/runs/rolling-run-store.ts";
import { createRunner } from "../../src/queue/runs/run.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { createWorld, type World } from "../forecasts/world.ts";
import { testContext } from "../support/context.ts";

async function ask({ sql, tableId }: World): Promise<string> {
  const [row] = await sql<{ run: string }[]>`
    insert into calibration_runs (table_id, kind, model)
    select table_id, 'rolling', model from table_heads where table_id = ${tableId}
    returning id::text as run`;
  return row?.run ?? "";
}

function alertsOf({ sql, tableName }: World, kind = "calibration"): Promise<{ open: boolean; text: string }[]> {
  return sql<{ open: boolean; text: string }[]>`
    select closed_at is null as open, text
    from alerts
    where kind = ${kind}
      and subject = ${tableName}
    order by opened_at`;
}

/** Flips one bit of the live state, and back again when called once more. */
async function flip({ sql, tableId }: World): Promise<void> {
  await sql`
    update model_snapshots
    set state = set_byte(state, length(state) - 20, get_byte(state, length(state) - 20) # 1)
    where table_id = ${tableId}`;
}

async function playSome(world: World): Promise<void> {
  await world.play(generatedRounds(70).map(({ hundredths }) => hundredths));
}

describe("calibrate-table", () => {
  test("confirms the live state from its rounds, without an alert", async () => {
    const world = await createWorld();
    const { context, lines } = testContext(world.sql);
    await playSome(world);
    const run = await ask(world);
    const swept = async () => (await calibrateTable.sweep?.(context))?.map((one) => one.run);
    expect(await swept()).toContain(run);
    await world.sql`update tables set enabled = false where id = ${world.tableId}`;
    expect(await swept()).not.toContain(run);
    await world.sql`update tables set enabled = true where id = ${world.tableId}`;
    expect(await calibrateTable.run({ run }, context)).toEqual({ rounds: 70, met: 1, different: 0 });
    expect(await calibrateTable.run({ run }, context)).toEqual({ skipped: 1 });
    expect((await calibrateTable.sweep?.(context))?.map((one) => one.run)).not.toContain(run);
    expect(await alertsOf(world)).toEqual([]);
    expect(lines).toEqual([]);
  });

  test("alerts operators of a live state that its rounds do not give, and when it is correct again", async () => {
    const world = await createWorld();
    const { context, lines } = testContext(world.sql);
    await playSome(world);
    await flip(world);
    expect(await calibrateTable.run({ run: await ask(world) }, context)).toEqual({ rounds: 70, met: 0, different: 1 });
    expect(await alertsOf(world)).toMatchObject([{ open: true }]);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.msg).toContain(`calibration 1 of ${world.tableName} replayed its rounds to the state `);
    expect(lines[0]?.msg).toContain("(and is stored as ");

    await flip(world);
    await playSome(world);
    expect(await calibrateTable.run({ run: await ask(world) }, context)).toEqual({ rounds: 70, met: 1, different: 0 });
    expect(await alertsOf(world)).toMatchObject([{ open: false }]);
    expect(lines[1]?.msg).toMatch(/^recovered: calibration 1 of /);
  });

  test("that fails is tried again, with the reason at its run, and is done when the cause is gone", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    await playSome(world);
    const run = await ask(world);
    const { sql, tableId } = world;
    await flip(world);
    const [before] = await sql<{ settings: unknown }[]>`select settings from tables where id = ${tableId}`;
    await sql`update tables set settings = settings || '{"house_edge": 0.05}' where id = ${tableId}`;
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await expect(calibrateTable.run({ run }, context)).rejects.toThrow("expected a sound state of");
      expect(await sql`select status, reason from calibration_runs where id = ${run}`).toEqual([
        { status: "queued", reason: expect.stringMatching(/^expected a sound state of /) as string },
      ]);
    }
    await flip(world);
    await sql`update tables set settings = ${sql.json(before?.settings as never)} where id = ${tableId}`;
    expect(await calibrateTable.run({ run }, context)).toMatchObject({ met: 1 });
    expect(await sql`select status, reason from calibration_runs where id = ${run}`).toEqual([
      { status: "done", reason: null },
    ]);
  });

  test("opens an alert for its table when its last attempt failed, which the next result closes", async () => {
    const world = await createWorld();
    const { sql, tableId, tableName } = world;
    const { context } = testContext(sql);
    const { signal } = context;
    const runner = createRunner({ job: calibrateTable, context, log: context.log, stop: signal });
    const attempt = (run: string, attemptsMade: number) =>
      runner.process({ name: "calibrate-table", data: { run }, attemptsMade } as QueuedRun, undefined, {
        signal: undefined,
        ending: context.ending,
      });
    await playSome(world);
    await flip(world);
    const [before] = await sql<{ settings: unknown }[]>`select settings from tables where id = ${tableId}`;
    await sql`update tables set settings = settings || '{"house_edge": 0.05}' where id = ${tableId}`;
    const run = await ask(world);
    await expect(attempt(run, 3)).rejects.toThrow("expected a sound state of");
    expect(await alertsOf(world, "calibration_failed")).toEqual([]);
    await expect(attempt(run, 4)).rejects.toThrow("expected a sound state of");
    await expect(attempt(run, 4)).rejects.toThrow("expected a sound state of");
    expect(await alertsOf(world, "calibration_failed")).toEqual([
      {
        open: true,
        text: expect.stringMatching(`^the calibration of ${tableName} .*expected a sound state of`) as string,
      },
    ]);
    await sql`update tables set settings = ${sql.json(before?.settings as never)} where id = ${tableId}`;
    await attempt(run, 0);
    expect(await alertsOf(world, "calibration_failed")).toMatchObject([{ open: false }]);
    expect(await alertsOf(world)).toMatchObject([{ open: true }]); // the states differ
  });

  test("waits 15 minutes with an alert once five workers in a row died during its run", async () => {
    const world = await createWorld();
    const { sql, tableName } = world;
    const { context } = testContext(sql);
    const { signal } = context;
    const runner = createRunner({ job: calibrateTable, context, log: context.log, stop: signal });
    await playSome(world);
    const run = await ask(world);
    const attempt = () =>
      runner.process({ name: "calibrate-table", data: { run }, attemptsMade: 0 } as QueuedRun, undefined, {
        signal: undefined,
        ending: context.ending,
      });
    const silentFor = (time: string) =>
      sql`update calibration_runs set heartbeat_at = now() - ${time}::interval where id = ${run}`;
    const swept = async () => (await calibrateTable.sweep?.(context))?.some((one) => one.run === run);
    for (let died = 0; died < 5; died += 1) {
      expect(await takeRun(sql, run)).not.toBeNull();
      await silentFor("61 s");
      expect(await swept()).toBe(true);
    }
    await expect(attempt()).rejects.toThrow("5 workers in a row died during this");
    expect(await alertsOf(world, "calibration_failed")).toEqual([
      {
        open: true,
        text: expect.stringMatching(`^the calibration of ${tableName} .*5 workers in a row died`) as string,
      },
    ]);
    expect(await swept()).toBe(false);
    await silentFor("16 min");
    expect(await swept()).toBe(true);
    expect(await takeRun(sql, run)).not.toBeNull();
    await silentFor("61 s");
    await attempt();
    expect(await alertsOf(world, "calibration_failed")).toMatchObject([{ open: false }]);
    expect(await sql`select status, lost_attempts as lost from calibration_runs where id = ${run}`).toEqual([
      { status: "done", lost: 1 },
    ]);
  });

  test("closes the alert when its run ended without a result, and opens none for a run that was cancelled", async () => {
    const world = await createWorld();
    const { sql } = world;
    const { context } = testContext(sql);
    await playSome(world);
    const alert = { open: true, text: expect.stringContaining("no memory") as string };
    await calibrateTable.run({ run: await ask(world) }, context);
    const run = await ask(world);
    await calibrateTable.gaveUp?.({ run }, "no memory", context);
    expect(await alertsOf(world, "calibration_failed")).toEqual([alert]);
    expect(await calibrateTable.run({ run }, context)).toEqual({ skipped: 1 });
    expect(await alertsOf(world, "calibration_failed")).toEqual([{ ...alert, open: false }]);
    await calibrateTable.gaveUp?.({ run }, "no memory", context);
    expect(await alertsOf(world, "calibration_failed")).toHaveLength(1);
  });

  test("refuses a payload that is no run, and skips one that is not there", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    expect(calibrateTable.payload.safeParse({ run: "x" }).success).toBe(false);
    expect(await calibrateTable.run({ run: "999999" }, context)).toEqual({ skipped: 1 });
  });
});
