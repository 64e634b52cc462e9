import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  FORECAST_COLUMNS,
  readForecastsForExport,
  readScoresForExport,
  SCORE_COLUMNS,
} from "../../../src/forecasts/chain/export-store.ts";
import { csvField } from "../../../src/frame/csv.ts";
import { publishLog } from "../../../src/record/log/publish-log.ts";
import { readRoundsForExport, ROUND_COLUMNS } from "../../../src/rounds/export-store.ts";
import { allowSlowness, play, score, tableIdOf } from "../../api/play.ts";
import { makeWorld, type World } from "../../api/world.ts";

const SCRIPT = fileURLToPath(new URL("../../../docs/verify_record.py", import.meta.url));
const TABLE = "alpha/crash/global";
const run = promisify(execFile);

let world: World;
let folder: string;

beforeAll(async () => {
  world = await makeWorld();
  folder = await mkdtemp(join(tmpdir(), "log-"));
  await allowSlowness(world);
  for (const hundredths of [150, 230, 1150, 120, 340, 101, 199]) await play(world, TABLE, [hundredths]);
  await score(world, "alpha");
  await publish();
  const kept = await (await fetch(`${world.api.url}/log/checkpoint`)).text();
  await writeFile(join(folder, "kept.txt"), kept);
  const id = await tableIdOf(world, TABLE);
  await exportTo("rounds", ROUND_COLUMNS, readRoundsForExport(world.sql, id));
  await exportTo("forecasts", FORECAST_COLUMNS, readForecastsForExport(world.sql, id));
  await exportTo("scores", SCORE_COLUMNS, readScoresForExport(world.sql, id));
  await play(world, TABLE, [410]);
  await publish();
}, 60_000);
afterAll(async () => {
  await world.close();
  await rm(folder, { recursive: true });
});

async function publish(): Promise<void> {
  await publishLog(world.sql, { folder, publicUrl: undefined, witnesses: [] }, new AbortController().signal);
}

async function exportTo<Column extends string>(
  name: string,
  columns: readonly Column[],
  pages: AsyncIterable<Record<Column, string>[]>,
): Promise<void> {
  const lines = [columns.join(",")];
  for await (const page of pages)
    for (const row of page) lines.push(columns.map((column) => csvField(row[column])).join(","));
  await writeFile(join(folder, `${name}.csv`), `${lines.join("\n")}\n`);
}

/** Runs the verifier; null when there is no Python. */
async function check(...files: string[]): Promise<{ code: number; text: string } | null> {
  try {
    const { stdout } = await run("python3", [SCRIPT, world.api.url, ...files], { timeout: 30_000 });
    return { code: 0, text: stdout };
  } catch (error) {
    const { code, stderr } = error as { code: number | string; stderr: string };
    return code === "ENOENT" ? null : { code: Number(code), text: stderr };
  }
}

const EXPORTS = () => ["rounds", "forecasts", "scores"].flatMap((name) => [`--${name}`, join(folder, `${name}.csv`)]);

describe("the independent verifier in Python", () => {
  test("checks log, kept checkpoint, exports and accuracy rows of a running instance", async (context) => {
    const found = await check("--kept", join(folder, "kept.txt"), ...EXPORTS());
    if (found === null) return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 0 });
    expect(found.text).toMatch(
      /^ok: localhost\/log\/.* 4 entries lead to the signed root; 1 statements and \d+ accuracy rows/,
    );
  });

  test("names a changed export, and a checkpoint of another log", async (context) => {
    const rounds = join(folder, "other.csv");
    await writeFile(rounds, (await readFile(join(folder, "rounds.csv"), "utf8")).replace(",230,", ",231,"));
    const changed = await check("--kept", join(folder, "kept.txt"), ...EXPORTS().with(1, rounds));
    if (changed === null) return context.skip("python3 is not installed");
    expect(changed).toMatchObject({ code: 1 });
    expect(changed.text).toMatch(/^WRONG: expected hash [0-9a-f]{64} in rounds/);
    const other = join(folder, "other.txt");
    await writeFile(other, (await readFile(join(folder, "kept.txt"), "utf8")).replace("\n3\n", "\n2\n"));
    expect(await check("--kept", other)).toEqual({
      code: 1,
      text: "WRONG: expected a checkpoint that the log's key signed\n",
    });
  });
});
