import { describe, expect, it } from "vitest";
import { z } from "zod";
import { runRollingCalibration } from "../../src/calibration/calibrate.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { createWorld, type World } from "../forecasts/world.ts";
import { roundhouse } from "./world.ts";

const run = (world: World, ...args: string[]) =>
  roundhouse(["accuracy", ...args], { env: { DATABASE_URL: world.url, REDIS_URL: "redis://127.0.0.1:9/0" } });

const row = z.looseObject({
  feature: z.string(),
  game: z.string().nullable(),
  sample_size: z.int(),
  verdict: z.string(),
  corp: z.array(z.looseObject({ color: z.string().nullable(), mcb: z.number(), dsc: z.number(), unc: z.number() })),
  references: z.array(z.looseObject({ name: z.string(), sample_size: z.int(), expected_rate: z.number().nullable() })),
  brier: z.number().nullable(),
  pit: z.object({ waits: z.int(), heights: z.array(z.number()) }).nullable(),
});
const rowsOf = (text: string) => z.array(row).parse(JSON.parse(text));

describe("accuracy", () => {
  it("shows for each feature the hit rate with its sample, and for one feature every figure", async () => {
    const world = await createWorld({ tables: [{}, {}] });
    for (const { hundredths } of generatedRounds(65)) {
      await Promise.all(world.tableIds.map((id) => world.play([hundredths], id)));
    }
    await world.add();

    const [list, detail, json] = await Promise.all([
      run(world, "--table", world.tableName),
      run(world, "--house", world.house, "--feature", "next_color", "--period", "24h"),
      run(world, "--json"),
    ]);
    expect(list).toMatchObject({ code: 0, stderr: "" });
    expect(list.stdout).toMatch(
      /^table +feature +model +n +hit rate +95 % interval +stated +baseline +z +e-value +verdict +/,
    );
    expect(list.stdout).toMatch(
      new RegExp(`^${world.tableName} +next_color +\\S+ +63 +\\d+\\.\\d % +\\d+\\.\\d % to \\d+\\.\\d % `, "m"),
    );
    expect(list.stdout).toMatch(/ running /);

    expect(detail.code).toBe(0);
    for (const part of [
      "reliability:",
      "CORP: Brier = MCB - DSC + UNC",
      "CORP reliability curve",
      "References, on the same 126 forecasts",
      "last_100",
      "none yet",
    ]) {
      expect(detail.stdout).toContain(part);
    }
    expect(detail.stdout).not.toMatch(/[–−]/);
    expect(detail.stdout).toMatch(
      /^\d+ % to \d+ % +\d+ +\d+\.\d+ % +\d+\.\d+ % +\d+\.\d+ % to \d+\.\d+ % +-*[|o*][-|o]*/m,
    );

    const rows = rowsOf(json.stdout);
    const nextColors = rows.filter(({ feature }) => feature === "next_color");
    expect(nextColors.map(({ sample_size: n }) => n)).toEqual([63, 63]);
    expect(rows.length).toBeGreaterThan(4);
    for (const { corp, brier, references, sample_size: n, feature } of rows) {
      expect(references.map((one) => [one.name, one.sample_size])).toEqual(
        ["last_20", "last_100", "due", "theory"].map((name) => [name, n]),
      );
      // the parts by color add up to the Brier score, but for p of one thousandth taken as their mean
      const whole = corp.reduce((sum, { mcb, dsc, unc }) => sum + mcb - dsc + unc, 0);
      expect(whole).toBeCloseTo(brier ?? 0, 3);
      expect(corp.map(({ color }) => color)).toEqual(
        feature === "next_color" ? ["blue", "purple", "pink"] : [feature.split(":")[1]],
      );
    }
    expect(rows.every(({ pit }) => pit === null)).toBe(true);

    await calibrate(world);
    const [measured, text] = await Promise.all([
      run(world, "--table", world.tableName, "--json"),
      run(world, "--table", world.tableName, "--feature", "next_color"),
    ]);
    const [waiting] = rowsOf(measured.stdout);
    const pinks = generatedRounds(65).filter(({ hundredths }) => hundredths >= 1000).length;
    // the wait before the first of them has no beginning
    expect(waiting?.pit?.waits).toBe(pinks - 1);
    expect(waiting?.pit?.heights.reduce((sum, height) => sum + height, 0)).toBeCloseTo(10, 9);
    expect(text.stdout).toContain(`PIT of ${pinks - 1} waits for the top color in the newest calibration`);
  });

  it("is an empty list before anything was measured, and refuses what does not exist with exit code 2", async () => {
    const world = await createWorld();
    const [empty, unknown, feature, both] = await Promise.all([
      run(world, "--table", world.tableName, "--json"),
      run(world, "--house", "nowhere"),
      run(world, "--feature", "pink"),
      run(world, "--house", world.house, "--table", world.tableName),
    ]);
    expect(empty).toMatchObject({ code: 0, stdout: "[]\n" });
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain('there is no house "nowhere"');
    expect(feature.code).toBe(2);
    expect(feature.stderr).toContain("expected next_color or window:<color>:<50, 80 or 90>");
    expect(both.code).toBe(2);
  });
});

/** Replays the first table up to its live state, as the job does. */
async function calibrate({ sql, tableId }: World): Promise<void> {
  const [asked] = await sql<{ id: string }[]>`
    insert into calibration_runs (table_id, kind, model)
    select table_id, 'rolling', model from table_heads where table_id = ${tableId}
    returning id::text`;
  await runRollingCalibration(sql, asked?.id ?? "", new AbortController().signal);
}
