import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { adapters } from "../../../src/houses/adapters/index.ts";
import { connect, type Sql } from "../../../src/db/client.ts";
import { parseMultiplier } from "../../../src/houses/reading/multiplier.ts";
import { colorOf } from "../../../src/rounds/colors.ts";
import type { Passes } from "../../../src/pass/passes.ts";
import { createDatabase } from "../../support/database.ts";
import { passesTo } from "../../support/passes-to.ts";
import { RECORDED_FOLDER } from "../../support/recorded.ts";
import { expectSameRounds, paletteOf } from "./same.ts";
import { replay } from "./world.ts";

/** Of long files a sample is replayed, their first rounds; with RECORDED_ROUNDS_ALL=1 (`npm run replay`) all of them. */
const isWhole = process.env["RECORDED_ROUNDS_ALL"] === "1";
if (isWhole && RECORDED_FOLDER === "") throw new Error("expected the folder of the recorded rounds in RECORDED_ROUNDS");
/** One page of our own format, and more rounds than any file that is served as a house's own list has. */
const SAMPLE = 5_000;
/** If each round has its own page, each costs a poll and a read. */
const PAGES = { sample: 100, whole: 3_000 };
const TIMEOUT_MS = isWhole ? 600_000 : 60_000;

/** Each file as its own house serves it, and if that is page by page, a second time as a whole. */
const FILES = [
  { file: "aviator_betika_2023.csv.gz", as: "json", colors: "aviator", rows: 80_898 },
  { file: "aviatrix_2026.csv.gz", as: "json", colors: "ours", rows: 27_645 },
  { file: "ethercrash_2024.csv.gz", as: "ethercrash", colors: "ethercrash", rows: 24_019 },
  { file: "ethercrash_2024.csv.gz", as: "json", colors: "ethercrash", rows: 24_019 },
  { file: "ethercrash_noclock.csv.gz", as: "ethercrash", colors: "ethercrash", rows: 56_500 },
  { file: "ethercrash_noclock.csv.gz", as: "json", colors: "ethercrash", rows: 56_500 },
  { file: "stake_crash_2026.csv.gz", as: "stake", colors: "stake", rows: 4_223 },
  { file: "jetx_2025.csv.gz", as: "json", colors: "jetx", rows: 9_546 },
  { file: "bustabit_2026.csv.gz", as: "bustabit", colors: "bustabit", rows: 17_317 },
  { file: "bustabit_2026.csv.gz", as: "json", colors: "bustabit", rows: 17_317 },
  { file: "blaze_crash_2022.csv.gz", as: "blaze", colors: "blaze", rows: 1_088 },
  { file: "blaze_crash_2023_socket.csv.gz", as: "blaze", colors: "blaze", rows: 3_829 },
  { file: "crash_1xbet_like_2024.csv.gz", as: "json", colors: "1xbet", rows: 5_000 },
  { file: "ethcrash_io_2018.csv.gz", as: "ethcrash-io", colors: "ethcrash-io", rows: 90_526 },
  { file: "ethcrash_io_2018.csv.gz", as: "json", colors: "ethcrash-io", rows: 90_526 },
  { file: "bcgame_verify_slice.csv", as: "bcgame", colors: "bcgame", rows: 1_530 },
] as const;

describe.skipIf(RECORDED_FOLDER === "")("recorded rounds", () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let world: { sql: Sql; passes: Passes };
  beforeAll(async () => {
    database = await createDatabase();
    world = { sql: connect(database.url, { name: "test" }), passes: passesTo(database.url) };
  });
  afterAll(async () => {
    await world.sql.end();
    await database.drop();
  });

  test.each(FILES)(
    "the replay of $file as $as ends with the same rounds as the file, none lost, none doubled, in order",
    { timeout: TIMEOUT_MS },
    async ({ file, as, colors, rows }) => {
      const byPage = adapters[as].rounds === "page";
      const most = byPage ? (isWhole ? PAGES.whole : PAGES.sample) : isWhole ? rows : SAMPLE;
      const replayed = await replay(world, { file: path.join(RECORDED_FOLDER, file), as, colors, limit: most });
      expect(replayed.rounds).toHaveLength(Math.min(most, rows));
      expectSameRounds(replayed, { colors, byPage });
    },
  );

  test(
    "published rounds of BC.Game are proven by the chain of 2022 on their way in",
    { timeout: TIMEOUT_MS },
    async () => {
      const file = path.join(RECORDED_FOLDER, "bcgame_verify_slice.csv");
      const { stored, quarantined } = await replay(world, { file, as: "bcgame", chain: "bcgame-2022" });
      expect([stored.length, quarantined]).toEqual([1_530, []]);
      expect(stored.filter(({ verified }) => verified !== true)).toEqual([]);
    },
  );

  test("the palette of Aviator gives every value the color in which the page showed it", async () => {
    const [, ...lines] = (await readFile(path.join(RECORDED_FOLDER, "aviator_colors_2024.csv"), "utf8"))
      .trim()
      .split("\n");
    const shown = lines.map((line) => /^([\d.,]+x),"rgb\([\d, ]+\)",([a-z]+),/.exec(line)?.slice(1) ?? []);
    expect(shown).toHaveLength(609);
    const ours = shown.map(([displayed]) => {
      const value = parseMultiplier(displayed, { scale: 1, instant: [] });
      return [displayed, value.ok ? colorOf(value.hundredths, paletteOf("aviator")) : value.reason];
    });
    expect(ours).toEqual(shown);
  });

  test("the folder has every file", () => {
    expect(FILES.filter(({ file }) => !existsSync(path.join(RECORDED_FOLDER, file)))).toEqual([]);
  });
});
