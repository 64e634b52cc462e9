import { describe, expect, test } from "vitest";
import calibrateTable from "../../jobs/calibrate-table.ts";
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

function alertsOf({ sql, tableName }: World): Promise<{ open: boolean }[]> {
  return sql<{ open: boolean }[]>`
    select closed_at is null as open
    from alerts
    where kind = 'calibration'
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
    expect((await calibrateTable.sweep?.(context))?.map((one) => one.run)).toContain(run);
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
    expect(await alertsOf(world)).toEqual([{ open: true }]);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.msg).toContain(`calibration 1 of ${world.tableName} replayed its rounds to the state `);
    expect(lines[0]?.msg).toContain("(and is stored as ");

    await flip(world);
    await playSome(world);
    expect(await calibrateTable.run({ run: await ask(world) }, context)).toEqual({ rounds: 70, met: 1, different: 0 });
    expect(await alertsOf(world)).toEqual([{ open: false }]);
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

  test("refuses a payload that is no run, and skips one that is not there", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    expect(calibrateTable.payload.safeParse({ run: "x" }).success).toBe(false);
    expect(await calibrateTable.run({ run: "999999" }, context)).toEqual({ skipped: 1 });
  });
});
