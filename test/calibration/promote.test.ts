import { describe, expect, test } from "vitest";
import { listPublished } from "../../src/forecasts/accuracy/published-store.ts";
import { runRollingCalibration } from "../../src/calibration/calibrate.ts";
import { findCalibration, listCalibrations } from "../../src/calibration/calibration-store.ts";
import { compareCalibrations } from "../../src/calibration/compare.ts";
import { requestManualRun } from "../../src/calibration/manual-request.ts";
import { runManualCalibration } from "../../src/calibration/manual-calibration.ts";
import { createModel } from "../../src/forecasts/model/model.ts";
import { listTableModels } from "../../src/forecasts/model/models-store.ts";
import { namedParameters, valuesOf } from "../../src/forecasts/model/parameter-set.ts";
import { K7_1, type Parameters } from "../../src/forecasts/model/parameters.ts";
import { promoteCalibration } from "../../src/calibration/promote.ts";
import { encodeState, stateHash } from "../../src/forecasts/model/state.ts";
import { verify } from "../../src/verify/verify.ts";
import { colorOf, type Color } from "../../src/rounds/colors.ts";
import { generatedRounds, stateAfter } from "../forecasts/streams.ts";
import { createWorld, type World } from "../forecasts/world.ts";
import { lockWaits } from "../support/lock-waits.ts";

const never = new AbortController().signal;
const DECISION = { by: "ann", reason: "the edge changed" };
const other = namedParameters({ ...valuesOf(K7_1), share: 1e-3, recentPrior: 40 });
/** Ids skip one where rounds are missing. */
const rounds = generatedRounds(3000).map((round, i) => ({ ...round, roundId: idOf(i) }));

function idOf(index: number): string {
  return String(10_000 + index + Math.floor((index + 1) / 137));
}

/** The names of the table's first model, and of one of other parameters. */
const { name: K7 } = createModel({ thresholds: [200, 1000], edge: 0.01 });
const { name: OTHER } = createModel({ thresholds: [200, 1000], edge: 0.01, parameters: other });

interface Asked {
  from?: string;
  to?: string;
  parameters?: Parameters;
  thresholds?: number[];
}

async function calibrate(world: World, { from, to, parameters = K7_1, thresholds }: Asked = {}): Promise<string> {
  const { sql, tableId, tableName: table } = world;
  const range = { from, to, parameters, thresholds: thresholds ?? null, outFile: null };
  const run = await requestManualRun(sql, { tableId, table, ...range });
  return (await runManualCalibration(sql, run, { signal: never })).calibration_id;
}

async function roll(world: World) {
  const [row] = await world.sql<{ run: string }[]>`
    insert into calibration_runs (table_id, kind, model)
    select table_id, 'rolling', model
    from table_heads
    where table_id = ${world.tableId}
    returning id::text as run`;
  return runRollingCalibration(world.sql, row?.run ?? "", never);
}

async function liveOf({ sql, tableId }: World) {
  const [row] = await sql<{ model: string; learnedSeq: bigint; stateHash: string; state: Buffer }[]>`
    select h.model, s.seq as "learnedSeq", encode(s.state_hash, 'hex') as "stateHash", s.state
    from table_heads h
    join model_snapshots s on s.table_id = h.table_id and s.model = h.model
    where h.table_id = ${tableId}`;
  if (row === undefined) throw new Error("expected a live state");
  return row;
}

function openWindows({ sql, tableId }: World, model: string) {
  return sql<{ seq: bigint; feature: string; cutoff: number; horizon: number }[]>`
    select seq, feature, cutoff_seq::integer as cutoff, horizon
    from open_forecasts
    where table_id = ${tableId}
      and model = ${model}
      and feature like 'window:%'
    order by seq`;
}

/** The state after the rounds from one index to another, from nothing. */
function hashOf(parameters: Parameters, from: number, to: number): string {
  const model = createModel({ thresholds: [200, 1000], edge: 0.01, parameters });
  return stateHash(encodeState(model, stateAfter(model, rounds.slice(from, to))));
}

describe("a promotion", () => {
  test("learns up to the newest round and becomes live, with author, time and reason; rolling runs continue from it", async () => {
    const world = await createWorld();
    await world.play(rounds.slice(0, 300));
    const id = await calibrate(world, { from: idOf(100), to: idOf(199) });
    await world.play(rounds.slice(300, 1600));
    const before = await findCalibration(world.sql, id);
    const promoted = await promoteCalibration(world.sql, id, DECISION);
    const live = await liveOf(world);
    expect(live).toMatchObject({ model: K7, learnedSeq: 1600n, stateHash: hashOf(K7_1, 100, 1600) });
    expect(promoted).toMatchObject({ ...DECISION, promoted_from: id, rounds: 1500, state_hash: live.stateHash });
    expect(await findCalibration(world.sql, promoted.calibration_id)).toMatchObject({
      kind: "promoted",
      beginSeq: 101n,
      toSeq: 1600n,
      promotion: { from: id, ...DECISION },
    });
    expect(await findCalibration(world.sql, id)).toEqual(before);
    await world.play(rounds.slice(1600, 1700));
    expect(await roll(world)).toMatchObject({ rounds: 100, isMet: true, live: hashOf(K7_1, 100, 1700) });
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true, first_failure: null });
  });

  test("during ingestion loses no round", async () => {
    const world = await createWorld({ connections: 6 });
    await world.play(rounds.slice(0, 200));
    const id = await calibrate(world, { from: idOf(50) });
    let at = 200;
    let isDone = false;
    const ingestion = (async () => {
      while (!isDone || at < 500) {
        await world.play(rounds.slice(at, at + 20));
        at += 20;
      }
    })();
    const promoted = await promoteCalibration(world.sql, id, DECISION);
    isDone = true;
    await ingestion;
    expect(Number(promoted.to_seq)).toBeGreaterThanOrEqual(200);
    const { learnedSeq, stateHash: live } = await liveOf(world);
    expect(live).toBe(hashOf(K7_1, 50, Number(learnedSeq)));
    expect(await roll(world)).toMatchObject({ isMet: true });
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true, first_failure: null });
  });

  test("of another model lets open windows end as issued, and opens its own next to them", async () => {
    const world = await createWorld();
    await world.play(rounds.slice(0, 100));
    await world.play(
      rounds.slice(100, 110).map(({ hundredths }) => hundredths),
      world.tableId,
      { atOnce: 1 },
    );
    const id = await calibrate(world, { parameters: other });
    await promoteCalibration(world.sql, id, DECISION);
    const underWay = await openWindows(world, K7);
    expect(underWay.length).toBeGreaterThan(2);
    await world.play([rounds[110]?.hundredths ?? 0]);
    const own = await openWindows(world, OTHER);
    expect(own.length).toBeGreaterThan(2);
    expect(own.every(({ cutoff }) => cutoff === 111)).toBe(true);

    const [table] = await world.sql<{ colors: Color[] }[]>`select colors from tables where id = ${world.tableId}`;
    const colors = table?.colors ?? [];
    const longest = Math.max(...underWay.map(({ cutoff, horizon }) => cutoff + horizon));
    await world.play(
      rounds.slice(111, longest).map(({ hundredths }) => hundredths),
      world.tableId,
      { atOnce: 1 },
    );
    const ended = await world.sql<{ feature: string; status: string; settled: number; hit: boolean }[]>`
      select f.feature, s.status, s.settled_seq::integer as settled, s.outcome = 1 as hit
      from scores s
      join forecasts f on f.table_id = s.table_id and f.cutoff_seq = s.cutoff_seq and f.seq = s.forecast_seq
      where s.table_id = ${world.tableId}
        and s.forecast_seq = any(${underWay.map(({ seq }) => String(seq))}::bigint[])
      order by s.forecast_seq`;
    expect([...ended]).toEqual(
      underWay.map(({ feature, cutoff, horizon }) => ({
        feature,
        status: "scored",
        settled: cutoff + horizon,
        hit: rounds
          .slice(cutoff, cutoff + horizon)
          .some(({ hundredths }) => colorOf(hundredths, colors) === feature.split(":")[1]),
      })),
    );
    expect(await openWindows(world, K7)).toEqual([]);
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true, first_failure: null });
  });

  test("of another model issues under its name from then on, and both records stay visible", async () => {
    const world = await createWorld();
    await world.play(rounds.slice(0, 100));
    await world.play(
      rounds.slice(100, 110).map(({ hundredths }) => hundredths),
      world.tableId,
      { atOnce: 1 },
    );
    const id = await calibrate(world, { parameters: other });
    const promoted = await promoteCalibration(world.sql, id, DECISION);
    expect(promoted).toMatchObject({ model: OTHER, previous_model: K7, version: 2 });
    expect(await liveOf(world)).toMatchObject({ model: OTHER, stateHash: hashOf(other, 0, 110) });
    await world.play(
      rounds.slice(110, 174).map(({ hundredths }) => hundredths),
      world.tableId,
      { atOnce: 1 },
    );
    const models = await world.sql`
      select model, count(*)::integer as n, min(cutoff_seq)::integer as first
      from forecasts
      where table_id = ${world.tableId}
        and feature = 'next_color'
      group by model
      order by first`;
    expect(models).toEqual([
      { model: K7, n: 10, first: 101 },
      { model: OTHER, n: 64, first: 111 },
    ]);
    await world.add();
    const { rows: shown } = await listPublished(world.sql, {
      tableIds: [world.tableId],
      periods: ["all"],
      feature: "next_color",
    });
    expect(shown.map(({ model, sums }) => [model, sums.forecasts, sums.notIssued])).toEqual([
      [K7, 10n, 0n],
      [OTHER, 64n, 0n],
    ]);
    expect(await roll(world)).toMatchObject({ rounds: 64, isMet: true });
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true, first_failure: null });

    // and back again: its own record goes on where it is promoted
    await promoteCalibration(world.sql, await calibrate(world), DECISION);
    await world.play(rounds.slice(174, 238));
    expect(await liveOf(world)).toMatchObject({ model: K7, learnedSeq: 238n });
    expect(await roll(world)).toMatchObject({ isMet: true });
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true, first_failure: null });
  });

  test("with another declared edge is another model, with a notice and a separate record, even if the edge is reverted", async () => {
    const world = await createWorld();
    const declare = (edge: number) => world.sql`
      update tables
      set settings = settings || jsonb_build_object('house_edge', ${edge}::float8)
      where id = ${world.tableId}`;
    await world.play(rounds.slice(0, 100));
    await world.play(
      rounds.slice(100, 110).map(({ hundredths }) => hundredths),
      world.tableId,
      { atOnce: 1 },
    );
    const { name: HALF } = createModel({ thresholds: [200, 1000], edge: 0.5 });
    await declare(0.5);
    await promoteCalibration(world.sql, await calibrate(world), DECISION);
    await declare(0.01);
    await world.play(
      rounds.slice(110, 150).map(({ hundredths }) => hundredths),
      world.tableId,
      { atOnce: 1 },
    );
    await world.add();
    const { rows: shown } = await listPublished(world.sql, {
      tableIds: [world.tableId],
      periods: ["all"],
      feature: "next_color",
    });
    expect(shown.map(({ model, sums }) => [model, sums.forecasts])).toEqual([
      [K7, 10n],
      [HALF, 40n],
    ]);
    const notices = await world.sql`
      select kind, text from notices where table_id = ${world.tableId} and closed_at is null`;
    expect(notices).toEqual([{ kind: "model", text: expect.stringContaining(`the model ${HALF} instead of ${K7}`) }]);
    expect(await listTableModels(world.sql, world.tableId)).toMatchObject([
      { model: HALF, edge: 0.5 },
      { model: K7, edge: 0.01 },
    ]);
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
    await world.sql`update models set edge = 0.01 where name = ${HALF}`;
    expect((await verify(world.sql, { tableId: world.tableId })).first_failure).toMatchObject({
      kind: "model",
      id: HALF,
    });
    await world.sql`update models set edge = 0.5 where name = ${HALF}`;
  });

  test("calls off a rolling run that ends at the same time", async () => {
    const world = await createWorld({ connections: 6 });
    await world.play(rounds.slice(0, 200));
    const id = await calibrate(world, { from: idOf(50) });
    let rolled: ReturnType<typeof roll> | undefined;
    const check = async () => {
      rolled = roll(world);
      await lockWaits(world.sql, 1);
    };
    expect(await promoteCalibration(world.sql, id, DECISION, { check })).toMatchObject({ to_seq: "200" });
    expect(await rolled).toBeNull();
  });

  test("passes over late rounds, and calls off a rolling run that would prove the old state", async () => {
    const world = await createWorld();
    await world.play(rounds.slice(0, 200));
    const id = await calibrate(world, { from: idOf(150) });
    await world.addLate("import", [{ hundredths: 99_900, roundId: "1" }]);
    const [run] = await world.sql<{ id: string }[]>`
      insert into calibration_runs (table_id, kind, model, status, heartbeat_at)
      values (${world.tableId}, 'rolling', ${K7}, 'running', clock_timestamp())
      returning id::text as id`;
    expect(await promoteCalibration(world.sql, id, DECISION)).toMatchObject({ to_seq: "200", rounds: 50 });
    expect(await liveOf(world)).toMatchObject({ learnedSeq: 201n, stateHash: hashOf(K7_1, 150, 200) });
    const [left] = await world.sql`select status from calibration_runs where id = ${run?.id ?? ""}`;
    expect(left).toEqual({ status: "cancelled" });
    expect(await roll(world)).toMatchObject({ isMet: true, rounds: 0 });
  });

  test("is refused if it cannot be live or was changed", async () => {
    const world = await createWorld();
    await world.play(rounds.slice(0, 200));
    await expect(promoteCalibration(world.sql, "999999", DECISION)).rejects.toThrow("there is no calibration 999999");
    const bands = await calibrate(world, { thresholds: [150, 1000] });
    await expect(promoteCalibration(world.sql, bands, DECISION)).rejects.toThrow("has other bands than");
    const changed = await calibrate(world);
    await world.sql`update calibrations set rounds = rounds + 1 where id = ${changed}`;
    await expect(promoteCalibration(world.sql, changed, DECISION)).rejects.toThrow("it was changed, calibrate again");
  });
});

describe("a comparison", () => {
  test("pairs the rounds that both cover", async () => {
    const world = await createWorld();
    await world.play(rounds.slice(0, 1500));
    const a = await calibrate(world, { to: idOf(1199) });
    const b = await calibrate(world, { from: idOf(300), parameters: other });
    const compared = await compareCalibrations(world.sql, [a, b]);
    expect(compared.paired).toMatchObject({ from_seq: 301, to_seq: 1200, rounds: 900 });
    const { a_log_loss, b_log_loss, difference, interval_95 } = compared.paired;
    expect(difference).toBeCloseTo(a_log_loss - b_log_loss, 9);
    expect(interval_95?.[0]).toBeLessThan(difference);
    expect(interval_95?.[1]).toBeGreaterThan(difference);
    const back = await compareCalibrations(world.sql, [b, a]);
    expect(back.paired.difference).toBeCloseTo(-difference, 12);
    const self = await compareCalibrations(world.sql, [a, a]);
    expect(self.paired).toMatchObject({ rounds: 1200, difference: 0, interval_95: [0, 0] });
    const own = compared.a.figures.find(({ feature }) => feature === "next_color")?.figures.log_loss ?? 0;
    expect(self.paired.a_log_loss).toBeCloseTo(own, 12);
  });

  test("is refused without common rounds, and detects a state that its rounds do not give", async () => {
    const world = await createWorld();
    await world.play(rounds.slice(0, 300));
    const a = await calibrate(world, { to: idOf(99) });
    const b = await calibrate(world, { from: idOf(100) });
    await expect(compareCalibrations(world.sql, [a, b])).rejects.toThrow(
      `calibrations ${a} and ${b} have no rounds in common: ${a} covers rounds ${idOf(0)} to ${idOf(99)}, ${b} covers rounds ${idOf(100)} to ${idOf(299)}`,
    );
    const bands = await calibrate(world, { thresholds: [150, 1000] });
    await expect(compareCalibrations(world.sql, [a, bands])).rejects.toThrow("have different colors");
    await expect(compareCalibrations(world.sql, [a, "999999"])).rejects.toThrow("there is no calibration 999999");
    const elsewhere = await createWorld();
    await elsewhere.play(rounds.slice(0, 10));
    const c = await calibrate(elsewhere);
    await expect(compareCalibrations(world.sql, [a, c])).rejects.toThrow("compare two of one table");
    await world.sql`
      update rounds
      set hundredths = 1500
      where table_id = ${world.tableId}
        and seq = (select min(seq) from rounds where table_id = ${world.tableId} and color = 0)`;
    await expect(compareCalibrations(world.sql, [a, a])).rejects.toThrow(`expected the rounds of calibration ${a}`);
  });
});

test("the records of a table are listed newest first, with kind and range", async () => {
  const world = await createWorld();
  await world.play(rounds.slice(0, 100));
  await roll(world);
  await promoteCalibration(world.sql, await calibrate(world, { from: idOf(10) }), DECISION);
  const rows = await listCalibrations(world.sql, { tableId: world.tableId, limit: 10 });
  expect(rows.map(({ kind, version, fromRoundId, toRoundId }) => [kind, version, fromRoundId, toRoundId])).toEqual([
    ["promoted", 3, idOf(10), idOf(99)],
    ["manual", 2, idOf(10), idOf(99)],
    ["rolling", 1, idOf(0), idOf(99)],
  ]);
  expect(rows[1]?.compared).toMatchObject({ version: 1, n: "100" });
});
