import { describe, expect, test } from "vitest";
import issueForecasts from "../../jobs/issue-forecasts.ts";
import { createWorld, saveUnread } from "../forecasts/world.ts";
import { testContext } from "../support/context.ts";

describe("issue-forecasts", () => {
  test("learns what is new and says what comes next", async () => {
    const world = await createWorld({ tables: [{}, {}] });
    const { context } = testContext(world.sql);
    let announced = 0;
    const run = () => issueForecasts.run({ house: world.house }, { ...context, published: () => (announced += 1) });
    for (const id of world.tableIds) await world.play([150, 230], id);
    expect(await run()).toEqual({ learned: 4, issued: 0, windows: 0, refused: 0, unfinished: 0, damaged: 0 });
    await world.play([150]);
    expect(await run()).toEqual({ learned: 1, issued: 1, windows: 9, refused: 0, unfinished: 0, damaged: 0 });
    expect(announced).toBe(2);
  });

  test("twice is once, and nothing to do is fine", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    const nothing = { learned: 0, issued: 0, windows: 0, refused: 0, unfinished: 0, damaged: 0 };
    expect(await issueForecasts.run({ house: world.house }, context)).toEqual(nothing);
    expect(await issueForecasts.run({ house: "nobody" }, context)).toEqual(nothing);
    await world.play([150]);
    await world.play([150]);
    expect(await issueForecasts.run({ house: world.house }, context)).toMatchObject({ learned: 2, issued: 1 });
    expect(await issueForecasts.run({ house: world.house }, context)).toEqual(nothing);
  });

  test("is found by its sweep as long as something is to be learned or may be said", async () => {
    const world = await createWorld();
    const { context } = testContext(world.sql);
    const swept = async () => {
      const found = (await issueForecasts.sweep?.(context)) ?? [];
      return found.some(({ house }) => house === world.house);
    };
    expect(await swept()).toBe(false);
    await world.play([{ hundredths: 150, absentAgo: 1 }]);
    expect(await swept()).toBe(true);
    await saveUnread(world.sql, world.tableId);
    expect(await issueForecasts.run({ house: world.house }, context)).toMatchObject({ learned: 1, refused: 1 });
    expect(await swept()).toBe(true);
    await world.sql`update rounds set absent_at = absent_at - interval '1 hour' where table_id = ${world.tableId}`;
    expect(await swept()).toBe(false);
  });

  test("tells operators of a table whose state is damaged, once, and goes on with the others", async () => {
    const world = await createWorld({ tables: [{}, {}] });
    const { context, lines } = testContext(world.sql);
    for (const id of world.tableIds) await world.turn(150, id);
    await world.sql`
      update model_states
      set state = set_byte(state, 0, 0)
      where table_id = ${world.tableId}`;
    for (const id of world.tableIds) await world.play([150], id);
    const done = { learned: 1, issued: 1, windows: 9, refused: 0, unfinished: 0, damaged: 1 };
    expect(await issueForecasts.run({ house: world.house }, context)).toEqual(done);
    expect(await issueForecasts.run({ house: world.house }, context)).toEqual({
      ...done,
      learned: 0,
      issued: 0,
      windows: 0,
    });
    expect(lines.map(({ msg }) => msg)).toEqual([
      expect.stringMatching(`^${world.tableName} learns and forecasts nothing: expected a model state with hash`),
    ]);
    const open = await world.sql`select subject from alerts where kind = 'calibration' and closed_at is null`;
    expect(open.map(({ subject }) => subject as string)).toEqual([world.tableName]);
  });

  test("stops between two transactions when its time is up", async () => {
    const world = await createWorld();
    await world.play([150]);
    const { context } = testContext(world.sql, { signal: AbortSignal.abort(new Error("out of time")) });
    await expect(issueForecasts.run({ house: world.house }, context)).rejects.toThrow("out of time");
  });
});
