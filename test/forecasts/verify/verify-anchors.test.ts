import { beforeAll, afterAll, describe, expect, test } from "vitest";
import { anchorHours } from "../../../src/forecasts/chain/anchors.ts";
import { verify, type Failure } from "../../../src/forecasts/verify/verify.ts";
import { timesFrom } from "../../support/passes.ts";
import { createWorld, type World } from "../world.ts";

const { signal } = new AbortController();

let world: World;
const cleanUps: (() => Promise<void>)[] = [];
beforeAll(async () => {
  world = await createWorld({
    ownDatabase: true,
    tables: [{}, {}, {}],
    whenDone: (cleanUp) => cleanUps.push(cleanUp),
  });
  await world.sql`alter table anchors drop constraint anchor_root_is_sha256`;
  await world.sql`alter table forecast_sets drop constraint set_has_a_value_for_each_forecast`;
  // three hours in which two tables were forecast, one without, and one more; the third table begins in the last
  for (const { rounds, hoursAgo } of [
    { rounds: 3, hoursAgo: 6 },
    { rounds: 2, hoursAgo: 5 },
    { rounds: 2, hoursAgo: 4 },
    { rounds: 2, hoursAgo: 2 },
  ]) {
    const tables = hoursAgo === 2 ? world.tableIds : world.tableIds.slice(0, 2);
    const times = timesFrom(Math.floor(Date.now() / 3_600_000 - hoursAgo) * 3_600_000, 1_000);
    const played = Array.from({ length: rounds }, (_, n) => 150 + n);
    for (const id of tables) await world.play(played, id, { atOnce: 1, times });
  }
  await anchorHours(world.sql, signal);
}, 120_000);
afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

/** Hours in which a table, else any, was forecast, oldest first. */
async function forecastHours(tableId?: number): Promise<string[]> {
  const rows = await world.sql<{ hour: string }[]>`
    select distinct utc_text(date_trunc('hour', issued_at, 'UTC')) as hour
    from forecast_sets
    where ${tableId ?? null}::integer is null
      or table_id = ${tableId ?? null}
    order by hour`;
  return rows.map(({ hour }) => hour);
}

/** What verify says while these statements hold; all is put back. */
async function failureWhile(statement: string, tableId?: number): Promise<Failure | null> {
  const { sql } = world;
  const kept = ["forecast_sets", "anchors"];
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    for (const table of kept) await tx.unsafe(`create table kept_${table} as select * from ${table}`);
    const { count } = await tx.unsafe(statement);
    if (count === 0) throw new Error(`expected a row for ${statement}, found none`);
  });
  try {
    const { ok, first_failure, checked } = await verify(sql, { tableId });
    expect(ok).toBe(first_failure === null);
    expect(Object.keys(checked)).toEqual(expect.arrayContaining(["rounds", "forecasts", "scores", "accuracy_rows"]));
    return first_failure;
  } finally {
    await sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      for (const table of kept) {
        await tx.unsafe(`delete from ${table}`);
        await tx.unsafe(`insert into ${table} select * from kept_${table}`);
        await tx.unsafe(`drop table kept_${table}`);
      }
    });
  }
}

describe("roots", () => {
  test("are found well, of all tables and of one, and it is told how far that has come", async () => {
    const [counts] = await world.sql<{ roots: number }[]>`select count(*)::integer as roots from anchors`;
    const told: string[] = [];
    const all = await verify(world.sql, {
      progress: (what, done, total) => what === "roots" && told.push(`${done}/${total}`),
    });
    expect(all).toMatchObject({ ok: true, first_failure: null });
    const roots = counts?.roots ?? 0;
    expect(roots).toBeGreaterThanOrEqual(5);
    expect(told).toEqual(Array.from({ length: roots }, (_, index) => `${index + 1}/${roots}`));
    for (const tableId of world.tableIds) expect(await verify(world.sql, { tableId })).toMatchObject({ ok: true });
  });

  test.each([
    ["a digit of a root", "root = overlay(root placing (case left(root, 1) when '0' then '1' else '0' end) from 1)"],
    ["a root that is none", "root = ''"],
    ["the size", "size = size + 1"],
  ])("that were changed are named by their hour: %s", async (_, change) => {
    const [first = "", , third = ""] = await forecastHours();
    for (const hour of [first, third]) {
      const failure = await failureWhile(`update anchors set ${change} where hour = '${hour}'`);
      expect(failure).toMatchObject({ kind: "root", id: hour });
      expect(failure?.expected).toMatch(/^the root [0-9a-f]{64} over \d+ forecasts$/);
      expect(failure?.found).not.toBe(failure?.expected);
    }
  });

  test("that were changed are found also where nothing was forecast", async () => {
    const hours = await forecastHours();
    const [empty] = await world.sql<{ hour: string }[]>`
      select utc_text(hour) as hour
      from anchors
      where size = 0
        and hour < ${hours.at(-1) ?? ""}`;
    expect(empty).toBeDefined();
    expect(await failureWhile(`update anchors set size = 1 where hour = '${empty?.hour}'`)).toMatchObject({
      kind: "root",
      id: empty?.hour,
      expected: "the root e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 over 0 forecasts",
    });
    expect(await failureWhile(`delete from anchors where hour = '${empty?.hour}'`)).toMatchObject({
      kind: "root",
      id: empty?.hour,
      found: "none",
    });
  });

  test("that were taken out are missed", async () => {
    const hours = await forecastHours();
    for (const hour of hours.slice(0, -1))
      expect(await failureWhile(`delete from anchors where hour = '${hour}'`)).toMatchObject({
        kind: "root",
        id: hour,
        found: "none",
      });
    expect(await failureWhile("delete from anchors")).toMatchObject({ kind: "root", id: hours[0], found: "none" });
  });

  test("of hours before the first forecast are found", async () => {
    const [first = ""] = await forecastHours();
    const early = `'${first}'::timestamptz - interval '1 hour'`;
    const statement = `insert into anchors (hour, size, root) values (${early}, 3, '${"ab".repeat(32)}')`;
    expect(await failureWhile(statement)).toMatchObject({ kind: "root", found: expect.stringContaining("over 3") });
  });

  test("are missed only when two later hours of forecasts are over, however long ago the first was", async () => {
    const hours = await forecastHours();
    expect(hours).toHaveLength(4);
    expect(await failureWhile(`delete from anchors where hour > '${hours[0]}'`)).toMatchObject({ id: hours[1] });
    for (const tableId of [undefined, world.tableId])
      expect(await failureWhile(`delete from anchors where hour > '${hours[1]}'`, tableId)).toBeNull();
    expect(await failureWhile(`delete from anchors where hour > '${hours[2]}'`)).toBeNull();
  });

  test("name the hour of a forecast that was changed with a chain that was made to fit", async () => {
    const { sql, tableIds } = world;
    const [first] = await forecastHours();
    const [, , , fourth = ""] = await forecastHours();
    // what a thorough forger leaves: another table is right by itself, the hours that it shares with the forged one are not
    for (const [id, hour] of [
      [tableIds[1], first],
      [tableIds[2], fourth],
    ] as const) {
      const failure = await failureWhile(
        `update forecast_sets set hashes = sha256(hashes) || substr(hashes, 33) where table_id = ${tableIds[0]}`,
        id,
      );
      expect(failure).toMatchObject({ kind: "root", id: hour });
    }
    expect(await verify(sql)).toMatchObject({ ok: true });
  });

  test("of one table are those of the hours in which it was forecast", async () => {
    const [, , third = 0] = world.tableIds;
    const [own = ""] = await forecastHours(third);
    const [other = ""] = await forecastHours();
    expect(await failureWhile(`update anchors set size = 99 where hour = '${other}'`, third)).toBeNull();
    expect(await failureWhile(`update anchors set size = 99 where hour = '${own}'`, third)).toMatchObject({ id: own });
    expect(
      await failureWhile(
        `update forecast_sets set hashes = '' where table_id = ${world.tableId} and issued_at >= '${own}'`,
        third,
      ),
    ).toMatchObject({ kind: "root", id: own, found: expect.stringContaining("is damaged") });
  });

  test("come after the rows they stand on: a changed hash is named by its forecast", async () => {
    const change = `update forecast_sets set hashes = set_byte(hashes, 40, get_byte(hashes, 40) # 1) where table_id = ${world.tableId} and first_seq = 1`;
    expect(await failureWhile(change)).toMatchObject({ kind: "forecast", id: `f${world.tableId}-2` });
  });
});
