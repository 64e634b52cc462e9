import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openBacktestFile } from "../../src/cli/data/backtest-file.ts";
import { findCalibration } from "../../src/calibration/calibration-store.ts";
import { forecastHash, type ForecastStrings } from "../../src/record/hashes.ts";
import { emptyState } from "../../src/forecasts/model/k7.ts";
import { requestManualRun } from "../../src/calibration/manual-request.ts";
import { runManualCalibration, type ManualWork } from "../../src/calibration/manual-calibration.ts";
import { createModel } from "../../src/forecasts/model/model.ts";
import { namedParameters } from "../../src/forecasts/model/parameter-set.ts";
import { K7_1, type Parameters } from "../../src/forecasts/model/parameters.ts";
import { sumsOf } from "../../src/calibration/backtest/replay.ts";
import { encodeState, stateHash } from "../../src/forecasts/model/state.ts";
import { scoreNextColor } from "../../src/forecasts/score/scoring.ts";
import { eventually } from "../support/eventually.ts";
import { generatedRounds, stateAfter } from "../forecasts/streams.ts";
import { createWorld, type World } from "../forecasts/world.ts";

const COUNT = 1500;
/** Ids skip one where rounds are missing. */
const idOf = (index: number) => String(10_000 + index + Math.floor((index + 1) / 137));
const indexOf = (id: string) => Array.from({ length: COUNT }, (_, index) => idOf(index)).indexOf(id);
const never = new AbortController().signal;
const other: Parameters = namedParameters({ ...K7_1Values(), share: 1e-4, x0Hundredths: 150 });

function K7_1Values() {
  const { name: _, ...values } = K7_1;
  return values;
}

let world: World;
const cleanUps: (() => Promise<void>)[] = [];

beforeAll(async () => {
  world = await createWorld({ ownDatabase: true, whenDone: (cleanUp) => void cleanUps.push(cleanUp) });
  const rounds = generatedRounds(COUNT).map((round, i) => ({ ...round, roundId: idOf(i) }));
  await world.play(rounds.slice(0, 700));
  await world.addLate("import", [{ hundredths: 99_900, roundId: "1" }]);
  await world.play(rounds.slice(700));
  return async () => {
    for (const cleanUp of cleanUps) await cleanUp();
  };
});

interface Asked {
  from?: number;
  fromId?: string;
  to?: number;
  parameters?: Parameters;
  thresholds?: number[];
  outFile?: string;
}

function ask({ from, fromId, to, parameters = K7_1, thresholds, outFile }: Asked = {}): Promise<string> {
  return requestManualRun(world.sql, {
    tableId: world.tableId,
    table: world.tableName,
    from: from === undefined ? fromId : idOf(from),
    to: to === undefined ? undefined : idOf(to),
    parameters,
    replayOrder: "taken",
    thresholds: thresholds ?? null,
    outFile: outFile ?? null,
  });
}

const STEPS = { roundsPerChunk: 100, roundsPerCheckpoint: 300 };

const run = (id: string, work: Partial<ManualWork> = {}) =>
  runManualCalibration(world.sql, id, { signal: never, steps: STEPS, openFile: openBacktestFile, ...work });

/** Runs the first chunk, keeps a checkpoint and stops. */
function stopEarly(id: string) {
  const stop = new AbortController();
  return run(id, { signal: stop.signal, progress: () => stop.abort(new Error("stop")) });
}

/** Everything of a record that must be the same however it was made. */
async function essence(calibrationId: string) {
  const row = await findCalibration(world.sql, calibrationId);
  if (row === null) throw new Error(`expected the calibration ${calibrationId}, found none`);
  const { beginSeq, toSeq, rounds, sums, carry, weights, model } = row;
  return { beginSeq, toSeq, rounds, sums, carry, weights, model, hash: row.stateHash };
}

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "roundhouse-backtest-"));
  onTestFinished(() => rm(made, { recursive: true }));
  return made;
}

describe("a manual run", () => {
  test("over the whole of a live table reaches its live state, and changes nothing that callers see", async () => {
    const before = await world.sql`select * from table_heads where table_id = ${world.tableId}`;
    const result = await run(await ask());
    const [live] =
      await world.sql`select encode(state_hash, 'hex') as state_hash from model_snapshots where table_id = ${world.tableId}`;
    expect(result).toMatchObject({
      table: world.tableName,
      model: "k7@1-7262526239ae",
      from: "10000",
      to: idOf(COUNT - 1),
      rounds: COUNT,
      state_hash: live?.["state_hash"],
    });
    const row = await findCalibration(world.sql, result.calibration_id);
    expect(row).toMatchObject({ kind: "manual", liveStateHash: result.state_hash, fromSeq: 1n, toSeq: 1501n });
    expect(await world.sql`select * from table_heads where table_id = ${world.tableId}`).toEqual(before);
  });

  test("over a range begins with nothing and takes both ends in", async () => {
    const result = await run(await ask({ from: 200, to: 899 }));
    const model = createModel({ thresholds: [200, 1000], edge: 0.01 });
    const state = stateAfter(model, generatedRounds(COUNT).slice(200, 900), emptyState(model));
    expect(result).toMatchObject({ from: idOf(200), to: idOf(899), rounds: 700 });
    expect(result.state_hash).toBe(stateHash(encodeState(model, state)));
  });

  test("gives the same record twice, and in steps of any size", async () => {
    const expected = await essence((await run(await ask({ from: 100 }))).calibration_id);
    for (const roundsPerChunk of [1, 137, 1399, 1400, 1401, 5000]) {
      const steps = { roundsPerChunk, roundsPerCheckpoint: 500 };
      const again = await run(await ask({ from: 100 }), { steps });
      expect(await essence(again.calibration_id), `${roundsPerChunk} a chunk`).toEqual(expected);
    }
  });

  test("through another parameter set is another model with another state", async () => {
    const mine = await run(await ask({ parameters: other }));
    expect(mine.model).toMatch(/^k7@1\+[0-9a-f]{12}-[0-9a-f]{12}$/);
    expect(mine.state_hash).not.toBe((await run(await ask())).state_hash);
    const row = await findCalibration(world.sql, mine.calibration_id);
    expect(row?.state.toString("latin1")).toContain(`{"model":"${mine.model}","thresholds":[200,1000]`);
    expect((await essence(mine.calibration_id)).rounds).toBe(BigInt(COUNT));
  });

  test("in other bands judges other colors", async () => {
    const result = await run(await ask({ thresholds: [150, 300, 2000] }));
    const { sums } = await essence(result.calibration_id);
    const nextColor = sumsOf(sums).get("next_color");
    const bands = [0, 0, 0, 0];
    for (const { hundredths } of generatedRounds(COUNT)) {
      bands[[150, 300, 2000].filter((threshold) => hundredths >= threshold).length]! += 1;
    }
    expect(nextColor?.confusion.map(Number)).toEqual(bands);
    expect([...sumsOf(sums).keys()]).toContain("window:4:90");
  });

  test("that was done gives its result again", async () => {
    const id = await ask({ to: 50 });
    expect(await run(id)).toEqual(await run(id));
  });
});

describe("a range", () => {
  test.each([
    [`--from: there is no round ${idOf(COUNT)} in`, { from: COUNT }],
    [`its on-time rounds go from 10000 to ${idOf(COUNT - 1)}`, { to: 90_000 }],
    ["--from: round 1 of", { fromId: "1" }],
    ["was stored after round 10005", { from: 6, to: 5 }],
  ])("that the table does not have is refused: %s", async (message, asked) => {
    await expect(ask(asked)).rejects.toThrow(message);
  });

  test("of a table without rounds is refused", async () => {
    const empty = await createWorld();
    const request = { tableId: empty.tableId, table: "a/b/c", from: undefined, to: undefined };
    const rest = { parameters: K7_1, thresholds: null, outFile: null };
    await expect(requestManualRun(empty.sql, { ...request, ...rest })).rejects.toThrow("has no rounds to replay yet");
  });
});

describe("a run that is stopped", () => {
  test("resumes from where it was cancelled, with the same record and the same file", async () => {
    const [a, b] = [join(await folder(), "a.csv"), join(await folder(), "b.csv")];
    const whole = await run(await ask({ outFile: a }));
    const id = await ask({ outFile: b });
    for (const at of [100, 400, 900]) {
      const stop = new AbortController();
      const stopped = run(id, {
        signal: stop.signal,
        progress: (done) => done >= at && stop.abort(new Error("interrupted")),
      });
      await expect(stopped).rejects.toThrow("interrupted");
      const [row] = await world.sql`select status, reason from calibration_runs where id = ${id}`;
      expect(row).toEqual({ status: "cancelled", reason: "interrupted" });
    }
    const resumed = await run(id);
    expect(await essence(resumed.calibration_id)).toEqual(await essence(whole.calibration_id));
    expect(await readFile(b, "utf8")).toBe(await readFile(a, "utf8"));
    expect(await world.sql`select * from backtest_checkpoints where run_id = ${id}`).toEqual([]);
    expect(await readdir(join(b, ".."))).toEqual(["b.csv"]);
  });

  test("by kill -9 resumes from its last checkpoint, with the same record and the same file", async () => {
    const [a, b] = [join(await folder(), "a.csv"), join(await folder(), "b.csv")];
    const whole = await run(await ask({ outFile: a }));
    const id = await ask({ outFile: b });
    const file = new URL("./calibration-process.ts", import.meta.url).pathname;
    const child = spawn(process.execPath, [file, world.url, id], { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    let done = 0;
    child.stdout.setEncoding("utf8").on("data", (text: string) => (done = Number(text.trim().split("\n").at(-1))));
    await eventually(() => Promise.resolve(done >= 800));
    child.kill("SIGKILL");
    await once(child, "close");
    const [left] = await world.sql`
      select status, backtest_checkpoints.to_seq
      from calibration_runs
      join backtest_checkpoints on run_id = id
      where id = ${id}`;
    expect(left).toMatchObject({ status: "running" });
    // as if it had been silent for long enough
    await world.sql`update calibration_runs set heartbeat_at = heartbeat_at - interval '10 seconds' where id = ${id}`;
    const resumed = await run(id);
    expect(await essence(resumed.calibration_id)).toEqual(await essence(whole.calibration_id));
    expect(await readFile(b, "utf8")).toBe(await readFile(a, "utf8"));
  });

  test("and claimed by another process writes nothing any more", async () => {
    const id = await ask({ outFile: join(await folder(), "a.csv") });
    let chunks = 0;
    const first = run(id, {
      steps: { roundsPerChunk: 10, roundsPerCheckpoint: 50 },
      async openFile(...args) {
        const file = await openBacktestFile(...args);
        return {
          ...file,
          async write(rows) {
            chunks += 1;
            if (chunks === 20) await world.sql`update calibration_runs set epoch = epoch + 1 where id = ${id}`;
            await file.write(rows);
          },
        };
      },
    });
    await expect(first).rejects.toThrow("was claimed by another process");
    expect(chunks).toBe(20);
    const [row] = await world.sql`select status, calibration_id from calibration_runs where id = ${id}`;
    expect(row).toEqual({ status: "running", calibration_id: null });
  });

  test("without its file is not resumed", async () => {
    const file = join(await folder(), "a.csv");
    const id = await ask({ outFile: file });
    await expect(stopEarly(id)).rejects.toThrow("stop");
    await rm(`${file}.run-${id}.partial`);
    await expect(run(id)).rejects.toThrow(`a.csv.run-${id}.partial with at least`);
  });

  test("does not take the finished file of another run for its own", async () => {
    const file = join(await folder(), "a.csv");
    const id = await ask({ outFile: file });
    await expect(stopEarly(id)).rejects.toThrow("stop");
    await rm(`${file}.run-${id}.partial`);
    await run(await ask({ outFile: file, thresholds: [150, 300] }));
    const theirs = await readFile(file, "utf8");
    await expect(run(id)).rejects.toThrow(`a.csv.run-${id}.partial with at least`);
    expect(await readFile(file, "utf8")).toBe(theirs);
  });

  test("continues its own finished file if it was killed before the run was finished", async () => {
    const file = join(await folder(), "a.csv");
    const alone = join(await folder(), "b.csv");
    await run(await ask({ outFile: alone }));
    const id = await ask({ outFile: file });
    const killed = run(id, {
      async openFile(...args) {
        const opened = await openBacktestFile(...args);
        return {
          ...opened,
          async finish() {
            await opened.finish();
            throw new Error("killed");
          },
        };
      },
    });
    await expect(killed).rejects.toThrow("killed");
    await run(id);
    expect(await readFile(file, "utf8")).toBe(await readFile(alone, "utf8"));
  });

  test("keeps its lines if another run writes to the same name meanwhile", async () => {
    const file = join(await folder(), "a.csv");
    const alone = join(await folder(), "b.csv");
    await run(await ask({ outFile: alone }));
    const id = await ask({ outFile: file });
    await expect(stopEarly(id)).rejects.toThrow("stop");
    const rival = await ask({ outFile: file, thresholds: [150, 300] });
    await run(rival);
    await run(id);
    expect(await readFile(file, "utf8")).toBe(await readFile(alone, "utf8"));
  });
});

describe("the file of a run", () => {
  test("has the columns of the export, a separate chain, no times, and the sums of the record", async () => {
    const file = join(await folder(), "f.csv");
    const { calibration_id } = await run(await ask({ outFile: file }));
    const [header, ...lines] = (await readFile(file, "utf8")).trimEnd().split("\n");
    expect(header).toBe(
      "seq,forecast_id,table,model,feature,issued_at,absent_at,pause_ms,cutoff_round_id,history_hash,target_round_id," +
        "horizon,p_ppm,base_ppm,status,outcome,scored_at,prev_hash,hash",
    );
    const columns = (header ?? "").split(",");
    const rows = lines.map((line) => {
      const fields = line.split(",");
      return Object.fromEntries(columns.map((column, i) => [column, fields[i] ?? ""]));
    });
    let previous = "0".repeat(64);
    const hashed = columns.slice(0, 14);
    for (const [i, row] of rows.entries()) {
      expect(row).toMatchObject({ seq: String(i + 1), forecast_id: `backtest-${i + 1}`, issued_at: "", scored_at: "" });
      const fields = Object.fromEntries(hashed.map((name) => [name, row[name]])) as ForecastStrings;
      expect(row["prev_hash"]).toBe(previous);
      expect(row["hash"]).toBe(forecastHash(previous, fields));
      previous = row["hash"] ?? "";
    }
    const sums = sumsOf((await essence(calibration_id)).sums);
    for (const [feature, { forecasts, n, hits, voidGap, sumLl, sumP }] of sums) {
      const own = rows.filter((row) => row["feature"] === feature);
      const scored = own.filter(({ status }) => status === "scored");
      expect([own.length, scored.length, own.filter(({ status }) => status === "void_gap").length]).toEqual(
        [forecasts, n, voidGap].map(Number),
      );
      if (feature === "next_color") {
        const colors = ["blue", "purple", "pink"];
        const losses = scored.map(({ p_ppm = "", base_ppm = "", outcome = "" }) =>
          scoreNextColor(p_ppm.split("|").map(Number), base_ppm.split("|").map(Number), colors.indexOf(outcome)),
        );
        expect(losses.reduce((sum, { ll }) => sum + ll, 0)).toBe(Number(sumLl));
      } else {
        expect(scored.filter(({ outcome }) => outcome === "1")).toHaveLength(Number(hits));
        expect(scored.reduce((sum, { p_ppm }) => sum + Number(p_ppm), 0)).toBe(Number(sumP));
      }
    }
    expect(rows.filter(({ status }) => status === "open").length).toBeGreaterThan(0);
    // windows end at their nominal end, by what came within it
    const rounds = generatedRounds(COUNT);
    for (const { feature = "", cutoff_round_id, horizon, status, outcome } of rows) {
      if (!feature.startsWith("window:pink") || status === "open") continue;
      const from = indexOf(cutoff_round_id ?? "") + 1;
      const span = rounds.slice(from, from + Number(horizon));
      const gap = span.findIndex(({ afterGap }) => afterGap);
      if (gap >= 0) expect(status).toBe("void_gap");
      else expect([status, outcome]).toEqual(["scored", span.some(({ hundredths }) => hundredths >= 1000) ? "1" : "0"]);
    }
  });
});
