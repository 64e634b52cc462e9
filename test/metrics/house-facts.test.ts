import { expect, it } from "vitest";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { readHouses } from "../../src/metrics/house-facts-store.ts";
import { openTestDatabase } from "../support/database.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";

const { sql } = await openTestDatabase();

it("gives a house without enabled tables no lag, since it is not polled", async () => {
  await applyHouses(sql, [
    houseEntry({ id: "alpha" }),
    houseEntry({ id: "beta", tables: [tableEntry({ enabled: false })] }),
  ]);
  const houses = await sql.begin((tx) => readHouses(tx));
  expect(houses.map(({ house, tables, lag }) => [house, tables, lag])).toEqual([
    ["alpha", 1, expect.any(Number)],
    ["beta", 0, null],
  ]);
});
