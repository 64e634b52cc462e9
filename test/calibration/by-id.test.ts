import { describe, expect, test } from "vitest";
import { findRoundAt } from "../../src/calibration/backtest/range-store.ts";
import { compareCalibrations } from "../../src/calibration/compare.ts";
import { requestManualRun, type ManualRequest } from "../../src/calibration/manual-request.ts";
import { runManualCalibration } from "../../src/calibration/manual-calibration.ts";
import { promoteCalibration } from "../../src/calibration/promote.ts";
import { emptyState } from "../../src/forecasts/model/k7.ts";
import { nested } from "../../src/db/nested.ts";
import { createModel } from "../../src/forecasts/model/model.ts";
import { K7_1 } from "../../src/forecasts/model/parameters.ts";
import { encodeState, stateHash } from "../../src/forecasts/model/state.ts";
import type { ExportedForecast } from "../../src/forecasts/chain/export-store.ts";
import { verify } from "../../src/verify/verify.ts";
import { resetNewestNumber } from "../../src/corrections/reset-newest.ts";
import { reviseRound } from "../../src/corrections/revision.ts";
import { plainLearn, plainProbabilities, plainTable, plainWindows } from "../bench/pipeline/straightforward-k7.ts";
import { generatedRounds, stateAfter, type Outcome } from "../forecasts/streams.ts";
import { createWorld, type World } from "../forecasts/world.ts";

const COUNT = 900;
const LIVE_FROM = 600;
const FIRST_ID = 5001;
const ROUNDS: Outcome[] = generatedRounds(COUNT).map(({ hundredths }) => ({ hundredths, afterGap: false }));
const COLORS = ["blue", "purple", "pink"];
const never = new AbortController().signal;
const idOf = (index: number) => String(FIRST_ID + index);
const model = createModel({ thresholds: [200, 1000], edge: 0.01 });
const hashAfter = (rounds: readonly Outcome[]) =>
  stateHash(encodeState(model, stateAfter(model, rounds, emptyState(model))));

/** A table that went live at round 600 and got what was before it by import, without the rounds of these indexes. */
async function liveWorld({ without = [] }: { without?: readonly number[] } = {}): Promise<World> {
  const world = await createWorld();
  const named = ROUNDS.map(({ hundredths }, index) => ({ hundredths, roundId: idOf(index), index }));
  await world.play(named.slice(LIVE_FROM).map(({ hundredths, roundId }) => ({ hundredths, roundId })));
  const history = named.slice(0, LIVE_FROM).filter(({ index }) => !without.includes(index));
  // the order of an import says nothing
  await world.addLate(
    "import",
    history.toReversed().map(({ hundredths, roundId }) => ({ hundredths, roundId })),
  );
  return world;
}

function ask(world: World, given: Partial<ManualRequest> = {}): Promise<string> {
  return requestManualRun(world.sql, {
    tableId: world.tableId,
    table: world.tableName,
    from: undefined,
    to: undefined,
    parameters: K7_1,
    thresholds: null,
    outFile: null,
    ...given,
  });
}

const run = (world: World, id: string, roundsPerChunk = 100) =>
  runManualCalibration(world.sql, id, { signal: never, steps: { roundsPerChunk, roundsPerCheckpoint: 200 } });

describe("a replay of history that was imported into a live table", () => {
  test("follows round ids, equals the reference model, reports which rounds were late, and does not change the live state", async () => {
    const world = await liveWorld();
    const state = () => world.sql`select * from model_snapshots where table_id = ${world.tableId}`;
    const before = await state();
    expect(await run(world, await ask(world))).toMatchObject({
      from: idOf(0),
      to: idOf(COUNT - 1),
      order: "round",
      rounds: COUNT,
      late_rounds: LIVE_FROM,
      late: [{ from: idOf(0), to: idOf(LIVE_FROM - 1) }],
      state_hash: hashAfter(ROUNDS),
    });
    for (const [from, to] of [
      [0, 99],
      [250, 599],
      [550, 650],
    ] as const) {
      const result = await run(world, await ask(world, { from: idOf(from), to: idOf(to) }), 37);
      expect(result).toMatchObject({
        rounds: to - from + 1,
        late_rounds: Math.min(to, LIVE_FROM - 1) - from + 1,
        state_hash: hashAfter(ROUNDS.slice(from, to + 1)),
      });
    }
    expect(await state()).toEqual(before);
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
  });

  test.each([
    { claim: "all rounds", given: {} },
    { claim: "the rounds after a time", given: { from: "2020-01-01" } },
    { claim: "the on-time rounds up to a time", given: { replayOrder: "taken", to: "2120-01-01" } as const },
  ])("is requested of $claim without reading the table", async ({ given }) => {
    const world = await liveWorld();
    await world.sql`analyze rounds`;
    const read = await world.sql.begin(async (tx) => {
      await tx`select set_config(name, 'off', true) from unnest('{enable_seqscan,enable_bitmapscan}'::text[]) as name`;
      const count = async () => {
        const [row] = await tx<{ read: number }[]>`
          select (seq_tup_read + idx_tup_fetch)::integer as read from pg_stat_xact_user_tables where relname = 'rounds'`;
        return row?.read ?? 0;
      };
      const before = await count();
      await ask({ ...world, sql: nested(tx) }, given);
      return (await count()) - before;
    });
    expect(read).toBeGreaterThan(1);
    expect(read).toBeLessThan(50);
  });

  test("is requested of the on-time rounds between two times, whatever the times of the late ones among them", async () => {
    const world = await createWorld();
    await world.play([200]);
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`delete from rounds where table_id = ${world.tableId}`;
      // 1,000 rounds one a minute, 500 late ones from minutes 100 to 200, and 500 more of a minute each
      await tx`
        insert into rounds
          (table_id, seq, ordinal, hundredths, received_at, palette, color, source, after_gap, late, round_id, raw_value, history_hash)
        select
          ${world.tableId}, n, case when n <= 1000 then n when n > 1500 then n - 500 end, 200,
          '2026-01-01Z'::timestamptz
            + case when n <= 1000 then n when n <= 1500 then 100 + (n - 1000) / 5 else n - 500 end * interval '1 minute',
          1, 0, 3, false, n between 1001 and 1500, n::text, '2', sha256('')
        from generate_series(1, 2000) n`;
      await tx`update table_heads set newest_seq = 2000, last_seq = 2000 where table_id = ${world.tableId}`;
    });
    for (const [minute, seq] of [
      [50, 50],
      [150, 150],
      [300, 300],
      [600, 600],
      [999, 999],
      [1001, 1501],
      [1200, 1700],
    ]) {
      for (const end of ["from", "to"] as const) {
        const at = new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
        const found = await findRoundAt(world.sql, world.tableId, { at, end });
        expect(found, `${end} minute ${minute}`).toMatchObject({ seq: BigInt(seq ?? 0), late: false });
      }
    }
    const find = (at: string, end: "from" | "to") => findRoundAt(world.sql, world.tableId, { at, end });
    expect(await find("2025-12-31", "to")).toBeNull();
    expect(await find("2025-12-31", "from")).toMatchObject({ seq: 1n });
    expect(await find("2026-01-01T16:40:30Z", "to")).toMatchObject({ seq: 1000n });
    expect(await find("2026-01-01T16:40:30Z", "from")).toMatchObject({ seq: 1501n });
    expect(await find("2026-02-01", "from")).toBeNull();
    expect(await find("2026-02-01", "to")).toMatchObject({ seq: 2000n });
  });

  test("forecasts each round as a plain port of the formulas does, and opens the windows that the port opens", async () => {
    const world = await liveWorld();
    const rows: ExportedForecast[] = [];
    const openFile = () =>
      Promise.resolve({
        write: (some: readonly ExportedForecast[]) => Promise.resolve(void rows.push(...some)),
        mark: () => Promise.resolve(rows.length),
        finish: () => Promise.resolve(),
        close: () => Promise.resolve(),
      });
    const [from, to] = [120, 720];
    const id = await ask(world, { from: idOf(from), to: idOf(to), outFile: "in memory" });
    await runManualCalibration(world.sql, id, {
      signal: never,
      openFile,
      steps: { roundsPerChunk: 64, roundsPerCheckpoint: 128 },
    });
    const byCutoff = Map.groupBy(rows, ({ cutoff_round_id: cutoff }) => cutoff);
    const plain = plainTable([200, 1000], 0.01);
    const openUntil = new Map<string, number>();
    let windows = 0;
    for (let index = from; index <= to; index++) {
      const { hundredths } = ROUNDS[index] ?? { hundredths: 0 };
      const color = hundredths < 200 ? 0 : hundredths < 1000 ? 1 : 2;
      const said = byCutoff.get(index === from ? "" : idOf(index - 1)) ?? [];
      const next = said.find(({ feature }) => feature === "next_color");
      const expected = plainProbabilities(plain).map((p) => p * 1e6);
      const found = next?.p_ppm.split("|").map(Number) ?? [];
      expect(found.length, `before round ${idOf(index)}`).toBe(3);
      for (const [k, ppm] of found.entries())
        expect(Math.abs(ppm - (expected[k] ?? 0)), `before round ${idOf(index)}`).toBeLessThan(1.5);
      expect([next?.target_round_id, next?.outcome]).toEqual([idOf(index), COLORS[color]]);
      for (const [k, name] of COLORS.entries()) {
        for (const [t, window] of plainWindows(plain, k).entries()) {
          const feature = `window:${name}:${[50, 80, 90][t]}`;
          const issued = said.find((row) => row.feature === feature);
          // the first line follows no round, and no window either
          const isOpen = (openUntil.get(feature) ?? -1) >= index;
          if (window === null || isOpen || index === from) {
            expect(issued, `${feature} before round ${idOf(index)}`).toBeUndefined();
            continue;
          }
          expect([issued?.horizon, issued?.p_ppm], `${feature} before round ${idOf(index)}`).toEqual([
            String(window.rounds),
            String(window.pPpm),
          ]);
          openUntil.set(feature, index + window.rounds - 1);
          windows += 1;
        }
      }
      plainLearn(plain, color, hundredths);
    }
    expect(windows).toBeGreaterThan(500);
  });

  test("continues after a gap if numbers are missing, also at the ends of chunks, and at a void round", async () => {
    const without = [99, 100, 101, 200, 350, 400];
    const world = await liveWorld({ without: without.slice(0, -1) });
    const decision = { to: null, by: "ann@example.com", reason: "the house said so" };
    await world.sql.begin((tx) => reviseRound(tx, { tableId: world.tableId, roundId: idOf(400) }, decision));
    const expected = hashAfter(
      ROUNDS.map((round, index) => ({ ...round, afterGap: without.includes(index - 1) })).filter(
        (_, index) => !without.includes(index),
      ),
    );
    for (const roundsPerChunk of [1, 7, 100, 5000])
      expect(await run(world, await ask(world), roundsPerChunk), `${roundsPerChunk} a chunk`).toMatchObject({
        rounds: COUNT - without.length,
        state_hash: expected,
        late: [
          { from: idOf(0), to: idOf(98) },
          { from: idOf(102), to: idOf(199) },
          { from: idOf(201), to: idOf(349) },
          { from: idOf(351), to: idOf(599) },
        ],
      });
  });

  test("includes what was known when it was requested, and resumes from where it was stopped", async () => {
    const world = await liveWorld({ without: [10] });
    const whole = await run(world, await ask(world));
    const id = await ask(world);
    await world.addLate("import", [{ hundredths: 777, roundId: idOf(10) }]);
    const stopped = new AbortController();
    const work = {
      signal: stopped.signal,
      steps: { roundsPerChunk: 100, roundsPerCheckpoint: 200 },
      progress: (done: number) => (done >= 300 ? stopped.abort(new Error("enough")) : undefined),
    };
    await expect(runManualCalibration(world.sql, id, work)).rejects.toThrow("enough");
    const resumed = await run(world, id);
    expect(resumed).toEqual({ ...whole, run_id: id, calibration_id: resumed.calibration_id });
  });

  test("is never promoted and not paired; without late rounds, or in the order taken, it is as before", async () => {
    const world = await liveWorld();
    const byId = await run(world, await ask(world));
    const decision = { by: "ann@example.com", reason: "to see it" };
    await expect(promoteCalibration(world.sql, byId.calibration_id, decision)).rejects.toThrow("600 of them late");
    const onTime = await run(world, await ask(world, { from: idOf(LIVE_FROM) }));
    expect(onTime).toMatchObject({ order: "taken", rounds: COUNT - LIVE_FROM, late_rounds: 0, late: [] });
    const taken = await run(world, await ask(world, { replayOrder: "taken" }));
    expect(taken).toEqual({ ...onTime, run_id: taken.run_id, calibration_id: taken.calibration_id });
    await expect(compareCalibrations(world.sql, [byId.calibration_id, taken.calibration_id])).rejects.toThrow(
      `calibration ${byId.calibration_id} replayed rounds by id`,
    );
    await promoteCalibration(world.sql, taken.calibration_id, decision);
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
  });

  test("ends at the newest round if a wrong newest number was reset, and can begin after it", async () => {
    const world = await createWorld();
    const named = ROUNDS.slice(0, 50).map(({ hundredths }, index) => ({ hundredths, roundId: idOf(index) }));
    await world.play(named.slice(0, 10));
    await world.play([{ hundredths: 150, roundId: idOf(200) }]);
    await world.play([{ hundredths: 150, roundId: idOf(201) }]);
    const to = BigInt(idOf(9));
    await world.sql.begin((tx) => resetNewestNumber(tx, world.tableId, { to, by: "ann", reason: "wrong" }));
    for (const round of named.slice(10)) await world.play([round]);
    const all = { from: idOf(0), to: idOf(49), order: "round", rounds: 50 };
    expect(await run(world, await ask(world))).toMatchObject(all);
    expect(await run(world, await ask(world, { from: idOf(20) }))).toMatchObject({
      ...all,
      from: idOf(20),
      rounds: 30,
    });
  });

  test("passes over a stretch of missing numbers of any length", async () => {
    const world = await createWorld();
    await world.play(ROUNDS.slice(0, 20).map(({ hundredths }, index) => ({ hundredths, roundId: idOf(index) })));
    await world.addLate("import", [{ hundredths: 150, roundId: "1732723200000" }]);
    const found = await run(world, await ask(world));
    expect(found).toMatchObject({ from: idOf(0), to: "1732723200000", rounds: 21, late_rounds: 1 });
  });

  test("is refused in an order that the table does not have", async () => {
    const world = await liveWorld();
    await expect(ask(world, { replayOrder: "taken", from: idOf(3) })).rejects.toThrow(
      "only a replay by round id includes",
    );
    await expect(ask(world, { from: idOf(9), to: idOf(3) })).rejects.toThrow(`is after round ${idOf(3)}`);
    const opaque = await createWorld({ tables: [{ round_ids: "opaque" }] });
    await opaque.play([{ hundredths: 200, roundId: "a" }]);
    await expect(ask(opaque, { replayOrder: "round" })).rejects.toThrow("are not consecutive numbers; use taken");
    expect(await run(opaque, await ask(opaque))).toMatchObject({ order: "taken", rounds: 1 });
  });
});
