import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { adapters } from "../../../src/houses/adapters/index.ts";
import { wireFormats } from "../../../src/demo/replay/formats.ts";
import { connect, type Sql } from "../../../src/db/client.ts";
import type { Passes } from "../../../src/pass/passes.ts";
import { createDatabase } from "../../support/database.ts";
import { passesTo } from "../../support/passes-to.ts";
import { expectSameRounds } from "./same.ts";
import { replay } from "./world.ts";

/**
 * Our own files, 30 rounds each, for a checkout without recorded ones. Results are ⌊97·2³² / (2³² − x)⌋ hundredths and
 * at least 100, x from a linear congruential generator; oddities of real files were added manually.
 */
const FIXTURES = path.join(import.meta.dirname, "../../fixtures/replay");

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

const CASES = [
  {
    file: "json",
    as: "json",
    colors: "aviator",
    odd: "ids with a hole, a value that was missed, an instant crash as 0",
  },
  { file: "rows", as: "json", colors: "jetx", odd: "no ids, a clock that steps back, seven equal results in a row" },
  { file: "blaze", as: "blaze", colors: "blaze", odd: "opaque ids, instant crashes as 0" },
  { file: "stake", as: "stake", colors: "stake", odd: "UUIDs, up to seven decimals, 1.9999" },
  { file: "bcgame", as: "bcgame", colors: "bcgame", odd: "hashes, no clock, one decimal" },
  { file: "bustabit", as: "bustabit", colors: "bustabit", odd: "whole numbers and thousands" },
  { file: "ethercrash", as: "ethercrash", colors: "ethercrash", odd: "0.00, whole numbers and thousands" },
  { file: "ethcrash-io", as: "ethcrash-io", colors: "ethcrash-io", odd: "no ids, hundredths" },
  { file: "roobet", as: "roobet", colors: "roobet", odd: "no clock" },
  { file: "lucky-jet", as: "lucky-jet", colors: "lucky-jet", odd: "hashes as ids" },
];

test.each(CASES)(
  "the rounds that the replay of the file $file as $as serves are stored ($odd)",
  async ({ file, as, colors }) => {
    const replayed = await replay(world, { file: path.join(FIXTURES, `${file}.csv`), as, colors });
    expect(replayed.rounds).toHaveLength(30);
    expectSameRounds(replayed, { colors, byPage: adapters[as as keyof typeof adapters].rounds === "page" });
  },
);

test("every adapter has a wire format of its name, and is replayed here", () => {
  expect([...wireFormats.keys()].toSorted()).toEqual(Object.keys(adapters).toSorted());
  expect([...new Set(CASES.map(({ as }) => as))].toSorted()).toEqual(Object.keys(adapters).toSorted());
});

test("digits are kept as they were sent, and hashes with them", async () => {
  const replayOf = (as: string) => replay(world, { file: path.join(FIXTURES, `${as}.csv`), as, limit: 20 });
  const { rounds, stored } = await replayOf("stake");
  expect(stored.map(({ raw }) => raw)).toEqual(rounds.map(({ multiplier }) => multiplier));
  expect(stored.find(({ raw }) => raw === "1.9999")).toMatchObject({ hundredths: 199, color: "blue" });
  const bcgame = await replayOf("bcgame");
  expect(bcgame.stored.map(({ hash }) => hash)).toEqual(bcgame.rounds.map(({ hash }) => hash));
  const json = await replayOf("json");
  expect(json.stored.map(({ raw }) => raw)).toEqual(json.rounds.map(({ multiplier }) => multiplier));
});
