import { expect, it } from "vitest";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import { takeRequest } from "../../../src/houses/polling/budget-store.ts";
import { openTestDatabase } from "../../support/database.ts";
import { houseEntry } from "../../support/houses.ts";

const { sql } = await openTestDatabase();

it("a budget spent until two hours ahead, by a clock that was set back, is spent for a minute at most", async () => {
  await applyHouses(sql, [houseEntry()]);
  await sql`insert into request_budgets (house_id, spent_until) values ('alpha', now() + interval '2 hours')`;
  const waitMs = await takeRequest(sql, "alpha", 1);
  expect(waitMs).toBeGreaterThan(0);
  expect(waitMs).toBeLessThanOrEqual(60_000);
  await sql`update request_budgets set spent_until = spent_until - ${waitMs} * interval '1 millisecond'`;
  expect(await takeRequest(sql, "alpha", 1)).toBe(0);
  expect(await takeRequest(sql, "alpha", 1)).toBeGreaterThan(0);
});
