import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { catchUpReferences } from "../../../src/forecasts/accuracy/reference-hours.ts";
import { sumsFromJson } from "../../../src/forecasts/accuracy/sums-json.ts";
import { verify } from "../../../src/forecasts/verify/verify.ts";
import {
  emptyReferenceSums,
  mergeReferenceSums,
  referenceSumsFromJson,
  referenceSumsToJson,
  scoreReferences,
  type ReferenceSums,
} from "../../../src/forecasts/accuracy/reference-sums.ts";
import { emptyReferences, forgetGaps, learnReferences } from "../../../src/forecasts/accuracy/references.ts";
import { generatedRounds } from "../streams.ts";
import { createWorld, saveConflict, type World } from "../world.ts";

/** Enough for windows that end in the hour after theirs, and for a gap. */
const ROUNDS = 16;
const COLORS = ["blue", "purple", "pink"];

interface HourRow {
  feature: string;
  hour: string;
  rev: number;
  final: boolean;
  updated_at: string;
  sums: unknown;
  references: unknown;
}

function hoursOf({ sql }: World, tableId: number): Promise<HourRow[]> {
  return sql<HourRow[]>`
    select
      feature, utc_text(hour) as hour, rev, final, utc_text(updated_at) as updated_at, sums,
      reference_sums as "references"
    from accuracy_hours
    where table_id = ${tableId}
    order by feature, hour, rev`;
}

/** What the hour rows of a table say of the references, the newest of each hour, by feature. */
async function sumsOf(world: World, tableId = world.tableId): Promise<Map<string, object>> {
  const newest = new Map((await hoursOf(world, tableId)).map((row) => [`${row.feature} ${row.hour}`, row]));
  const byFeature = Map.groupBy(newest.values(), ({ feature }) => feature);
  return new Map(
    [...byFeature].map(([feature, rows]) => [
      feature,
      referenceSumsToJson(mergeReferenceSums(rows.map(({ references }) => referenceSumsFromJson(references)))),
    ]),
  );
}

/** The same from what the exports hold, in one pass over all rounds and without any mark. */
async function replayOf({ sql }: World, tableId: number): Promise<Map<string, object>> {
  const rounds = await sql<{ seq: bigint; color: string; late: boolean; after_gap: boolean }[]>`
    select seq, color, late, after_gap
    from rounds
    where table_id = ${tableId}
    order by seq`;
  const scored = await sql<
    { feature: string; cutoff_seq: bigint; horizon: number; base_ppm: number[]; outcome: number }[]
  >`
    select f.feature, f.cutoff_seq, f.horizon, f.base_ppm, s.outcome
    from forecasts f
    join scores s on s.table_id = f.table_id and s.forecast_seq = f.seq
    where f.table_id = ${tableId}
      and s.status = 'scored'
      and not exists (
        select
        from scores later
        where later.table_id = s.table_id
          and later.forecast_seq = s.forecast_seq
          and later.rev > s.rev
      )`;
  const references = emptyReferences(3);
  const sums = new Map<string, ReferenceSums>();
  for (const round of rounds) {
    if (round.late) continue;
    if (round.after_gap) forgetGaps(references);
    learnReferences(references, COLORS.indexOf(round.color));
    for (const { feature, horizon, base_ppm, outcome } of scored.filter((one) => one.cutoff_seq === round.seq)) {
      const own = sums.get(feature) ?? emptyReferenceSums();
      sums.set(feature, own);
      const color = feature === "next_color" ? null : COLORS.indexOf(feature.split(":")[1] ?? "");
      scoreReferences(own, references, { basePpm: base_ppm, horizon, outcome }, color);
    }
  }
  return new Map([...sums].map(([feature, own]) => [feature, referenceSumsToJson(own)]));
}

/** The same as it is published of all time. */
async function publishedOf({ sql }: World, tableId: number): Promise<Map<string, object>> {
  const rows = await sql<{ feature: string; references: unknown }[]>`
    select feature, reference_sums as "references"
    from published_accuracy
    where table_id = ${tableId}
      and period = 'all'`;
  return new Map(
    rows.map(({ feature, references }) => [feature, referenceSumsToJson(referenceSumsFromJson(references))]),
  );
}

/** The newest row of each hour but for its hashes, which hold the table's name, and for when and how often it was made. */
async function withoutNames(world: World, tableId: number): Promise<object[]> {
  const newest = new Map((await hoursOf(world, tableId)).map((row) => [`${row.feature} ${row.hour}`, row]));
  return [...newest.values()].map(({ feature, hour, final, sums, references }) => {
    const { first, last, ...rest } = sumsFromJson(sums);
    return { feature, hour, final, ...rest, first: first?.seq, last: last?.seq, references };
  });
}

const inOrder = (byFeature: Map<string, object>) =>
  [...byFeature].filter(([, sums]) => Object.keys(sums).length > 0).toSorted(([a], [b]) => (a < b ? -1 : 1));

async function marksOf({ sql }: World, tableId: number): Promise<{ seq: number; memory: unknown }[]> {
  return sql<{ seq: number; memory: unknown }[]>`
    select seq::integer, memory
    from reference_marks
    where table_id = ${tableId}
    order by seq`;
}

describe("the references of a live table", () => {
  test("equal a replay of its rounds, with gaps, late rounds and windows over two hours, in whatever runs they were scored", async () => {
    const anyRuns = fc.array(fc.boolean(), { minLength: ROUNDS, maxLength: ROUNDS });
    await fc.assert(
      fc.asyncProperty(anyRuns, fc.integer({ min: 3, max: ROUNDS - 3 }), async (scoredAfter, hourEndsAfter) => {
        const world = await createWorld({ tables: [{}, {}] });
        const [stepwise = 0, atOnce = 0] = world.tableIds;
        for (const [index, { hundredths }] of generatedRounds(ROUNDS).entries()) {
          const roundId = String(3000 + index + 4 * Math.floor(index / 11));
          for (const id of world.tableIds) {
            await world.play([{ hundredths, roundId }], id);
            if (index % 7 === 4) {
              await world.play([{ hundredths: 150, roundId: String(index), late: true, source: "computed" }], id);
            }
          }
          await world.issue();
          if (scoredAfter[index] === true) await scoreOnly(world, stepwise);
          if (index === hourEndsAfter) for (const id of world.tableIds) await world.moveBack(2, id);
        }
        await world.score();
        await world.publish();
        const expected = inOrder(await replayOf(world, atOnce));
        expect(expected.map(([feature]) => feature)).toEqual(expect.arrayContaining(["next_color", "window:blue:50"]));
        expect(inOrder(await sumsOf(world, atOnce))).toEqual(expected);
        expect(inOrder(await sumsOf(world, stepwise))).toEqual(expected);
        for (const id of world.tableIds) expect(inOrder(await publishedOf(world, id))).toEqual(expected);
        expect(await withoutNames(world, stepwise)).toEqual(await withoutNames(world, atOnce));
      }),
      { numRuns: 2 },
    );
  });

  test("are scored on exactly the forecasts that ours were scored on, against the same baseline", async () => {
    const world = await createWorld();
    for (const { hundredths } of generatedRounds(8)) await world.turn(hundredths);
    for (const { sums, references } of await hoursOf(world, world.tableId)) {
      const { counts } = sums as { counts: Record<string, string> };
      for (const own of Object.values(referenceSumsToJson(referenceSumsFromJson(references)))) {
        expect(own).toMatchObject({ n: counts["n"], sum_ll_base: counts["sum_ll_base"] });
      }
    }
  });

  test("follow a void, in a revision of a final hour that leaves the one before as it was", async () => {
    const world = await createWorld();
    for (const { hundredths } of generatedRounds(8)) await world.turn(hundredths);
    await world.score();
    await world.moveBack(3);
    await world.play([150]);
    await world.score();
    const nextColors = async () =>
      (await hoursOf(world, world.tableId)).filter(({ feature, final }) => feature === "next_color" && final);
    const before = await nextColors();
    await saveConflict(world.sql, world.tableId, "1007");
    await world.score();
    const after = await nextColors();
    // two hours where one ended while these rounds were played
    expect(after).toHaveLength(before.length + 1);
    expect(after).toEqual(expect.arrayContaining(before));
    const second = after.find(({ rev }) => rev === 2);
    const first = before.find(({ hour }) => hour === second?.hour);
    const n = (row: HourRow | undefined) => referenceSumsFromJson(row?.references).due.n;
    expect(n(second)).toBe(n(first) - 1n);
    expect(inOrder(await sumsOf(world))).toEqual(inOrder(await replayOf(world, world.tableId)));
  });

  test("are not written again where nothing was scored", async () => {
    const world = await createWorld();
    for (const { hundredths } of generatedRounds(6)) await world.turn(hundredths);
    await world.play([150]);
    await world.score();
    const before = await hoursOf(world, world.tableId);
    await world.sql`delete from accuracy_marks where table_id = ${world.tableId}`;
    await world.score();
    expect(await hoursOf(world, world.tableId)).toEqual(before);
  });
});

describe("a mark", () => {
  /** A table with 150 rounds before its first forecasts, so that marks are worth keeping. */
  async function longWorld(): Promise<World> {
    const world = await createWorld();
    await world.play(generatedRounds(150).map(({ hundredths }) => ({ hundredths, source: "import" })));
    for (const { hundredths } of generatedRounds(4)) await world.turn(hundredths);
    await world.score();
    return world;
  }

  const startOver = (world: World) => world.sql`
    update accuracy_hours
    set reference_sums = '{}'
    where table_id = ${world.tableId}
      and feature = 'next_color'`;

  test("is kept where an hour begins, and is made again the same where it is missing or damaged", async () => {
    const world = await longWorld();
    const marks = await marksOf(world, world.tableId);
    expect(marks.map(({ seq }) => seq)).toEqual([151]);
    const sums = await sumsOf(world);
    for (const spoil of ["delete from reference_marks", "update reference_marks set memory = '{}'"]) {
      await startOver(world);
      await world.sql.unsafe(`${spoil} where table_id = ${world.tableId}`);
      await world.sql`delete from accuracy_marks where table_id = ${world.tableId}`;
      await world.score();
      await world.turn(150);
      await world.score();
      expect(await marksOf(world, world.tableId)).toEqual(marks);
    }
    expect(inOrder(await sumsOf(world))).toEqual(inOrder(await replayOf(world, world.tableId)));
    expect(sums.size).toBeGreaterThan(0);
  });

  test("is left every ten thousand rounds of an imported history, each kept at once", async () => {
    const world = await createWorld();
    const rounds = generatedRounds(20_050).map(({ hundredths }) => ({ hundredths, source: "import" as const }));
    for (let from = 0; from < rounds.length; from += 5000) await world.play(rounds.slice(from, from + 5000));
    const { sql, tableId } = world;
    await catchUpReferences(sql, [tableId], new AbortController().signal);
    const marks = await marksOf(world, tableId);
    expect(marks.map(({ seq }) => seq)).toEqual([10_000, 20_000]);
    expect(await failureOf(world)).toBeNull();
    await sql`delete from reference_marks where table_id = ${tableId} and seq > 10000`;
    await expect(catchUpReferences(sql, [tableId], AbortSignal.abort())).rejects.toThrow();
    await catchUpReferences(sql, [tableId], new AbortController().signal);
    expect(await marksOf(world, tableId)).toEqual(marks);
  });

  test("that says something untrue is named by verify, as is one beyond the last round", async () => {
    const world = await longWorld();
    const { sql, tableId, tableName } = world;
    await expect(failureOf(world)).resolves.toBeNull();
    await sql`
      update reference_marks
      set memory = jsonb_set(memory, '{recent,7}', to_jsonb((memory #> '{recent,7}')::integer + 1))
      where table_id = ${tableId}`;
    expect(await failureOf(world)).toMatchObject({ kind: "reference_mark", id: `${tableName} seq 151` });
    await sql`update reference_marks set memory = '{}' where table_id = ${tableId}`;
    expect(await failureOf(world)).toMatchObject({ kind: "reference_mark", id: `${tableName} seq 151` });
    await sql`update reference_marks set seq = 4000 where table_id = ${tableId}`;
    expect(await failureOf(world)).toMatchObject({ kind: "reference_mark", id: `${tableName} seq 4000` });
    await sql`delete from reference_marks where table_id = ${tableId}`;
    expect(await failureOf(world)).toBeNull();
  });
});

describe("verify", () => {
  test("names the hour or the period in which one digit of a reference is another", async () => {
    const world = await createWorld();
    for (const { hundredths } of generatedRounds(8)) await world.turn(hundredths);
    await world.score();
    await world.publish();
    const { sql, tableId, tableName } = world;
    await expect(failureOf(world)).resolves.toBeNull();
    const [hour] = await hoursOf(world, tableId);
    const own = referenceSumsToJson(referenceSumsFromJson(hour?.references));
    const fields = [
      ...Object.keys(own["last_20"] ?? {}).map((field) => ["last_20", field]),
      ["last_100", "n"],
      ["due", "sum_ll"],
    ];
    expect(fields).toHaveLength(11);
    for (const [relation, what, kind] of [
      ["accuracy_hours", "true", "references"],
      ["published_accuracy", "period = '7d'", "published_references"],
    ] as const) {
      const where = `table_id = ${tableId} and feature = 'next_color' and ${what}`;
      for (const [name, field] of kind === "references" ? fields : fields.slice(8)) {
        const add = (more: number) =>
          sql.unsafe(
            `update ${relation} set reference_sums = jsonb_set(reference_sums, '{${name},${field}}',
               to_jsonb(((reference_sums #>> '{${name},${field}}')::numeric + ${more})::text)) where ${where}`,
          );
        await add(1);
        const failure = await failureOf(world);
        expect(failure).toMatchObject({ kind, expected: expect.stringContaining(`${name} ${field} `) as string });
        expect(failure?.id.startsWith(`${tableName} k7@1 next_color `)).toBe(true);
        await add(-1);
      }
      await sql.unsafe(`update ${relation} set reference_sums = '{}' where ${where}`);
      expect(await failureOf(world)).toMatchObject({ kind });
      await world.sql`delete from accuracy_marks where table_id = ${tableId}`;
      await world.score();
    }
  });
});

async function failureOf({ sql, tableId }: World) {
  return (await verify(sql, { tableId })).first_failure;
}

/** Scores a table, the others being left for later. */
async function scoreOnly(world: World, tableId: number): Promise<void> {
  const others = world.tableIds.filter((id) => id !== tableId);
  await world.sql`update tables set first_forecast_at = null where id = any(${others}::integer[])`;
  await world.score();
  await world.sql`
    update tables
    set first_forecast_at = clock_timestamp()
    where id = any(${others}::integer[])
      and first_forecast_after_seq is not null`;
}
