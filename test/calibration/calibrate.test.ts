import { describe, expect, test } from "vitest";
import { runRollingCalibration, type ReplaySteps } from "../../src/calibration/calibrate.ts";
import { listCalibrations } from "../../src/calibration/calibration-store.ts";
import {
  beatRun,
  endRun,
  listHousesToCalibrate,
  listWaitingRuns,
  releaseRun,
  requestRollingRuns,
  takeRun,
} from "../../src/calibration/runs/rolling-run-store.ts";
import { advance } from "../../src/calibration/backtest/backtest.ts";
import { snapshotOf, startReplay, sumsOf } from "../../src/calibration/backtest/replay.ts";
import { emptySums } from "../../src/forecasts/accuracy/figures/sums.ts";
import { modelOf } from "../../src/forecasts/model/table-model.ts";
import { eventually } from "../support/eventually.ts";
import { generatedRounds, packedRounds } from "../forecasts/streams.ts";
import { createWorld, type World } from "../forecasts/world.ts";

const BANDS = [
  { name: "blue", below: 200 },
  { name: "purple", below: 1000 },
  { name: "pink", below: null },
];
/** Rounds after which there is another snapshot. */
const SOME = generatedRounds(64).map(({ hundredths }) => hundredths);
const never = new AbortController().signal;
const STEPS: ReplaySteps = { roundsPerChunk: 100, roundsPerCheckpoint: 100_000 };

/** What a replay of all rounds from an empty state gives. */
function fromScratch(count: number) {
  const table = { tableId: 0, bands: BANDS, hasOtherBands: false };
  const replay = startReplay(table, modelOf(BANDS, 0.01), 1n);
  advance(replay.backtest, packedRounds(replay.backtest.model, generatedRounds(count)));
  const { stateHash, sums, carry } = snapshotOf(replay);
  return { hash: stateHash, sums, carry };
}

/** Plays the rounds after the first `from` up to `to`, in answers of 100, and lets the model learn them. */
async function playTo(world: World, from: number, to: number): Promise<void> {
  const all = generatedRounds(to);
  for (let at = from; at < to; at += 100) {
    await world.play(all.slice(at, Math.min(at + 100, to)));
  }
}

async function ask(world: World): Promise<string> {
  const [run, ...others] = await requestRollingRuns(world.sql, world.house);
  if (run === undefined || others.length > 0) throw new Error("expected one run");
  return run.run;
}

async function askNow(world: World): Promise<string> {
  const [row] = await world.sql<{ run: string }[]>`
    insert into calibration_runs (table_id, kind, model)
    select table_id, 'rolling', model from table_heads where table_id = ${world.tableId}
    returning id::text as run`;
  return row?.run ?? "";
}

const calibrationsOf = (world: World) => listCalibrations(world.sql, { tableId: world.tableId, limit: 100 });

async function runOf(world: World, run: string): Promise<{ status: string; reason: string | null } | undefined> {
  const [row] = await world.sql<{ status: string; reason: string | null }[]>`
    select status, reason
    from calibration_runs
    where id = ${run}`;
  return row;
}

async function isWaiting(world: World, run: string): Promise<boolean> {
  return (await listWaitingRuns(world.sql)).some((one) => one.run === run);
}

async function isToCalibrate(world: World): Promise<boolean> {
  return (await listHousesToCalibrate(world.sql)).some(({ house }) => house === world.house);
}

describe("a rolling run is asked for", () => {
  test("after 1,000 rounds, once", async () => {
    const world = await createWorld();
    await playTo(world, 0, 999);
    expect(await requestRollingRuns(world.sql, world.house)).toEqual([]);
    expect(await isToCalibrate(world)).toBe(false);
    await world.play(SOME);
    expect(await isToCalibrate(world)).toBe(true);
    const asked = await Promise.all([1, 2, 3].map(() => requestRollingRuns(world.sql, world.house)));
    expect(asked.flat()).toHaveLength(1);
    expect(await isToCalibrate(world)).toBe(false);
    const run = asked.flat()[0]?.run ?? "";
    expect(await isWaiting(world, run)).toBe(true);
    expect(await runRollingCalibration(world.sql, run, never)).toMatchObject({ rounds: 1063, isMet: true });
    expect(await requestRollingRuns(world.sql, world.house)).toEqual([]);
    expect(await isWaiting(world, run)).toBe(false);
  });

  test("after a quarter of an hour if anything was learned", async () => {
    const world = await createWorld();
    await playTo(world, 0, 70);
    expect(await requestRollingRuns(world.sql, world.house)).toEqual([]);
    await world.sql`update tables set created_at = created_at - interval '16 minutes' where id = ${world.tableId}`;
    const run = await ask(world);
    await runRollingCalibration(world.sql, run, never);
    await world.play(SOME);
    expect(await requestRollingRuns(world.sql, world.house)).toEqual([]);
    await world.sql`
      update calibrations
      set created_at = created_at - interval '16 minutes'
      where table_id = ${world.tableId}`;
    await ask(world);
  });
});

describe("a replay", () => {
  test("from nothing and from each calibration on gives the live state, and the sums of one replay from scratch", async () => {
    const world = await createWorld();
    for (const [index, end] of [1000, 1300, 2600].entries()) {
      await playTo(world, [0, 1000, 1300][index] ?? 0, end);
      const result = await runRollingCalibration(world.sql, await askNow(world), never, STEPS);
      const expected = fromScratch(end);
      expect(result).toMatchObject({ version: index + 1, isMet: true, replayed: expected.hash, live: expected.hash });
      const [newest] = await calibrationsOf(world);
      expect(newest).toMatchObject({
        version: index + 1,
        toSeq: BigInt(end),
        rounds: BigInt(end),
        stateHash: expected.hash,
        liveStateHash: expected.hash,
        sums: expected.sums,
        carry: expected.carry,
      });
    }
    expect((await calibrationsOf(world)).map(({ fromSeq, toSeq }) => [fromSeq, toSeq])).toEqual([
      [1301n, 2600n],
      [1001n, 1300n],
      [1n, 1000n],
    ]);
    const weights = Object.values((await calibrationsOf(world))[0]?.weights ?? {});
    expect(weights).toHaveLength(7);
    expect(weights.reduce((a, b) => a + b)).toBeCloseTo(1, 9);
  });

  test("does not depend on how it is cut", async () => {
    const world = await createWorld();
    await playTo(world, 0, 700);
    const expected = fromScratch(700);
    for (const roundsPerChunk of [1, 7, 100, 699, 700, 701]) {
      await world.sql`delete from calibration_runs where table_id = ${world.tableId}`;
      await world.sql`delete from calibrations where table_id = ${world.tableId}`;
      const steps = { roundsPerChunk, roundsPerCheckpoint: 100_000 };
      const result = await runRollingCalibration(world.sql, await askNow(world), never, steps);
      expect(result, `${roundsPerChunk} a chunk`).toMatchObject({ isMet: true, replayed: expected.hash });
      expect((await calibrationsOf(world))[0]?.sums).toEqual(expected.sums);
    }
  });

  test("passes over late rounds, of which the live state knows nothing", async () => {
    const world = await createWorld();
    await playTo(world, 0, 200);
    await world.addLate("import", [{ hundredths: 99_900, roundId: "1" }]);
    await world.play([150]);
    await world.addLate("computed", [{ hundredths: 99_900, roundId: "2" }]);
    await world.play(SOME);
    const result = await runRollingCalibration(world.sql, await askNow(world), never, STEPS);
    expect(result).toMatchObject({ isMet: true, rounds: 265 });
    expect((await calibrationsOf(world))[0]).toMatchObject({ toSeq: 267n, rounds: 265n });
  });

  test("of a long history leaves checkpoints, and the last one equals the live state", async () => {
    const world = await createWorld();
    await playTo(world, 0, 1000);
    const steps = { roundsPerChunk: 100, roundsPerCheckpoint: 300 };
    expect(await runRollingCalibration(world.sql, await askNow(world), never, steps)).toMatchObject({ version: 4 });
    expect(
      (await calibrationsOf(world)).map(({ fromSeq, toSeq, liveStateHash }) => [
        fromSeq,
        toSeq,
        liveStateHash !== null,
      ]),
    ).toEqual([
      [901n, 1000n, true],
      [601n, 900n, false],
      [301n, 600n, false],
      [1n, 300n, false],
    ]);
    expect((await calibrationsOf(world))[0]?.sums).toEqual(fromScratch(1000).sums);
  });

  test("that is stopped in the middle is released, and resumes from its last checkpoint", async () => {
    const world = await createWorld({ ownDatabase: true });
    await playTo(world, 0, 1000);
    const run = await askNow(world);
    const stop = new AbortController();
    // the worker is told to stop as soon as the first place is left
    await world.sql.unsafe(`
      create function slow_down() returns trigger language plpgsql as $$ begin perform pg_sleep(0.2); return new; end $$;
      create trigger slow_down after insert on calibrations for each row execute function slow_down();
    `);
    const steps = { roundsPerChunk: 100, roundsPerCheckpoint: 300 };
    const running = runRollingCalibration(world.sql, run, stop.signal, steps);
    running.catch(() => undefined);
    await eventually(async () => (await calibrationsOf(world)).length > 0);
    stop.abort(new Error("the worker stops"));
    await expect(running).rejects.toThrow("the worker stops");
    const left = await calibrationsOf(world);
    expect(left.length).toBeLessThan(4);
    expect(await runOf(world, run)).toMatchObject({ status: "queued" });
    expect(await isWaiting(world, run)).toBe(false); // its queue has it
    const result = await runRollingCalibration(world.sql, run, never, steps);
    expect(result).toMatchObject({ isMet: true, rounds: 1000 - Number(left[0]?.toSeq) });
    expect((await calibrationsOf(world))[0]?.sums).toEqual(fromScratch(1000).sums);
  });

  test("is done by one worker: another takes it over only when that one was silent for a minute", async () => {
    const world = await createWorld();
    await playTo(world, 0, 100);
    const run = await askNow(world);
    await world.sql`
      update calibration_runs
      set
        status = 'running',
        heartbeat_at = clock_timestamp() - interval '30 seconds'
      where id = ${run}`;
    expect(await isWaiting(world, run)).toBe(false);
    expect(await runRollingCalibration(world.sql, run, never)).toBeNull();
    await world.sql`
      update calibration_runs
      set heartbeat_at = clock_timestamp() - interval '61 seconds'
      where id = ${run}`;
    expect(await isWaiting(world, run)).toBe(true);
    expect(await runRollingCalibration(world.sql, run, never)).toMatchObject({ isMet: true });
    expect(await runRollingCalibration(world.sql, run, never)).toBeNull();
    expect(await calibrationsOf(world)).toHaveLength(1);
  });

  test("is not released, ended or saved by a worker that lost it to another", async () => {
    const world = await createWorld();
    await playTo(world, 0, 200);
    const run = await askNow(world);
    const lost = await takeRun(world.sql, run);
    await world.sql`update calibration_runs set heartbeat_at = now() - interval '2 minutes' where id = ${run}`;
    const taken = await takeRun(world.sql, run);
    if (lost === null || taken === null) throw new Error("expected two attempts");
    await releaseRun(world.sql, lost, "the worker stops");
    await endRun(world.sql, lost, "nothing was learned");
    expect(await beatRun(world.sql, lost)).toBe(false);
    expect(await runOf(world, run)).toEqual({ status: "running", reason: null });
    expect(await beatRun(world.sql, taken)).toBe(true);
    await releaseRun(world.sql, taken, "the worker stops");
    expect(await runOf(world, run)).toEqual({ status: "queued", reason: "the worker stops" });
  });

  test("that failed is listed again after 15 minutes, since its queue retries it before", async () => {
    const world = await createWorld();
    const run = await askNow(world);
    expect(await isWaiting(world, run)).toBe(true);
    const taken = await takeRun(world.sql, run);
    if (taken === null) throw new Error("expected an attempt");
    await world.sql`update calibration_runs set heartbeat_at = now() - interval '1 hour' where id = ${run}`;
    await releaseRun(world.sql, taken, "its state is damaged");
    expect(await isWaiting(world, run)).toBe(false);
    const age = (minutes: number) => world.sql`
      update calibration_runs
      set heartbeat_at = clock_timestamp() - ${minutes} * interval '1 minute'
      where id = ${run}`;
    await age(14);
    expect(await isWaiting(world, run)).toBe(false);
    await age(16);
    expect(await isWaiting(world, run)).toBe(true);
  });

  test("that fails reports why, also if it cannot be released", async () => {
    const world = await createWorld();
    const { sql } = world;
    await playTo(world, 0, 100);
    const run = await askNow(world);
    await sql.unsafe(`
      create function refuse_release () returns trigger language plpgsql as
        $$ begin raise 'the release is refused'; end $$;
      create trigger refuse_release before update on calibration_runs
        for each row when (new.id = ${run} and new.status = 'queued') execute function refuse_release ()`);
    try {
      const steps = { roundsPerChunk: 10, roundsPerCheckpoint: 100_000 };
      const stopped = AbortSignal.abort(new Error("the worker stops"));
      await expect(runRollingCalibration(sql, run, stopped, steps)).rejects.toThrow("the worker stops");
      expect(await runOf(world, run)).toMatchObject({ status: "running" });
    } finally {
      await sql.unsafe("drop trigger refuse_release on calibration_runs; drop function refuse_release");
    }
  });

  test("that two workers did keeps one result", async () => {
    const world = await createWorld();
    await playTo(world, 0, 300);
    const run = await askNow(world);
    const steps = { roundsPerChunk: 1, roundsPerCheckpoint: 100_000 };
    const first = runRollingCalibration(world.sql, run, never, steps);
    await eventually(async () => (await runOf(world, run))?.status === "running");
    // as if the first had been silent
    await world.sql`update calibration_runs set status = 'queued' where id = ${run}`;
    const second = runRollingCalibration(world.sql, run, never, steps);
    const results = await Promise.all([first, second]);
    expect(results.filter((result) => result !== null)).toHaveLength(1);
    expect(await calibrationsOf(world)).toHaveLength(1);
  });

  test("with nothing new to learn ends as done", async () => {
    const world = await createWorld();
    await playTo(world, 0, 100);
    await runRollingCalibration(world.sql, await askNow(world), never);
    const run = await askNow(world);
    expect(await runRollingCalibration(world.sql, run, never)).toBeNull();
    expect(await runOf(world, run)).toEqual({
      status: "done",
      reason: "nothing was learned since the newest calibration",
    });
  });

  test("knows a damaged checkpoint and begins before it", async () => {
    const world = await createWorld();
    await playTo(world, 0, 200);
    await runRollingCalibration(world.sql, await askNow(world), never);
    await world.sql`
      update calibrations
      set state = set_byte(state, length(state) - 9, get_byte(state, length(state) - 9) # 1)
      where table_id = ${world.tableId}`;
    await playTo(world, 200, 300);
    const result = await runRollingCalibration(world.sql, await askNow(world), never);
    expect(result).toMatchObject({ isMet: true, rounds: 300 });
    expect((await calibrationsOf(world))[0]?.sums).toEqual(fromScratch(300).sums);
  });

  test.each(["sums", "carry"])("begins before a checkpoint whose %s are damaged", async (column) => {
    const world = await createWorld();
    await playTo(world, 0, 200);
    await runRollingCalibration(world.sql, await askNow(world), never);
    await world.sql`update calibrations set ${world.sql(column)} = '{}' where table_id = ${world.tableId}`;
    await playTo(world, 200, 300);
    expect(await runRollingCalibration(world.sql, await askNow(world), never)).toMatchObject({
      isMet: true,
      rounds: 300,
    });
  });
});

describe("a live state that is not what its rounds give", () => {
  test.each([
    ["its first byte", 0],
    ["its head", 20],
    ["its last byte", -1],
  ])("is found by one flipped bit in %s", async (_, place) => {
    const world = await createWorld();
    await playTo(world, 0, 100);
    await flip(world, place);
    const result = await runRollingCalibration(world.sql, await askNow(world), never);
    expect(result).toMatchObject({ isMet: false, replayed: fromScratch(100).hash, stored: fromScratch(100).hash });
    expect(result?.live).not.toBe(result?.replayed);
    expect((await calibrationsOf(world))[0]).toMatchObject({
      stateHash: result?.replayed,
      liveStateHash: result?.live,
    });
  });

  test("is detected if bytes and hash agree and the rounds do not", async () => {
    const world = await createWorld();
    await playTo(world, 0, 100);
    await world.sql`
      update rounds
      set hundredths = 1500
      where table_id = ${world.tableId}
        and seq = (select min(seq) from rounds where table_id = ${world.tableId} and color = 0)`;
    const result = await runRollingCalibration(world.sql, await askNow(world), never);
    expect(result).toMatchObject({ isMet: false });
    expect(result?.live).toBe(result?.stored);
  });
});

test("the sums of a calibration say how well the model fits its rounds", () => {
  const { sums } = fromScratch(1000);
  const read = sumsOf(sums).get("next_color") ?? emptySums();
  expect(read.n).toBe(1000n);
  expect(Number(read.sumLl) / 1e9).toBeGreaterThan(0.9);
  expect(Number(read.sumLl) / 1e9).toBeLessThan(1);
  expect(read).not.toEqual(emptySums());
});

/** Flips one bit of a byte of the live state; negative places count from its end. */
async function flip({ sql, tableId }: World, place: number): Promise<void> {
  await sql`
    update model_snapshots
    set state = set_byte(state, at, get_byte(state, at) # 1)
    from (
      select (${place}::integer + length(state)) % length(state) as at
      from model_snapshots
      where table_id = ${tableId}
    ) byte
    where table_id = ${tableId}`;
}
