import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { anchorHours } from "../../src/forecasts/chain/anchors.ts";
import { createAnchoredWorld, hashOf, TABLES, type AnchoredWorld } from "../forecasts/anchored.ts";
import { makeFile, makeFolder, roundhouse } from "./world.ts";

/** Three hours, the one between without forecasts, and one that runs. */
async function anchoredWorld(): Promise<AnchoredWorld> {
  const world = await createAnchoredWorld();
  await world.save([
    ...TABLES.map((table) => ({ table, seq: 1, hoursAgo: 4 })),
    ...TABLES.map((table) => ({ table, seq: 2, hoursAgo: 2 })),
    { table: "a/crash/eu", seq: 3, hoursAgo: 2 },
    { table: "a/crash/eu", seq: 4, hoursAgo: 0 },
  ]);
  await anchorHours(world.sql, new AbortController().signal);
  return world;
}

const run = ({ url }: AnchoredWorld, ...args: string[]) => roundhouse(args, { env: { DATABASE_URL: url } });

/** Programs in the README that a reader is told to keep as a file. */
async function programOfReadme(file: string): Promise<string> {
  const readme = await readFile(join(import.meta.dirname, "../../README.md"), "utf8");
  const [, program] = new RegExp(`\`${file}\`[^\\n]*\\n+\`\`\`js\\n(.*?)\`\`\``, "s").exec(readme) ?? [];
  if (program === undefined) throw new Error(`expected a program after ${file} in the README, found none`);
  return makeFile(file, program);
}

describe("export roots", () => {
  it("lists every hour since the first forecast in order, as CSV or as JSON", async () => {
    const world = await anchoredWorld();
    const { code, stdout } = await run(world, "export", "roots");
    expect(code).toBe(0);
    const [head, ...lines] = stdout.trimEnd().split("\n");
    expect(head).toBe("hour,size,root");
    expect(lines.slice(0, 3)).toEqual([
      expect.stringMatching(new RegExp(`^${world.hourOf(4)},5,[0-9a-f]{64}$`)),
      `${world.hourOf(3)},0,e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855`,
      expect.stringMatching(new RegExp(`^${world.hourOf(2)},6,[0-9a-f]{64}$`)),
    ]);
    const json = await run(world, "export", "roots", "--format", "json");
    const hours = JSON.parse(json.stdout) as { hour: string; size: number; root: string }[];
    expect(hours.map(({ hour, size, root }) => `${hour},${size},${root}`)).toEqual(lines);
  });

  it("is an empty list before the first hour is over", async () => {
    const world = await createAnchoredWorld();
    expect(await run(world, "export", "roots")).toMatchObject({ code: 0, stdout: "hour,size,root\n" });
    expect(await run(world, "export", "roots", "--format", "json")).toMatchObject({ code: 0, stdout: "[]\n" });
  });

  it("goes on from page to page in the order of hours", async () => {
    const world = await createAnchoredWorld();
    await world.sql`
      insert into anchors (hour, size, root)
      select '2026-01-01T00:00Z'::timestamptz - n * interval '1 hour', n, repeat('0', 64)
      from generate_series(1, 10001) as n`;
    const { stdout } = await run(world, "export", "roots");
    const sizes = stdout
      .trimEnd()
      .split("\n")
      .slice(1)
      .map((line) => Number(line.split(",")[1]));
    expect(sizes).toEqual(Array.from({ length: 10001 }, (_, index) => 10001 - index));
    const json = await run(world, "export", "roots", "--format", "json");
    expect(JSON.parse(json.stdout)).toHaveLength(10001);
  });
});

describe("export proof", () => {
  it("gives a proof that the program in the README leads to the line of the hour", async () => {
    const world = await anchoredWorld();
    const program = await programOfReadme("check-proof.mjs");
    const check = (proof: string) =>
      spawnSync(process.execPath, [program], { input: proof, encoding: "utf8", cwd: join(program, "..") });
    const kept = await makeFile("roots.csv", (await run(world, "export", "roots")).stdout);
    // as the README has it: grep -Fxf - roots.csv
    const keptLine = (input: string) => spawnSync("grep", ["-Fxf", "-", kept], { input, encoding: "utf8" }).stdout;
    for (const forecast of [
      { table: "a/crash/eu", seq: 1, hoursAgo: 4 },
      { table: "b/crash/global", seq: 2, hoursAgo: 2 },
    ]) {
      const { code, stdout } = await run(world, "export", "proof", world.idOf(forecast));
      expect(code).toBe(0);
      const proof = JSON.parse(stdout) as Record<string, unknown> & { index: number; proof: string[] };
      expect(Object.keys(proof)).toEqual(["forecast_id", "hash", "hour", "index", "size", "proof", "root"]);
      expect(proof).toMatchObject({ hash: hashOf(forecast), hour: world.hourOf(forecast.hoursAgo) });
      const line = `${proof["hour"] as string},${proof["size"] as number},${proof["root"] as string}`;
      expect(keptLine(check(stdout).stdout)).toBe(`${line}\n`);
      const others = [
        { ...proof, hash: hashOf({ table: "other", seq: 1 }) },
        { ...proof, proof: proof.proof.slice(1) },
        { ...proof, proof: [...proof.proof, proof["hash"]] },
        { ...proof, index: proof.index ^ 1 },
        { ...proof, size: 7 },
      ];
      for (const other of others) expect(keptLine(check(JSON.stringify(other)).stdout)).toBe("");
    }
  });

  it("ends with 1 and says why where there is no forecast, or its hour runs still", async () => {
    const world = await anchoredWorld();
    const unknown = await run(world, "export", "proof", "f1-999");
    expect(unknown).toMatchObject({ code: 1, stdout: "" });
    expect(unknown.stderr).toContain('there is no forecast "f1-999"');
    const open = await run(world, "export", "proof", world.idOf({ table: "a/crash/eu", seq: 4 }));
    expect(open).toMatchObject({ code: 1, stdout: "" });
    expect(open.stderr).toContain(`the hour ${world.hourOf(0)} of forecast`);
    expect(open.stderr).toContain("is not closed yet; ask again after");
    expect(await run(world, "export", "proof")).toMatchObject({ code: 2, stdout: "" });
  });

  it("finds nothing to run in a folder that is not there", async () => {
    const { code, stderr } = await roundhouse(["export", "roots"], { env: { DATA_DIR: await makeFolder() } });
    expect(code).toBe(1);
    expect(stderr).toContain("nothing is running here");
  });
});
