import { beforeAll, expect, it } from "vitest";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { readDatabaseFacts } from "../../src/metrics/facts-store.ts";
import { openTestDatabase } from "../support/database.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";

const { sql } = await openTestDatabase();

beforeAll(async () => {
  const tables = ["one", "two"].map((market) => tableEntry({ market }));
  await applyHouses(sql, [houseEntry({ id: "alpha", tables }), houseEntry({ id: "beta", tables })]);
  await makeConflicts("alpha", 6_000);
  await makeConflicts("beta", 3);
});

/** Stores undecided conflicts of each table of a house. */
async function makeConflicts(house: string, count: number): Promise<void> {
  await sql`
    insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
    select t.id, n::text, 1, 2, ''
    from tables t
    cross join generate_series(1, ${count}::integer) n
    where t.house_id = ${house}`;
}

it("the metrics count at most 10,000 undecided conflicts of a house, and all of another", async () => {
  const { openItems } = await readDatabaseFacts(sql);
  expect(openItems.filter(({ kind }) => kind === "conflicts")).toEqual([
    { house: "alpha", kind: "conflicts", n: 10_000 },
    { house: "beta", kind: "conflicts", n: 6 },
  ]);
});
