import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { setPlan } from "../../src/callers/plan-store.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { houseEntry } from "../support/houses.ts";
import { openOpsWorld, type OpsWorld, type CookieClient } from "../ops/world.ts";

let world: OpsWorld;
let admin: CookieClient;
let operator: CookieClient;

beforeAll(async () => {
  world = await openOpsWorld();
  await applyHouses(world.sql, [houseEntry(), houseEntry({ id: "beta", name: "Beta" })]);
  [admin, operator] = [await world.as("admin"), await world.as("operator")];
  for (const [email, plan, used] of [
    ["ann@example.com", "Pro", 70],
    ["ben@example.com", "Pro", 7],
    ["cem@example.com", "Starter", 0],
  ] as const) {
    const made = await createAccount(world.sql, email);
    if (!made.ok) throw new Error(made.problem);
    await world.sql`insert into entitlements (account_id, plan) values (${made.id}, ${plan})`;
    await world.sql`
      insert into quotas (account_id, period, used)
      values
        (${made.id}, to_char(now() at time zone 'UTC', 'YYYY-MM-DD'), ${used}),
        (${made.id}, to_char(now() at time zone 'UTC', 'YYYY-MM'), ${used * 10})`;
  }
});
afterAll(() => world.close());

const text = async (response: Response) => (await response.text()).replaceAll(/\s+/g, " ").replaceAll("&#39;", "'");
async function page(path: string, as: CookieClient = admin): Promise<string> {
  const response = await as.get(path);
  const body = await text(response);
  expect([path, response.status]).toEqual([path, 200]);
  expect(body).not.toMatch(/undefined|NaN|\[object/);
  return body;
}

/** The fields of the form of Pro as it is now, with some changed. */
async function formOf(changed: Record<string, string | string[]> = {}): Promise<Record<string, string | string[]>> {
  const [plan] = await world.sql<{ revision: string }[]>`select revision::text from plans where name = 'Pro'`;
  return {
    revision: plan?.revision ?? "",
    day: "100000",
    month: "2500000",
    ceiling: "",
    rps: "10",
    burst: "20",
    price: "99.00",
    days: "30",
    on_sale: "yes",
    houses: "all",
    ...changed,
  };
}
function preview(fields: Record<string, string | string[]>): string {
  const query = new URLSearchParams();
  for (const [name, values] of Object.entries(fields)) for (const value of [values].flat()) query.append(name, value);
  return `/ops/plans/Pro/preview?${query.toString()}`;
}

describe("plans at /ops", () => {
  it("are listed with all that they allow and how many have them", async () => {
    const list = await page("/ops/plans", operator);
    expect(list).toMatch(/Pro<\/a><\/th> <td><span class="badge good">yes<\/span><\/td> <td class="num">99\.00/);
    expect(list).toContain("1,000,000");
    await world.sql`update plans set day_ceiling = 777777 where name = 'Pro'`;
    const limited = await page("/ops/plans", operator);
    await world.sql`update plans set day_ceiling = null where name = 'Pro'`;
    expect(limited).not.toContain("777,777"); // it counts only without a daily limit
    const pro = await page("/ops/plans/Pro");
    expect(pro).toContain("2 accounts have this plan now, 0 begin it later");
    expect(pro.indexOf("ann@example.com")).toBeLessThan(pro.indexOf("ben@example.com"));
    expect(pro).not.toContain("cem@example.com");
    expect(await page("/ops/plans/Pro", operator)).toContain("Plans are changed by admins");
    expect((await admin.get("/ops/plans/Gold")).status).toBe(404);
  });

  it("are previewed before they are changed: what, and who notices", async () => {
    const shown = await page(
      preview(await formOf({ day: "50", month: "", price: "89.5", houses: "some", house: "beta" })),
    );
    expect(shown).toContain("<td>100,000</td><td><strong>50</strong></td>");
    expect(shown).toContain("<td>2,500,000</td><td><strong>no limit</strong></td>");
    expect(shown).toContain("<td>99.00</td><td><strong>89.50</strong></td>");
    expect(shown).toContain("2 accounts with Pro now");
    expect(shown).toContain("1 account of them used more today than the new limit");
    expect(shown).not.toContain("used more this month");
    expect(shown).toContain("They lose every house that is not named");
    expect(shown).toContain('<input type="hidden" name="price" value="89.50">');
    expect(await page(preview(await formOf()))).toContain("Nothing would change");
    expect(await page(preview(await formOf({ revision: "99" })))).toContain("was changed meanwhile");
    expect((await admin.get(preview(await formOf({ price: "much" })))).status).toBe(400);
    expect((await world.sql`select from plans where name = 'Pro' and day_limit = 100000`).length).toBe(1);
  });

  it("are changed by an admin, with a reason, once, and leave an entry in the audit log", async () => {
    const form = await formOf({
      day: "50000",
      on_sale: "no",
      houses: "some",
      house: ["alpha", "beta"],
      reason: "a test",
    });
    expect((await operator.post("/ops/plans/Pro", form)).status).toBe(403);
    expect((await admin.post("/ops/plans/Pro", { ...form, reason: " " })).status).toBe(400);
    const done = await admin.post("/ops/plans/Pro", form);
    expect([done.status, done.headers.get("location")]).toEqual([303, "/ops/plans/Pro"]);
    const pro = await page("/ops/plans/Pro");
    expect(pro).toContain("It is off sale");
    expect(await page("/ops/plans")).toContain("<td>alpha, beta</td>");
    const [entry] = await world.sql`
      select actor, target, before, after, reason from audit_log where action = 'plan.set'`;
    expect(entry).toMatchObject({
      actor: "admin@example.com",
      target: "plan Pro",
      before: { day_limit: "100000", on_sale: true, houses: null },
      after: { day_limit: "50000", on_sale: false, houses: ["alpha", "beta"] },
      reason: "a test",
    });
    const again = await admin.post("/ops/plans/Pro", form);
    expect([again.status, await text(again)]).toEqual([422, expect.stringContaining("Pro was changed meanwhile")]);
    expect(await world.sql`select from audit_log where action = 'plan.set'`).toHaveLength(1);
    await setPlan(world.sql, "Pro", { onSale: true, houses: "all", day: 100_000 });
  });

  it("are not changed to what cannot be", async () => {
    for (const [changed, problem] of [
      [{ houses: "some" }, "expected at least one house"],
      [{ houses: "some", house: "gamma" }, "there is no house gamma"],
      [{ burst: "5" }, "a burst of 5 is below 10"],
      [{ day: "0" }, "expected calls a day from 1"],
      [{ days: "99999" }, "expected days from 1 to 3660"],
    ] as const) {
      const response = await admin.post("/ops/plans/Pro", { ...(await formOf(changed)), reason: "a test" });
      expect([changed, response.status, await text(response)]).toEqual([
        changed,
        422,
        expect.stringContaining(problem),
      ]);
    }
  });
});
