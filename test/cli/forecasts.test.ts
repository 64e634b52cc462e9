import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runRollingCalibration } from "../../src/calibration/calibrate.ts";
import { fullWorld } from "../forecasts/full-world.ts";
import { createWorld, type World } from "../forecasts/world.ts";
import { roundhouse } from "./world.ts";

const run = (world: World, ...args: string[]) =>
  roundhouse(args, { env: { DATABASE_URL: world.url, REDIS_URL: "redis://127.0.0.1:9/0" } });

/** Read by most tests here and changed by none but the last, which adds a calibration. */
let untouched: Promise<World>;
const whenAllIsDone: (() => Promise<void>)[] = [];
beforeAll(async () => {
  untouched = fullWorld({ whenDone: (cleanUp) => whenAllIsDone.push(cleanUp) });
  await untouched;
});
afterAll(async () => {
  for (const cleanUp of whenAllIsDone) await cleanUp();
});

const HEADER =
  "seq,forecast_id,table,model,feature,issued_at,absent_at,pause_ms,cutoff_round_id,history_hash,target_round_id,horizon,p_ppm,base_ppm," +
  "status,outcome,scored_at,prev_hash,hash";

describe("export forecasts", () => {
  it("lets anyone recompute the chain from the text alone", async () => {
    const world = await untouched;
    const { code, stdout, stderr } = await run(world, "export", "forecasts", "--table", world.tableName);
    expect(code).toBe(0);
    const [header, ...lines] = stdout.trimEnd().split("\n");
    expect(header).toBe(HEADER);
    expect(stderr).toBe(`${lines.length} forecasts of ${world.tableName}\n`);
    expect(lines.length).toBeGreaterThan(25);
    const names = HEADER.split(",");
    let prev = "0".repeat(64);
    for (const [index, line] of lines.entries()) {
      const fields = line.split(","); // no field of this table holds a comma
      const row = Object.fromEntries(names.map((name, at) => [name, fields[at]]));
      // RFC 8785 of an object of plain strings: its keys sorted, nothing else to decide
      const hashed = names.slice(0, 14).toSorted();
      const json = `{${hashed.map((name) => `"${name}":"${row[name]}"`).join(",")}}`;
      expect(row["prev_hash"]).toBe(prev);
      prev = createHash("sha256").update(`${prev}\n${json}`).digest("hex");
      expect(row["hash"], line).toBe(prev);
      expect(row["seq"]).toBe(String(index + 1));
      expect(row["issued_at"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
    }
  });

  it("shows the state of each: open, scored with its color or whether it hit, or void", async () => {
    const world = await untouched;
    const { stdout } = await run(world, "export", "forecasts", "--table", world.tableName, "--format", "csv");
    const rows = stdout
      .trimEnd()
      .split("\n")
      .slice(1)
      .map((line) => line.split(","));
    const windows = rows.filter(([, , , , feature]) => feature?.startsWith("window:"));
    for (const [, , , , , , , , , , , horizon, p = "", base = ""] of windows) {
      expect([horizon, p, base].every((value) => /^\d+$/.test(value ?? ""))).toBe(true);
    }
    expect(new Set(windows.map((row) => row[15]))).toEqual(new Set(["", "0", "1"]));
    const outcomes = rows.map((row) => ({ status: row[14], outcome: row[15], scoredAt: row[16] }));
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(
      new Set(["open", "scored", "void_gap", "void_conflict"]),
    );
    const rounds = await run(world, "export", "rounds", "--table", world.tableName);
    const colors = new Map(
      rounds.stdout
        .trimEnd()
        .split("\n")
        .slice(1)
        .map((line) => line.split(","))
        .map(([, roundId, , color]) => [roundId, color]),
    );
    for (const [index, { status, outcome, scoredAt }] of outcomes.entries()) {
      const [, , , , feature = "", , , , , , first = "", horizon = ""] = rows[index] ?? [];
      const span = Array.from({ length: Number(horizon) }, (_, n) => colors.get(String(BigInt(first) + BigInt(n))));
      const came = feature === "next_color" ? span[0] : String(Number(span.includes(feature.split(":")[1])));
      expect(outcome).toBe(status === "scored" ? came : "");
      if (status === "open") expect(scoredAt).toBe("");
      else expect(scoredAt).toMatch(/Z$/);
    }
  });

  it("is a header alone for a table without forecasts, and refuses a table that is not there", async () => {
    const world = await createWorld();
    expect(await run(world, "export", "forecasts", "--table", world.tableName)).toMatchObject({
      code: 0,
      stdout: `${HEADER}\n`,
    });
    const { code, stderr } = await run(world, "export", "forecasts", "--table", "a/b/c");
    expect(code).toBe(2);
    expect(stderr).toContain('there is no table "a/b/c"');
  });
});

describe("verify", () => {
  it("prints what it checked and exits 0", async () => {
    const world = await untouched;
    const { code, stdout, stderr } = await run(world, "verify", "--json");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [rows] = await world.sql`
      select
        (select count(*)::integer from rounds) as rounds,
        (select count(*)::integer from forecasts) as forecasts,
        (select count(*)::integer from scores) as scores`;
    expect(JSON.parse(stdout)).toEqual({
      ok: true,
      checked: {
        ...rows,
        audit_entries: 0,
        accuracy_rows: expect.any(Number),
        calibrations: 0,
        replayed_rounds: 0,
        log_entries: expect.any(Number),
      },
      first_failure: null,
      unstated: { since: expect.any(String), reason: "no log" },
    });
    const people = await run(world, "verify", "--table", world.tableName);
    expect(people).toMatchObject({ code: 0, stderr: "" });
    expect(people.stdout).toMatch(
      /^all is as it should be: \d+ rounds, \d+ forecasts, \d+ scores and \d+ accuracy rows/,
    );
    expect(people.stdout).toMatch(
      /\nthe transparency log does not prove forecasts issued since .*: the newest log is not signed yet\n$/,
    );
  });

  it("names the row that is not what its facts give and exits 1", async () => {
    const world = await fullWorld();
    const [row] = await world.sql<{ forecast_id: string; hash: string }[]>`
      update forecast_sets
      set hashes = set_byte(hashes, 0, get_byte(hashes, 0) # 1)
      where table_id = ${world.tableId}
        and cutoff_seq = (select set_seq from table_heads where table_id = ${world.tableId})
      returning format('f%s-%s', table_id, first_seq) as forecast_id, encode(substr(hashes, 1, 32), 'hex') as hash`;
    const { code, stdout } = await run(world, "verify", "--json");
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      first_failure: { kind: "forecast", id: row?.forecast_id, found: `hash ${row?.hash}` },
    });
    const people = await run(world, "verify");
    expect(people.code).toBe(1);
    expect(people.stdout).toContain(`the forecast ${row?.forecast_id} is not what its facts give`);
    // another table is not touched by it
    const [, other] = await world.sql<{ name: string }[]>`
      select house_id || '/' || game || '/' || market as name
      from tables
      order by id`;
    expect(await run(world, "verify", "--table", other?.name ?? "")).toMatchObject({ code: 0 });
    expect(await run(world, "verify", "--table", "a/b/c")).toMatchObject({ code: 2 });
  });
});

describe("calibration", () => {
  it("lists replays and shows one with weights, losses and reliability", async () => {
    const world = await untouched;
    expect(JSON.parse((await run(world, "calibration", "list", "--json")).stdout)).toEqual([]);
    const [asked] = await world.sql<{ run: string }[]>`
      insert into calibration_runs (table_id, kind, model)
      select table_id, 'rolling', model from table_heads where table_id = ${world.tableId}
      returning id::text as run`;
    await runRollingCalibration(world.sql, asked?.run ?? "", new AbortController().signal);
    const list = await run(world, "calibration", "list", "--table", world.tableName, "--json");
    expect(JSON.parse(list.stdout)).toMatchObject([
      {
        table: world.tableName,
        model: "k7@1-7262526239ae",
        version: 1,
        kind: "rolling",
        rounds: expect.any(Number),
        met_live_state: true,
      },
    ]);
    const [{ id }] = JSON.parse(list.stdout) as [{ id: string }];
    const shown = await run(world, "calibration", "show", id, "--json");
    expect({ code: shown.code, stderr: shown.stderr }).toEqual({ code: 0, stderr: "" });
    const detail = JSON.parse(shown.stdout) as { weights: object; reliability: unknown[]; log_loss: number };
    expect(detail).toMatchObject({
      id,
      from_seq: 1,
      sample_size: expect.any(Number),
      baseline_log_loss: expect.any(Number),
    });
    expect(Object.keys(detail.weights)).toEqual(["LR", "TH", "TH200", "TH2000", "D1000", "M1", "G"]);
    expect(detail.reliability.length).toBeGreaterThan(1);
    expect(detail.log_loss).toBeGreaterThan(0.5);

    const people = (await run(world, "calibration", "show", id)).stdout;
    for (const part of ["live state met", "Log loss", "Brier score", "Skill", "TH2000", "Observed"]) {
      expect(people).toContain(part);
    }
    expect((await run(world, "calibration", "list")).stdout).toMatch(new RegExp(`^${id} +${world.tableName} `, "m"));
  });

  it("refuses what is no calibration", async () => {
    const world = await createWorld();
    expect(await run(world, "calibration", "show", "x")).toMatchObject({ code: 2 });
    const { code, stderr } = await run(world, "calibration", "show", "999999");
    expect(code).toBe(2);
    expect(stderr).toContain("there is no calibration 999999");
  });
});
