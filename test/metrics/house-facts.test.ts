import { expect, it } from "vitest";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { readDatabaseFacts } from "../../src/metrics/facts-store.ts";
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

it("counts the rounds that are still missing in open gaps, without those that were fetched", async () => {
  await applyHouses(sql, [houseEntry({ id: "alpha" })]);
  await sql`
    insert into gaps (table_id, from_number, to_number, missing, filled, after_round_id, before_round_id)
    select id, 11, 20, 10, 4, '10', '21'
    from tables
    where house_id = 'alpha'`;
  const { openItems } = await readDatabaseFacts(sql);
  expect(openItems).toEqual([
    { house: "alpha", kind: "gaps", n: 1 },
    { house: "alpha", kind: "missing", n: 6 },
  ]);
});
