import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { generatedRounds } from "../forecasts/streams.ts";
import { createWorld, type World } from "../forecasts/world.ts";
import { eventually } from "../support/eventually.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { makeFile, makeFolder, roundhouse, startRoundhouse } from "./world.ts";
import { promoteCalibration } from "../../src/calibration/promote.ts";
import { connect } from "../../src/db/client.ts";

const COUNT = 400;

let world: World;
const place = () => ({ env: { DATABASE_URL: world.url, REDIS_URL: "redis://127.0.0.1:9/0" } });
const run = (...args: string[]) => roundhouse(args, place());
const calibrate = (...args: string[]) => run("calibrate", "--table", world.tableName, ...args);

beforeAll(async () => {
  const cleanUps: (() => Promise<void>)[] = [];
  world = await createWorld({
    ownDatabase: true,
    tables: [{}, {}],
    whenDone: (cleanUp) => void cleanUps.push(cleanUp),
  });
  // an imported table: nobody has polled it
  await world.play(
    generatedRounds(COUNT).map(({ hundredths }, i) => ({
      hundredths,
      roundId: String(i + 1),
      source: "import" as const,
    })),
  );
  return async () => {
    for (const cleanUp of cleanUps) await cleanUp();
  };
});

describe("calibrate", () => {
  it("on an imported table gives the same hash twice, also when it was stopped by Ctrl-C and resumed", async () => {
    const once = await calibrate("--from", "1", "--to", "300", "--json");
    expect({ code: once.code, stderr: once.stderr }).toEqual({ code: 0, stderr: "" });
    const first = JSON.parse(once.stdout) as Record<string, unknown>;
    expect(first).toMatchObject({
      table: world.tableName,
      model: "k7@1-7262526239ae",
      from: "1",
      to: "300",
      rounds: 300,
    });
    expect(first["state_hash"]).toMatch(/^[0-9a-f]{64}$/);
    for (const key of ["log_loss", "baseline_log_loss", "brier"]) expect(first[key]).toBeGreaterThan(0.3);

    // its start is held up, so that the signal meets it at work
    const held = connect(world.url, { name: "holder", max: 1 });
    await held`begin`;
    await held`lock table backtest_checkpoints`;
    const args = ["calibrate", "--table", world.tableName, "--from", "1", "--to", "300", "--json"];
    const started = startRoundhouse(args, place());
    const [row] = await eventually(async () => {
      const rows = await world.sql<{ id: string }[]>`
        select id::text as id
        from calibration_runs
        where status = 'running'`;
      return rows.length > 0 && rows;
    });
    started.kill("SIGINT");
    await eventually(() => started.output.stderr.includes("stopping"));
    started.kill("SIGINT"); // npm forwards the Ctrl-C that the terminal has sent too
    await held`commit`;
    await held.end();
    const stopped = await started.ended;
    const id = row?.id ?? "";
    expect(stopped.code).toBe(1);
    expect(stopped.stderr).toContain(`resume with: roundhouse calibrate --table ${world.tableName} --resume ${id}`);
    const resumed = await calibrate("--resume", id, "--json");
    const { run_id: _, calibration_id: _id, ...expected } = first;
    expect(JSON.parse(resumed.stdout)).toMatchObject({ run_id: id, ...expected });
    expect(await calibrate("--resume", id, "--model", "k7@1-000000000000")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--model: expected k7@1-7262526239ae, got k7@1-000000000000") as string,
    });
    expect(await calibrate("--resume", id, "--to", "299")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--to: expected 300, got 299") as string,
    });
  });

  it("writes every forecast, takes other parameters, and what it made is listed, shown, compared and promoted", async () => {
    const file = join(await makeFolder(), "f.csv");
    const params = await makeFile("slow.yaml", "recent_half_life: 5000\nshare: 0.0001\n");
    const other = await calibrate("--params", params, "--out", file, "--json");
    expect({ code: other.code, stderr: other.stderr }).toEqual({ code: 0, stderr: "" });
    const made = JSON.parse(other.stdout) as { model: string; calibration_id: string };
    expect(made.model).toMatch(/^k7@1\+/);
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    expect(lines.filter((line) => line.includes(",next_color,"))).toHaveLength(COUNT);
    // from now on the set is known by its name
    const known = await calibrate("--model", made.model, "--to", "100", "--promote", "--reason", "to see it", "--json");
    expect(known).toMatchObject({ code: 0, stderr: expect.stringContaining("is live on") as string });

    const { calibration_id: id } = JSON.parse(known.stdout) as { calibration_id: string };
    const list = JSON.parse((await run("calibration", "list", "--json")).stdout) as Record<string, unknown>[];
    expect(list[0]).toMatchObject({
      kind: "promoted",
      model: made.model,
      promotion: { from: id, reason: "to see it" },
    });
    const shown = (await run("calibration", "show", made.calibration_id)).stdout;
    for (const part of ["window:pink:80", "| stated, o observed", "waits for the top color", "no accuracy of issued"]) {
      expect(shown).toContain(part);
    }
    const compared = await run("calibration", "compare", made.calibration_id, id, "--json");
    expect(JSON.parse(compared.stdout)).toMatchObject({
      a: { id: made.calibration_id, sample_size: COUNT, windows: expect.any(Array) as unknown[] },
      b: { id, sample_size: 100 },
      paired: { rounds: 100, difference: 0 },
    });
    expect((await run("calibration", "compare", made.calibration_id, id)).stdout).toContain("which favors neither");
    const promoted = await run(
      "calibration",
      "promote",
      made.calibration_id,
      "--reason",
      "all of it",
      "--by",
      "ann",
      "--json",
    );
    expect(JSON.parse(promoted.stdout)).toMatchObject({ promoted_from: made.calibration_id, by: "ann", rounds: COUNT });
  });

  it("does not replace the promotion of another person that was made meanwhile", async () => {
    const ids: string[] = [];
    for (const to of ["50", "60"]) {
      const { calibration_id: id } = JSON.parse((await calibrate("--to", to, "--json")).stdout) as {
        calibration_id: string;
      };
      ids.push(id);
    }
    const [mine = "", theirs = ""] = ids;
    const bea = { by: "bea", reason: "the right one" };
    const refusal = new RegExp(`bea promoted calibration ${theirs} of ${world.tableName} at .* meanwhile`);

    const holder = connect(world.url, { name: "holder", max: 1 });
    await holder`begin`;
    await holder`select from table_heads where table_id = ${world.tableId} for update`;
    const first = promoteCalibration(world.sql, theirs, bea);
    await lockWaits(world.sql, 1);
    const second = run("calibration", "promote", mine, "--reason", "mine");
    await lockWaits(world.sql, 2);
    await holder`commit`;
    await first;
    expect(await second).toMatchObject({ code: 1, stderr: expect.stringMatching(refusal) as string });

    await holder`begin`;
    await holder`lock table backtest_checkpoints`;
    const replayed = calibrate("--to", "70", "--promote", "--reason", "mine");
    await lockWaits(world.sql, 1);
    await promoteCalibration(world.sql, theirs, bea);
    await holder`commit`;
    await holder.end();
    const { code, stderr } = await replayed;
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(refusal) as string });
    expect(stderr).toMatch(/run \d+ is stored/);
    expect(stderr).not.toContain("resume with");
  });

  it("includes history by round id, reports which rounds were late, and runs several tables", async () => {
    const [, second = 0] = world.tableIds;
    const other = world.tableName.replace(/m0$/, "m1");
    const rounds = generatedRounds(40).map(({ hundredths }, i) => ({ hundredths, roundId: String(i + 1) }));
    await world.play(rounds.slice(30), second);
    await world.addLate("import", rounds.slice(0, 30), second);
    const both = await calibrate("--table", other, "--to", "40", "--json");
    expect(
      both.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as unknown),
    ).toMatchObject([
      { table: world.tableName, order: "taken", rounds: 40, late_rounds: 0, late: [] },
      { table: other, order: "round", rounds: 40, late_rounds: 30, late: [{ from: "1", to: "30" }] },
    ]);
    const told = await run("calibrate", "--table", other);
    expect(told.stdout).toContain("40 rounds through k7@1");
    expect(told.stdout).toContain("by round id\n30 of them late: 1 to 30\n");
    const onTime = await run("calibrate", "--table", other, "--promote", "--reason", "on time", "--json");
    expect(JSON.parse(onTime.stdout)).toMatchObject({ order: "taken", rounds: 10 });
  });

  it.each([
    [["--table", "a/b/d", "--out", "x.csv"], "--out is for one --table; 2 are given"],
    [["--table", "a/b/d", "--resume", "3"], "--resume is for one --table; 2 are given"],
    [["--table", "a/b/c"], "a/b/c is given twice"],
    [["--order", "sideways"], "Allowed choices are taken, round"],
    [["--resume", "x"], "expected the number of a run"],
  ])("refuses %j before it asks a server", async (args, message) => {
    const nowhere = { env: { DATABASE_URL: "postgres://nobody@127.0.0.1:9/none", REDIS_URL: "redis://127.0.0.1:9/0" } };
    const refused = await roundhouse(["calibrate", "--table", "a/b/c", ...args], nowhere);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(message) as string });
  });

  it("refuses what cannot be asked for", async () => {
    for (const [args, message] of [
      [["--from", "0"], "there is no round 0"],
      [["--model", "k8@1"], "there is no model k8@1; known are k7@1"],
      [
        ["--model", "k7@1-000000000000"],
        `--model: expected k7@1-000000000000, found k7@1-7262526239ae for the bands and edge of ${world.tableName}`,
      ],
      [["--params", "/nowhere.yaml"], "'/nowhere.yaml' is invalid. there is no such file."],
      [["--params", await makeFile("bad.yaml", "half_life: 3\nshare: 2\n")], "half_life: there is no such parameter"],
      [["--resume", "999999"], "there is no manual run 999999"],
    ] as const) {
      expect(await calibrate(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) as string });
    }
  });
});
