import { describe, expect, test } from "vitest";
import { listHousesToScore } from "../../../src/forecasts/score/tables-to-score-store.ts";
import { scoreWindow } from "../../../src/forecasts/score/scoring.ts";
import { sumsFromJson } from "../../../src/forecasts/accuracy/sums-json.ts";
import { verify } from "../../../src/forecasts/verify/verify.ts";
import { generatedRounds } from "../streams.ts";
import { createWorld, saveConflict, type World } from "../world.ts";

interface ScoreRow {
  rev: number;
  status: string;
  settled: number;
  outcome: number | null;
}

function scoresOf({ sql, tableId }: World, feature: string): Promise<ScoreRow[]> {
  return sql<ScoreRow[]>`
    select rev, status, settled_seq::integer as settled, outcome
    from scores
    where table_id = ${tableId}
      and feature = ${feature}
    order by forecast_seq, rev`;
}

async function countsOf({ sql, tableId }: World, feature: string): Promise<Record<string, number>> {
  const [row] = await sql<{ sums: unknown }[]>`
    select sums
    from accuracy_hours
    where table_id = ${tableId}
      and feature = ${feature}
    order by hour desc, rev desc
    limit 1`;
  const { forecasts, n, hits, pending, voidGap, voidLate, voidQuarantine, onTimeRounds, notIssued } = sumsFromJson(
    row?.sums,
  );
  const counts = { forecasts, n, hits, pending, voidGap, voidLate, voidQuarantine, onTimeRounds, notIssued };
  return Object.fromEntries(Object.entries(counts).map(([name, value]) => [name, Number(value)]));
}

/** A table with windows that follow its second round; that of purple at 80 % speaks of 4 rounds. */
async function withWindows(options: Parameters<typeof createWorld>[0] = {}): Promise<World> {
  const world = await createWorld(options);
  await world.play([{ hundredths: 150, roundId: "1001", afterGap: false }]);
  await world.play([{ hundredths: 150, roundId: "1002", afterGap: false }]);
  await world.issue();
  const [row] = await world.sql`
    select horizon
    from forecasts
    where table_id = ${world.tableId}
      and feature = ${PURPLE}`;
  expect(row).toEqual({ horizon: 4 });
  return world;
}

const PURPLE = "window:purple:80";

describe("a window is judged", () => {
  test("at its nominal end, also where it hit early, and is pending until then", async () => {
    const world = await withWindows();
    for (const hundredths of [300, 150, 150]) {
      await world.play([hundredths]);
      await world.score();
      expect(await scoresOf(world, PURPLE)).toEqual([]);
      expect(await countsOf(world, PURPLE)).toMatchObject({ forecasts: 1, n: 0, pending: 1 });
    }
    await world.play([150]);
    await world.score();
    expect(await scoresOf(world, PURPLE)).toEqual([{ rev: 1, status: "scored", settled: 6, outcome: 1 }]);
    expect(await scoresOf(world, "window:blue:80")).toMatchObject([{ status: "scored", settled: 5, outcome: 1 }]);
    expect(await countsOf(world, PURPLE)).toMatchObject({ forecasts: 1, n: 1, hits: 1, pending: 0, onTimeRounds: 0 });
  });

  test("by all rounds of its span and no other, whatever is taken in late between them", async () => {
    const world = await withWindows();
    await world.play([{ hundredths: 300, roundId: "5", late: true, source: "computed" }]);
    await world.play([150, 1500]);
    await world.play([{ hundredths: 300, roundId: "6", late: true, source: "computed" }]);
    await world.play([150, 150, 300]);
    await world.score();
    expect(await scoresOf(world, PURPLE)).toEqual([{ rev: 1, status: "scored", settled: 8, outcome: 0 }]);
  });

  test("with every figure that the scoring rules give, in sums of its own without coverage", async () => {
    const world = await createWorld();
    for (const { hundredths } of generatedRounds(40)) await world.turn(hundredths);
    const rows = await world.sql<{ p: number; base: number; outcome: number; score: Record<string, unknown> }[]>`
      select f.p_ppm[1] as p, f.base_ppm[1] as base, s.outcome, to_jsonb(s) as score
      from forecasts f
      join scores s on s.table_id = f.table_id and s.forecast_seq = f.seq
      where f.table_id = ${world.tableId}
        and f.feature like 'window:%'`;
    expect(new Set(rows.map(({ outcome }) => outcome))).toEqual(new Set([0, 1]));
    for (const { p, base, outcome, score } of rows) {
      const { brier, brierBase, ll, llBase } = scoreWindow(p, base, outcome === 1);
      expect(score).toMatchObject({ hit: outcome === 1, p, base_p: base, rps: brier, rps_base: brierBase });
      expect(score).toMatchObject({ brier, brier_base: brierBase, ll, ll_base: llBase });
    }
    await world.play([150]);
    await world.score();
    const counts = await countsOf(world, PURPLE);
    expect(counts).toMatchObject({ forecasts: (counts["n"] ?? 0) + 1, pending: 1, onTimeRounds: 0, notIssued: 0 });
    expect(counts["hits"]).toBe((await scoresOf(world, PURPLE)).filter(({ outcome }) => outcome === 1).length);
  });
});

describe("a window is void", () => {
  test.each([
    ["void_gap", { hundredths: 150, roundId: "1009" }],
    ["void_late", { hundredths: 150, requestedAgo: 60, absentAgo: 61 }],
  ])("at once and for good by %s in its span, even if it had hit", async (status, fault) => {
    const world = await withWindows();
    await world.play([300, fault]);
    await world.score();
    expect(await scoresOf(world, PURPLE)).toEqual([{ rev: 1, status, settled: 4, outcome: null }]);
    await world.play([150, 150, 150]);
    await saveConflict(world.sql, world.tableId, "1003");
    await world.score();
    expect(await scoresOf(world, PURPLE)).toEqual([{ rev: 1, status, settled: 4, outcome: null }]);
    const name = status === "void_gap" ? "voidGap" : "voidLate";
    expect(await countsOf(world, PURPLE)).toMatchObject({ forecasts: 1, n: 0, hits: 0, pending: 0, [name]: 1 });
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
  });

  test("by a gap where ids tell nothing", async () => {
    const world = await withWindows({ tables: [{ round_ids: "opaque" }] });
    await world.play([{ hundredths: 300, roundId: "a", afterGap: false }]);
    await world.play([{ hundredths: 150, roundId: "b", afterGap: true }]);
    await world.score();
    expect(await scoresOf(world, PURPLE)).toEqual([{ rev: 1, status: "void_gap", settled: 4, outcome: null }]);
  });

  test("by a second result for a round of its span, while it is open", async () => {
    const world = await withWindows();
    await world.play([150, 300]);
    await world.score();
    await saveConflict(world.sql, world.tableId, "1003");
    await world.score();
    expect(await scoresOf(world, PURPLE)).toEqual([{ rev: 1, status: "void_quarantine", settled: 3, outcome: null }]);
    await world.issue();
    await world.play([150]);
    await world.score();
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
  });

  test.each(["1003", "1004", "1006"])(
    "by a second result for any round of its span after it was scored: %s",
    async (id) => {
      const world = await withWindows();
      await world.play([150, 300, 150, 150]);
      await world.issue();
      await world.play([300, 150, 300, 150, 150]);
      await world.score();
      await saveConflict(world.sql, world.tableId, id);
      await world.score();
      expect(await scoresOf(world, PURPLE)).toEqual([
        { rev: 1, status: "scored", settled: 6, outcome: 1 },
        { rev: 2, status: "void_quarantine", settled: 6, outcome: null },
        { rev: 1, status: "scored", settled: expect.any(Number), outcome: 1 }, // the next one is not touched
      ]);
      expect(await countsOf(world, PURPLE)).toMatchObject({ n: 1, hits: 1, voidQuarantine: 1, pending: 0 });
      expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
    },
  );

  test("and stays scored where the second result is for the round before it or after it", async () => {
    const world = await withWindows();
    await world.play([150, 300, 150, 150, 150]);
    await world.score();
    for (const id of ["1002", "1007"]) await saveConflict(world.sql, world.tableId, id);
    await world.score();
    expect(await scoresOf(world, PURPLE)).toMatchObject([{ rev: 1, status: "scored", settled: 6 }]);
  });
});

test("a window that waits keeps its hour from being final, and nobody from resting", async () => {
  const world = await withWindows();
  await world.play([150]);
  await world.score();
  await world.publish();
  await world.moveBack(3);
  await world.play([150]);
  await world.score();
  await world.publish();
  const rows = await world.sql<{ feature: string; final: boolean }[]>`
    select distinct on (feature) feature, final
    from accuracy_hours
    where table_id = ${world.tableId}
      and hour < now() - interval '2 hours'
    order by feature, rev desc`;
  const finals = Object.fromEntries(rows.map(({ feature, final }) => [feature, final]));
  expect(finals).toMatchObject({ next_color: true, "window:blue:50": true });
  expect(finals[PURPLE]).toBe(false);
  const houses = await listHousesToScore(world.sql);
  expect(houses.some(({ house }) => house === world.house)).toBe(false);
});

describe("verify", () => {
  test("names a window that was issued before the one before it had ended, with a chain that fits", async () => {
    const world = await createWorld({ ownDatabase: true });
    const playAndIssue = async () => {
      await world.play([150]);
      await world.issue();
    };
    for (let n = 0; n < 3; n++) await playAndIssue();
    // an issuer whose trigger is off and who does not wait
    await world.sql`alter table forecasts disable trigger user`;
    await world.sql`alter function window_span rename to true_window_span`;
    await world.sql.unsafe(`
      create function window_span(integer, bigint, text, integer, timestamptz, text, boolean) returns table (
        status text, settled_seq bigint, seen integer, hit boolean, requested_at timestamptz
      ) language sql as $$ select 'complete'::text, $2, 0, false, now() $$`);
    await playAndIssue();
    await world.sql`drop function window_span`;
    await world.sql`alter function true_window_span rename to window_span`;
    const [first] = await world.sql<{ id: string; before: string }[]>`
      select forecast_id as id
      from forecasts
      where table_id = ${world.tableId}
        and cutoff_seq = 4
        and feature like 'window:%'
        and horizon > 1
      order by seq
      limit 1`;
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({
      ok: false,
      first_failure: {
        kind: "forecast",
        id: first?.id,
        expected: expect.stringMatching(/^a window issued after the end of f\d+-\d+$/),
        found: "one after seq 4",
      },
    });
  });
});
