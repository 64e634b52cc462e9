import { beforeAll, expect, it } from "vitest";
import { listPlans, listPlanSettings, setPlan } from "../../src/callers/plan-store.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { houseEntry } from "../support/houses.ts";

const { sql } = await openTestDatabase({ max: 3 });

beforeAll(async () => {
  await applyHouses(sql, [houseEntry(), houseEntry({ id: "beta" })]);
});

const planOf = async (name: string) => (await listPlans(sql)).find((plan) => plan.name === name);

it("three plans are there from the beginning, with all houses", async () => {
  expect(await listPlans(sql)).toEqual([
    {
      name: "Starter",
      houses: null,
      day_limit: 20_000n,
      month_limit: 500_000n,
      burst_per_second: 2,
      burst: 5,
      price: "29.00",
      days: 30,
      on_sale: true,
    },
    {
      name: "Pro",
      houses: null,
      day_limit: 100_000n,
      month_limit: 2_500_000n,
      burst_per_second: 10,
      burst: 20,
      price: "99.00",
      days: 30,
      on_sale: true,
    },
    {
      name: "Max",
      houses: null,
      day_limit: null,
      month_limit: null,
      burst_per_second: 25,
      burst: 50,
      price: "299.00",
      days: 30,
      on_sale: true,
    },
  ]);
});

it("a plan is changed in what is given, and keeps the rest", async () => {
  const outcome = await setPlan(sql, "starter", {
    day: 7,
    month: null,
    priceMicros: 12_345_000n,
    houses: ["beta", "alpha", "beta"],
  });
  const changed = {
    name: "Starter",
    houses: ["alpha", "beta"],
    day_limit: 7n,
    month_limit: null,
    burst_per_second: 2,
    burst: 5,
    price: "12.345",
    days: 30,
    on_sale: true,
    day_ceiling: null,
    revision: 2n,
  };
  expect(outcome).toMatchObject({ ok: true, before: { day_limit: 20_000n, houses: null }, after: changed });
  expect(await setPlan(sql, "Starter", { rps: 3, burst: 3, days: 10 })).toMatchObject({
    ok: true,
    before: changed,
    after: { ...changed, burst_per_second: 3, burst: 3, days: 10, revision: 3n },
  });
  await setPlan(sql, "Starter", { houses: "all", day: null });
  expect(await planOf("Starter")).toMatchObject({ houses: null, day_limit: null });
});

it("of concurrent changes each reports what it changed, so that they form a chain", async () => {
  const first = await planOf("Max");
  // somebody holds the plan until both have begun, so that each would have read the same before
  const held = Promise.withResolvers<void>();
  const holding = sql.begin(async (tx) => {
    await tx`select from plans where name = 'Max' for update`;
    held.resolve();
    await eventually(async () => {
      await tx`select pg_stat_clear_snapshot()`; // what others wait for is else read once in a transaction
      const [row] = await tx<{ n: number }[]>`
        select count(*)::integer as n
        from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and wait_event_type = 'Lock'`;
      return row?.n === 2;
    });
  });
  await held.promise;
  const outcomes = await Promise.all([101, 102].map((day) => setPlan(sql, "max", { day })));
  await holding;
  const steps = outcomes.map((outcome) => (outcome.ok ? [outcome.before.day_limit, outcome.after.day_limit] : []));
  const last = (await planOf("Max"))?.day_limit ?? null;
  const middle = last === 101n ? 102n : 101n;
  expect(steps.toSorted((a) => (a[1] === middle ? -1 : 1))).toEqual([
    [first?.day_limit, middle],
    [middle, last],
  ]);
  await setPlan(sql, "Max", { day: null });
});

it("the ceiling of a plan is its operator's: no list that callers see has it", async () => {
  const outcome = await setPlan(sql, "Max", { ceiling: 5 });
  expect(outcome).toMatchObject({ ok: true, after: { name: "Max", day_limit: null, day_ceiling: 5n } });
  expect((await listPlanSettings(sql)).map(({ name, day_ceiling }) => [name, day_ceiling])).toContainEqual(["Max", 5n]);
  expect(await planOf("Max")).not.toHaveProperty("day_ceiling");
  expect(await setPlan(sql, "Max", { ceiling: null })).toMatchObject({ after: { day_ceiling: null } });
});

it.each([
  [{ houses: ["alpha", "nowhere", "else"] }, "there is no house nowhere, else"],
  [{ houses: [] }, "expected at least one house"],
  [{ rps: 21 }, "a burst of 20 is below 21 calls a second"],
  [{ day: 0 }, "expected calls a day from 1"],
  [{ ceiling: 0 }, "expected calls a day as the ceiling from 1"],
  [{ month: 1.5 }, "expected calls a month from 1"],
  [{ burst: -1 }, "expected calls in a burst from 1"],
  [{ days: 0 }, "expected days from 1"],
  [{ priceMicros: -1n }, "expected a price from 0"],
  [{ priceMicros: 1_000_000_000_001n }, "expected a price from 0 to 1000000"],
])("an impossible change is refused and changes nothing: %o", async (changes, reason) => {
  const before = await planOf("Pro");
  expect(await setPlan(sql, "Pro", { days: 99, ...changes })).toEqual({
    ok: false,
    problem: expect.stringContaining(reason),
  });
  expect(await planOf("Pro")).toEqual(before);
});

it("a plan is taken off sale and put back, and a change that was made from an older one is refused", async () => {
  const [seen] = (await listPlanSettings(sql)).filter(({ name }) => name === "Max").map(({ revision }) => revision);
  expect(await setPlan(sql, "Max", { onSale: false }, seen)).toMatchObject({ ok: true, after: { on_sale: false } });
  const late = await setPlan(sql, "Max", { days: 31 }, seen);
  expect(late).toEqual({ ok: false, problem: expect.stringContaining("Max was changed meanwhile") });
  expect(await planOf("Max")).toMatchObject({ on_sale: false, days: 30 });
  expect(await setPlan(sql, "Max", { onSale: true })).toMatchObject({ ok: true, after: { on_sale: true } });
});

it("an unknown plan is refused, naming those there are", async () => {
  expect(await setPlan(sql, "Gold", { day: 1 })).toEqual({
    ok: false,
    problem: 'there is no plan "Gold"; there are Starter, Pro, Max',
  });
});
