import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { verify, type Failure } from "../../../src/forecasts/verify/verify.ts";
import { fullWorld } from "../full-world.ts";
import type { World } from "../world.ts";

let shared: World;
/** Places in the chain by the names that the tests give them: the nth forecast of the next color, and a window. */
let places: Map<string, number>;
beforeAll(async () => {
  shared = await keep((cleanUp) => cleanUps.push(cleanUp));
  places = await namePlaces(shared);
});
const cleanUps: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

describe("one changed value is found, and the row is named", () => {
  const round = (roundId: string) => ({ kind: "round", id: `TABLE ${roundId}` });
  const forecast = (place: string) => ({ kind: "forecast", id: `fID-${place}` });
  const score = (place: string) => ({ kind: "score", id: `fID-${place}` });

  const ROUND = "round_id = '2010'";
  test.each<[string, string, string, object]>([
    ["history_hash", ROUND, another("history_hash"), round("2010")],
    ["hundredths", ROUND, "hundredths + 1", round("2010")],
    ["color", ROUND, "case color when 'blue' then 'pink' else 'blue' end", round("2010")],
    ["color", ROUND, "'blua'", round("2010")],
    ["round_id", ROUND, "'2910'", round("2910")],
    ["raw_value", ROUND, "'1' || raw_value", round("2010")],
    ["raw_value", ROUND, "'x'", round("2010")],
    ["verified", ROUND, "null", round("2010")],
    ["verified", ROUND, "false", round("2010")],
    ["proof_hash", ROUND, another("proof_hash"), round("2010")],
    ["proof_hash", ROUND, "'no hash'", round("2010")],
    ["late", ROUND, "true", round("2010")],
    ["late", "round_id = '2014'", "false", round("2014")],
    ["after_gap", ROUND, "true", round("2010")],
    ["after_gap", "round_id = '2018'", "false", round("2018")],
    ["source", ROUND, "'history'", round("2010")],
    ["requested_at", ROUND, "requested_at + interval '1 microsecond'", { kind: "score" }],
    ["received_at", ROUND, "received_at + interval '1 hour'", { kind: "accuracy" }],
    ["absent_at", ROUND, "null", forecast("NEXT11")],
    ["absent_at", ROUND, "absent_at - interval '1 hour'", forecast("NEXT11")],
  ])("in rounds.%s where %s: %s", async (column, where, value, named) => {
    expect(await failureOf("rounds", column, `${where} and table_id = ID`, value)).toMatchObject(inShared(named));
  });

  describe.each(["NEXT7", "WINDOW"])("of the forecast %s", (place) => {
    const isWindow = place !== "NEXT7";
    test.each<[string, string, object]>([
      ["forecast_id", "'f1-8000'", { kind: "forecast", id: "f1-8000" }],
      ["model", "'k7@2'", forecast(place)],
      ["feature", "'window:pink:85'", forecast(place)],
      ["issued_at", "issued_at + interval '1 microsecond'", forecast(place)],
      ["issue_hour", "issue_hour - interval '1 hour'", forecast(place)],
      ["cutoff_seq", "cutoff_seq + 1000", forecast(place)],
      ["cutoff_round_id", "cutoff_round_id || '0'", forecast(place)],
      ["history_hash", another("history_hash"), forecast(place)],
      ["target_round_id", "target_round_id || '0'", forecast(place)],
      ["target_round_id", "null", forecast(place)],
      ["target_round_id", "'19x0'", forecast(place)],
      ["horizon", "horizon + 1", forecast(place)],
      ["p_ppm", isWindow ? "array[p_ppm[1] + 1]" : "array[p_ppm[1] + 1, p_ppm[2] - 1, p_ppm[3]]", forecast(place)],
      ["p_ppm", "p_ppm || 1", forecast(place)],
      ["base_ppm", isWindow ? "array[base_ppm[1] - 1]" : "base_ppm[1:2]", forecast(place)],
      ["prev_hash", another("prev_hash"), forecast(place)],
      ["hash", another("hash"), forecast(place)],
    ])("in forecasts.%s: %s", async (column, value, named) => {
      const where = `seq = ${place} and table_id = ID`;
      expect(await failureOf("forecasts", column, where, value)).toMatchObject(inShared(named));
    });

    test.each([
      ["status", "'void_gap'"],
      ["status", "'void_quarantine'"],
      ["settled_seq", "settled_seq + 1"],
      ["target_requested_at", "target_requested_at + interval '1 microsecond'"],
      ["outcome", isWindow ? "1 - outcome" : "(outcome + 1) % 3"],
      ["outcome", "null"],
      ["hit", "not hit"],
      ["p", "p + 1"],
      ["base_p", "base_p + 1"],
      ["brier", "brier + 1"],
      ["brier_base", "brier_base + 1"],
      ["rps", "rps + 1"],
      ["rps_base", "rps_base + 1"],
      ["ll", "ll + 1"],
      ["ll_base", "ll_base + 1"],
      ["model", "'k7@2'"],
      ["feature", "'window:pink:85'"],
      ["issue_hour", "issue_hour - interval '1 hour'"],
      ["issued_at", "issued_at + interval '1 microsecond'"],
      ["rev", "2"],
    ])("in scores.%s: %s", async (column, value) => {
      const where = `forecast_seq = ${place} and table_id = ID`;
      expect(await failureOf("scores", column, where, value)).toMatchObject(inShared(score(place)));
    });
  });

  test.each([
    ["a void, which becomes scored", "status = 'void_late'", "'scored'"],
    ["a conflict's void, which becomes another", "status = 'void_quarantine' and rev = 2", "'void_gap'"],
    [
      "a window's void, which becomes another",
      "status = 'void_quarantine' and rev = 1 and ll is null and feature <> 'next_color'",
      "'void_late'",
    ],
    ["a window's void by a gap, which becomes scored", "status = 'void_gap' and feature <> 'next_color'", "'scored'"],
  ])("in scores.status: %s", async (_, where, value) => {
    const failure = await failureOf("scores", "status", `${where} and table_id = ID`, value);
    expect(failure).toMatchObject({ kind: "score" });
  });

  test("in every count of an hour that is over, and in parts of the rest, also of one that is not", async () => {
    const hours = await shared.sql<{ hour: string; sums: Record<string, unknown>; rev: number }[]>`
      select distinct on (hour) utc_text(hour) as hour, sums, rev
      from accuracy_hours
      where table_id = ${shared.tableId}
        and feature = 'next_color'
      order by hour, rev desc`;
    // three where the hour turned while they were made
    expect(hours.length).toBeGreaterThanOrEqual(2);
    for (const { hour, sums, rev } of hours) {
      const isOver = hour < (hours.at(-1)?.hour ?? "");
      const parts = leavesOf(sums);
      for (const path of isOver ? [...parts.filter(([part]) => part === "counts"), ...someOf(parts)] : someOf(parts)) {
        const where = `hour = '${hour}' and rev = ${rev} and feature = 'next_color' and table_id = ID`;
        const failure = await failureOf("accuracy_hours", "sums", where, withAnother(path));
        const id = `${shared.tableName} k7@1 next_color ${hour}`;
        expect(failure, path.join(".")).toMatchObject({ kind: "accuracy", id });
      }
    }
  });

  test("in the sums of every window, of an hour and as they are published", async () => {
    const rows = await shared.sql<{ feature: string; hour: string; rev: number }[]>`
      select distinct on (feature) feature, utc_text(hour) as hour, rev
      from accuracy_hours
      where table_id = ${shared.tableId}
        and feature like 'window:%'
      order by feature, hour, rev desc`;
    expect(rows.length).toBeGreaterThan(5);
    for (const { feature, hour, rev } of rows) {
      const where = `feature = '${feature}' and table_id = ID`;
      const inHour = `hour = '${hour}' and rev = ${rev} and ${where}`;
      expect(await failureOf("accuracy_hours", "sums", inHour, withAnother(["counts", "hits"]))).toMatchObject({
        kind: "accuracy",
        id: `${shared.tableName} k7@1 ${feature} ${hour}`,
      });
      const published = `period = '30d' and ${where}`;
      expect(await failureOf("published_accuracy", "sums", published, withAnother(["counts", "sum_p"]))).toMatchObject({
        kind: "published_accuracy",
        id: `${shared.tableName} k7@1 ${feature} 30d`,
      });
    }
  });

  test("in what a window says, also where all hashes after it are made to fit", async () => {
    const world = await fullWorld();
    const place = (await namePlaces(world)).get("WINDOW") ?? 0;
    const update = (change: string) =>
      world.sql.unsafe(`update forecasts set ${change} where table_id = ${world.tableId} and seq = ${place}`);
    for (const [change, undo] of [
      ["p_ppm = array[p_ppm[1] - 1]", "p_ppm = array[p_ppm[1] + 1]"],
      ["base_ppm = array[base_ppm[1] - 1]", "base_ppm = array[base_ppm[1] + 1]"],
      ["horizon = horizon + 1", "horizon = horizon - 1"],
    ] as const) {
      await update(change);
      await world.moveBack(0);
      expect((await verify(world.sql)).first_failure).toMatchObject({
        kind: "forecast",
        id: `f${world.tableId}-${place}`,
        expected: expect.stringMatching(/^p_ppm \d+ and base_ppm \d+ over \d+$/),
      });
      await update(undo);
    }
  });

  test.each([
    ["final", "feature = 'next_color' and hour < now() - interval '2 hours' and rev = 2", "false", null], // says nothing that is published
    ["final", "feature = 'next_color' and hour > now() - interval '2 hours'", "true", "accuracy"],
    [
      "hour",
      "feature = 'next_color' and hour < now() - interval '2 hours' and rev = 2",
      "hour - interval '1 hour'",
      "accuracy",
    ],
    ["sums", "feature = 'next_color' and hour < now() - interval '2 hours' and rev = 2", "'{}'::jsonb", "accuracy"],
  ])("in accuracy_hours.%s where %s: %s", async (column, where, value, kind) => {
    const failure = await failureOf("accuracy_hours", column, `${where} and table_id = ID`, value);
    expect(failure?.kind ?? null).toBe(kind);
  });

  test.each(["24h", "7d", "30d", "90d", "all"])("in parts of the published sums of %s", async (period) => {
    const [row] = await shared.sql<{ sums: Record<string, unknown> }[]>`
      select sums
      from published_accuracy
      where table_id = ${shared.tableId}
        and feature = 'next_color'
        and period = ${period}`;
    const leaves = leavesOf(row?.sums);
    expect(leaves.length).toBeGreaterThan(40);
    for (const path of period === "7d" ? someOf(leaves) : leaves.slice(0, 3)) {
      const where = `period = '${period}' and feature = 'next_color' and table_id = ID`;
      const failure = await failureOf("published_accuracy", "sums", where, withAnother(path));
      const id = `${shared.tableName} k7@1 next_color ${period}`;
      expect(failure, path.join(".")).toMatchObject({ kind: "published_accuracy", id });
    }
  });

  test.each([
    ["period_start", "feature = 'next_color' and period = '7d'", "period_start - interval '1 hour'"],
    ["period_end", "feature = 'next_color' and period = '7d'", "period_end + interval '1 day'"],
    ["sums", "feature = 'next_color' and period = '7d'", "sums - 'confusion'"],
  ])("in published_accuracy.%s", async (column, where, value) => {
    const failure = await failureOf("published_accuracy", column, `${where} and table_id = ID`, value);
    expect(failure).toMatchObject({ kind: "published_accuracy" });
  });

  test("in what was scored of a published row, also while newer scores are not published yet", async () => {
    const world = await fullWorld();
    await world.play([{ hundredths: 150, roundId: "last", afterGap: false }], world.tableIds[1]);
    await world.score();
    expect(await verify(world.sql)).toMatchObject({ ok: true });
    await world.sql`
      update published_accuracy
      set sums = jsonb_set(sums, '{counts,sum_ll}', to_jsonb(((sums #>> '{counts,sum_ll}')::bigint + 1)::text))
      where table_id = ${world.tableIds[1] ?? 0}
        and period = '24h'`;
    expect(await verify(world.sql)).toMatchObject({ ok: false, first_failure: { kind: "published_accuracy" } });
  });
});

describe("a row that was taken out is missed", () => {
  test("also a score, where its forecast was made to look open again", async () => {
    const failure = await failureWhile(`
      with gone as (
        delete from scores where forecast_seq = WINDOW and table_id = ID
        returning table_id, forecast_seq, model, feature, issue_hour
      )
      insert into open_forecasts (table_id, seq, model, feature, cutoff_seq, horizon, issue_hour)
      select g.table_id, g.forecast_seq, g.model, 'x', f.cutoff_seq, f.horizon, g.issue_hour
      from gone g
      join forecasts f on f.table_id = g.table_id and f.seq = g.forecast_seq`);
    expect(failure).toMatchObject({
      ...inShared({ kind: "score", id: "fID-WINDOW" }),
      expected: expect.stringMatching(/^a score, since the forecast ended with seq \d+$/) as string,
    });
  });

  test("also a forecast of which only the wait for a score is there", async () => {
    const failure = await failureWhile(`
      insert into open_forecasts (table_id, seq, model, feature, cutoff_seq, horizon, issue_hour)
      select table_id, 100000, model, feature, cutoff_seq, horizon, issue_hour
      from forecasts
      where table_id = ID and seq = NEXT7`);
    expect(failure).toMatchObject({
      expected: "only forecasts that are there to wait for a score",
      found: "forecast 100000",
    });
  });

  test.each<[string, string, object]>([
    ["rounds", "round_id = '2010'", { kind: "round", id: "TABLE seq 31" }],
    ["rounds", "seq = (select last_seq from tables where id = ID)", { kind: "round" }],
    ["forecasts", "seq = NEXT7", { kind: "forecast", id: "fID-NEXT7" }],
    ["forecasts", "seq = WINDOW", { kind: "forecast", id: "fID-WINDOW" }],
    ["forecasts", "seq = (select forecast_seq from tables where id = ID)", { kind: "forecast" }],
    ["scores", "forecast_seq = NEXT7", { kind: "score", id: "fID-NEXT7" }],
    ["scores", "forecast_seq = WINDOW", { kind: "score", id: "fID-WINDOW" }],
    ["scores", "rev = 2", { kind: "score" }],
    ["open_forecasts", "true", { kind: "score" }],
    ["open_forecasts", "feature like 'window:%'", { kind: "score" }],
    ["conflicts", "round_id = '2006'", { kind: "score" }],
    ["conflicts", "round_id = '2003'", { kind: "score" }],
    ["accuracy_hours", "hour < now() - interval '2 hours' and rev = 2", { kind: "accuracy" }],
    ["accuracy_hours", "hour < now() - interval '2 hours' and rev = 1", { kind: "accuracy" }],
    ["accuracy_hours", "hour > now() - interval '2 hours'", { kind: "accuracy" }],
    ["accuracy_series", "true", { kind: "accuracy" }],
    [
      "published_accuracy",
      "feature = 'next_color' and period = '30d'",
      { kind: "published_accuracy", id: "TABLE k7@1 next_color 30d" },
    ],
    ["published_accuracy", "true", { kind: "published_accuracy" }],
  ])("from %s where %s", async (table, where, named) => {
    const failure = await failureWithout(table, `${where} and table_id = ID`);
    expect(failure).toMatchObject(inShared(named));
  });

  test.each(["history_hash", "forecast_hash"])("and a table that says another %s is named", async (column) => {
    const failure = await failureOf("tables", column, "id = ID", another(column));
    expect(failure).toMatchObject({ kind: "table", id: shared.tableName });
  });
});

/** A full world that stays for the tests of a group; constraints that would refuse a forgery are gone. */
async function keep(whenDone: (cleanUp: () => Promise<void>) => void): Promise<World> {
  const world = await fullWorld({ whenDone });
  const constraints = await world.sql<{ relation: string; name: string }[]>`
    select conrelid::regclass::text as relation, conname as name
    from pg_constraint
    where contype in ('c', 'f')
      and conparentid = 0
      and coninhcount = 0
      and conrelid = any('{rounds,forecasts,scores,accuracy_hours,published_accuracy,tables,open_forecasts}'::regclass[])`;
  for (const { relation, name } of constraints) {
    await world.sql.unsafe(`alter table ${relation} drop constraint "${name}" cascade`);
  }
  return world;
}

/** NEXTn is the nth forecast of the next color, WINDOW a window of several rounds that was scored. */
async function namePlaces({ sql, tableId }: World): Promise<Map<string, number>> {
  const rows = await sql<{ seq: number; feature: string; horizon: number; hit: boolean | null; revs: number }[]>`
    select f.seq::integer, f.feature, f.horizon, bool_or(s.hit) as hit, count(s.rev)::integer as revs
    from forecasts f
    left join scores s on s.table_id = f.table_id and s.forecast_seq = f.seq
    where f.table_id = ${tableId}
    group by f.seq, f.feature, f.horizon
    order by f.seq`;
  const named = new Map<string, number>();
  const nextColors = rows.filter(({ feature }) => feature === "next_color");
  nextColors.forEach(({ seq }, index) => named.set(`NEXT${index + 1}`, seq));
  for (const { seq, feature, horizon, hit, revs } of rows) {
    if (feature !== "next_color" && horizon > 1 && revs === 1 && hit !== null) named.set("WINDOW", seq);
  }
  return named;
}

function inShared(named: object): object {
  return JSON.parse(filledIn(JSON.stringify(named))) as object;
}

function filledIn(text: string): string {
  return text
    .replaceAll("TABLE", shared.tableName)
    .replaceAll("ID", String(shared.tableId))
    .replaceAll(/NEXT\d+|WINDOW/g, (name) => String(places.get(name)));
}

/** What verify says while one value is another. */
async function failureOf(table: string, column: string, where: string, value: string): Promise<Failure | null> {
  return failureWhile(`update ${table} set ${column} = ${value} where ${where}`);
}

async function failureWithout(table: string, where: string): Promise<Failure | null> {
  return failureWhile(`delete from ${table} where ${where}`);
}

class RolledBack extends Error {}

/** Runs a statement, and verify in the same transaction, which is then rolled back. */
async function failureWhile(statement: string): Promise<Failure | null> {
  const { sql } = shared;
  let failure: Failure | null = null;
  const tampering = sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    const { count } = await tx.unsafe(filledIn(statement));
    if (count === 0) throw new Error(`expected a row that is changed by ${statement}, found none`);
    const inside = new Proxy(sql, {
      get: (target, name, receiver): unknown =>
        name === "begin"
          ? (_: string, check: (inner: typeof tx) => unknown) => check(tx)
          : Reflect.get(target, name, receiver),
    });
    const { ok, first_failure } = await verify(inside, { tableId: shared.tableId });
    expect(ok).toBe(first_failure === null);
    failure = first_failure;
    throw new RolledBack();
  });
  await expect(tampering).rejects.toThrow(RolledBack);
  return failure;
}

/** SQL for a hash with another ninth digit. */
function another(column: string): string {
  const digits = "0123456789abcdef";
  return `overlay(${column} placing translate(substr(${column}, 9, 1), '${digits}', '${digits.slice(1)}0') from 9)`;
}

/** The paths of all values in a JSON document. */
function leavesOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return value === null ? [] : [path];
  return Object.entries(value).flatMap(([name, inner]) => leavesOf(inner, [...path, name]));
}

/** Every fourth: all parts of a row are compared in one way. */
function someOf(leaves: string[][]): string[][] {
  return leaves.filter((_, index) => index % 4 === 0);
}

/** SQL for sums with another value at a path: the last character of its text is another digit. */
function withAnother(path: string[]): string {
  const at = `'{${path.join(",")}}'`;
  const text = `(sums #>> ${at})`;
  const digit = `case right(${text}, 1) when '7' then '8' else '7' end`;
  return `jsonb_set(sums, ${at}, to_jsonb(overlay(${text} placing ${digit} from length(${text}))))`;
}
