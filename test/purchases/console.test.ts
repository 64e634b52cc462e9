import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { setPlan } from "../../src/callers/plan-store.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { type ConsoleWorld, openConsoleWorld } from "../console/world.ts";
import { parseUsd } from "../../src/money.ts";
import { takeBack } from "../support/take-back.ts";
import { houseEntry } from "../support/houses.ts";

const USD = 1_000_000n;
type Person = Awaited<ReturnType<ConsoleWorld["as"]>>;

let world: ConsoleWorld;
beforeAll(async () => {
  world = await openConsoleWorld();
  await applyHouses(world.sql, [houseEntry(), houseEntry({ id: "beta", name: "Beta" })]);
});
afterAll(() => world.close());

const text = async (response: Response) => (await response.text()).replaceAll(/\s+/g, " ").replaceAll("&#39;", "'");
async function page(client: Person, path: string): Promise<string> {
  const response = await client.get(path);
  const body = await text(response);
  expect([path, response.status]).toEqual([path, 200]);
  expect(body).not.toMatch(/undefined|NaN|\[object/);
  return body;
}

/** The fields of the form of a page, with both boxes ticked, as a browser would send it. */
function fieldsOf(body: string): Record<string, string> {
  const inputs = body.matchAll(/<input type="(?:hidden|checkbox)" name="(\w+)" value="([^"]*)"/g);
  return Object.fromEntries([...inputs].map(([, name = "", value = ""]) => [name, value]));
}
const formOf = async (client: Person, plan: string) => fieldsOf(await page(client, `/console/plans/${plan}/buy`));
const send = (client: Person, plan: string, fields: Record<string, string>) =>
  client.post(`/console/plans/${plan}/buy`, fields);
const bought = async (client: Person) =>
  (await world.sql`select from purchases where account_id = ${client.accountId}`).length;

async function richPerson(name: string, usd: bigint): Promise<Person> {
  const client = await world.as(name);
  await world.giveMoney(client.accountId, usd * USD);
  return client;
}

describe("a plan at the console", () => {
  it("is bought with two boxes and one button, and is there with the next call", async () => {
    const ann = await richPerson("ann", 100n);
    const { key } = await world.giveKey(ann.accountId, "server");
    const call = () => fetch(`${world.url}/api/v1/games`, { headers: { "X-Api-Key": key } });
    expect((await call()).status).toBe(402);
    const plans = await page(ann, "/console/plans");
    expect(plans).toContain('href="/console/plans/Pro/buy">Buy Pro</a>');
    expect(plans).toContain("<dt>Calls per day</dt><dd>100,000</dd>");
    expect(plans).toContain("Alpha, Beta");
    expect(plans).toContain("You need 199.00 USD more.");
    const before = await page(ann, "/console/plans/Pro/buy");
    expect(before).toContain("<button><span>Pay 99.00 USD from my balance</span></button>");
    expect(before).not.toMatch(/checkbox"[^>]*checked/);
    const fields = fieldsOf(before);
    expect(Object.keys(fields).toSorted()).toEqual(["is_final", "key", "offer", "start_now"]);
    const done = await send(ann, "Pro", fields);
    expect([done.status, done.headers.get("location")]).toEqual([303, expect.stringMatching(/purchases\/\d+$/)]);
    await expect.poll(async () => (await call()).status).toBe(200);
    const result = await page(ann, done.headers.get("location") ?? "");
    expect(result).toContain("The receipt is on its way by mail");
    expect(result).toContain("lose my right to withdraw");
    expect(result).toContain(
      "<dt>Included when bought</dt><dd>100,000 calls per day, 2,500,000 calls per month, 10 calls per second",
    );
    expect(result).toContain("<dt>Balance now, USD</dt><dd>1.00</dd>");
    expect(await page(ann, "/console/purchases")).toContain('<td class="num" data-name="Paid, USD">99.00</td>');
    const again = await send(ann, "Pro", fields);
    expect([again.status, again.headers.get("location")]).toEqual([303, done.headers.get("location")]);
    expect(await page(ann, again.headers.get("location") ?? "")).toContain("bought once");
    expect(await bought(ann)).toBe(1);
    const other = await send(ann, "Pro", { ...fields, offer: fields["offer"]?.replace("99000000", "98000000") ?? "" });
    expect([other.status, await text(other)]).toEqual([422, expect.stringContaining("has bought something else")]);
  });

  it("is renewed, changed now or changed later, with the result shown before", async () => {
    const ben = await richPerson("ben", 600n);
    await send(ben, "Pro", await formOf(ben, "Pro"));
    const plans = await page(ben, "/console/plans");
    for (const verb of ["Renew Pro", "Change to Max now", "Change to Starter later"]) expect(plans).toContain(verb);
    expect(plans).toMatch(/98\.9\d+ USD of the plan it replaces are credited/);
    expect(await page(ben, "/console/plans/Starter/buy")).toContain("Your Pro runs to its end");
    expect(await page(ben, "/console/plans/Pro/buy")).toContain("It continues when your Pro ends");
    const max = await page(ben, "/console/plans/Max/buy");
    expect(max).toContain("Replaced plans");
    expect(max).toContain("the amounts here hold for half an hour unless the plan is changed");
    expect((await send(ben, "Starter", await formOf(ben, "Starter"))).status).toBe(303);
    expect(await page(ben, "/console/plans/Pro/buy")).toContain("only one change can wait");
    const done = await send(ben, "Max", fieldsOf(await page(ben, "/console/plans/Max/buy")));
    const result = await page(ben, done.headers.get("location") ?? "");
    expect(result).toContain("It replaced");
    expect(await page(ben, "/console/purchases")).toContain("replaced by");
  });

  it("states what is charged to the micro-unit, so that credited and paid add up to the price", async () => {
    const ivy = await richPerson("ivy", 600n);
    await send(ivy, "Pro", await formOf(ivy, "Pro"));
    const amountOf = (body: string, pattern: RegExp) => {
      expect(body).toMatch(pattern);
      return parseUsd(pattern.exec(body)?.[1] ?? "") ?? 0n;
    };
    const offered = await page(ivy, "/console/plans/Max/buy");
    const credited = amountOf(offered, /Credited for the unused part, USD<\/dt><dd>([\d.]+)</);
    const pays = amountOf(offered, /You pay, USD<\/dt><dd>([\d.]+)</);
    expect(pays % 10_000n).not.toBe(0n); // a part of a cent
    expect(credited + pays).toBe(299n * USD);
    expect(amountOf(offered, /<button><span>Pay ([\d.]+) USD from my balance/)).toBe(pays);
    const plans = await page(ivy, "/console/plans");
    const onPlans =
      amountOf(plans, /You pay <strong>(2\d\d\.\d+) USD/) + amountOf(plans, /([\d.]+) USD of the plan it replaces/);
    expect(onPlans).toBe(299n * USD);
    const done = await send(ivy, "Max", fieldsOf(offered));
    const result = await page(ivy, done.headers.get("location") ?? "");
    expect(amountOf(result, /Paid, USD<\/dt><dd>([\d.]+)</)).toBe(pays);
    const left = 501n * USD - pays;
    expect(amountOf(result, /Balance now, USD<\/dt><dd>([\d.]+)</)).toBe(left);
    expect(amountOf(await page(ivy, "/console/purchases"), /data-name="Paid, USD">(2[\d.]+)</)).toBe(pays);
    const statement = await page(ivy, "/console/statement");
    expect(amountOf(statement, /data-name="Amount, USD">−(2[\d.]+)</)).toBe(pays);
    expect(amountOf(statement, /data-name="Balance after, USD">([\d.]+)</)).toBe(left);
    for (const path of ["", "/account", "/plans", "/top-up", "/statement"]) {
      const shown = await page(ivy, `/console${path}`);
      expect([path, amountOf(shown, /Balance(?:, USD)?(?:<\/a>)?<\/dt> ?<dd[^>]*> ?([\d.]+)/)]).toEqual([path, left]);
    }
  });

  it("states the missing amount to the micro-unit", async () => {
    const jan = await world.as("jan");
    await world.giveMoney(jan.accountId, 28_999_999n);
    expect(await page(jan, "/console/plans")).toContain("You need 0.000001 USD more.");
    expect(await page(jan, "/console/plans/Starter/buy")).toContain("You need 0.000001 USD more.");
  });

  it("states before payment and in the receipt that calls of the running month already reach its limit", async () => {
    const mia = await richPerson("mia", 600n);
    const use = (period: string, used: number) =>
      world.sql`
        insert into quotas (account_id, period, used)
        values (${mia.accountId}, to_char(now() at time zone 'UTC', ${period}), ${used})
        on conflict (account_id, period) do update set used = excluded.used`;
    await use("YYYY-MM", 499_999);
    expect(await page(mia, "/console/plans/Starter/buy")).not.toContain("_quota_exceeded");
    await use("YYYY-MM", 600_000);
    await use("YYYY-MM-DD", 20_000);
    const month =
      /600,000 of 500,000 calls of this month are used\. With Starter, calls are refused with month_quota_exceeded \(429\) until \d{4}-\d\d-01 00:00 UTC/;
    const offered = await page(mia, "/console/plans/Starter/buy");
    expect(offered).toMatch(month);
    expect(await page(mia, "/console/plans/Pro/buy")).not.toContain("_quota_exceeded");
    expect(await page(mia, "/console/plans/Max/buy")).not.toContain("_quota_exceeded");
    await send(mia, "Starter", fieldsOf(offered));
    const [mail] = await world.sql<{ body: string }[]>`
      select body from mails where recipient = 'mia@example.com' and kind = 'receipt'`;
    expect(mail?.body.replaceAll(/\s+/g, " ")).toMatch(month);
    await world.sql`
      update entitlements set ends_at = now() + interval '40 days' where account_id = ${mia.accountId}`;
    // the renewal starts in another month
    expect(await page(mia, "/console/plans/Starter/buy")).not.toContain("_quota_exceeded");
    const nia = await richPerson("nia", 29n);
    await world.sql`
      insert into quotas (account_id, period, used)
      values (${nia.accountId}, to_char(now() at time zone 'UTC', 'YYYY-MM-DD'), 20000)`;
    expect(await page(nia, "/console/plans/Starter/buy")).toMatch(
      /20,000 of 20,000 calls of today are used\. With Starter, calls are refused with day_quota_exceeded/,
    );
  });

  it("is shown as reversed once its payment was reversed", async () => {
    const lea = await richPerson("lea", 99n);
    const done = await send(lea, "Pro", await formOf(lea, "Pro"));
    const path = done.headers.get("location") ?? "";
    expect(await page(lea, path)).not.toContain("Reversed");
    const [paid] = await world.sql<{ transactionId: bigint }[]>`
      select transaction_id as "transactionId" from purchases where account_id = ${lea.accountId}`;
    await takeBack(world.sql, { transactionId: paid!.transactionId, accountId: lea.accountId, micros: 99n * USD });
    const shown = await page(lea, path);
    expect(shown).toContain("<dt>Reversed</dt>");
    expect(shown).toContain("99.00 USD were returned to your balance");
    expect(await page(lea, "/console/purchases")).toContain("plan bought, payment reversed");
    const offered = await page(lea, "/console/plans/Max/buy");
    expect(offered).toContain("what you paid for it and was not returned");
  });

  it("that was granted without an end explains why nothing can be bought next to it", async () => {
    const cem = await richPerson("cem", 600n);
    await world.sql`insert into entitlements (account_id, plan) values (${cem.accountId}, 'Starter')`;
    expect(await page(cem, "/console/plans")).toContain("you have Starter without an end, which was given to you");
    expect(await page(cem, "/console/plans/Pro/buy")).not.toContain('<form method="post" action="/console/plans');
  });

  it("that lasts longer because the remainder is worth more shows it before", async () => {
    const eve = await richPerson("eve", 200n);
    for (let n = 0; n < 4; n++) await send(eve, "Starter", await formOf(eve, "Starter"));
    const seen = await page(eve, "/console/plans/Pro/buy");
    expect(seen).toContain("The unused part is worth more than Pro costs. So you pay nothing");
    expect(seen).toContain("35.1 days instead of 30");
    expect(seen).toContain("<button><span>Get Pro, nothing to pay</span></button>");
    const done = await send(eve, "Pro", fieldsOf(seen));
    expect(await page(eve, done.headers.get("location") ?? "")).toContain(
      "so nothing was paid, and the plan lasts longer",
    );
  });

  it("off sale is shown only to its holders", async () => {
    const [dan, fay] = [await richPerson("dan", 300n), await richPerson("fay", 300n)];
    await send(dan, "Max", await formOf(dan, "Max"));
    await setPlan(world.sql, "Max", { onSale: false });
    expect(await page(dan, "/console/plans")).toContain("Not available now: Max is not on sale now.");
    expect(await page(fay, "/console/plans")).not.toContain("Max");
    expect(await page(fay, "/console/plans/Max/buy")).toContain("Max is not on sale now");
    await setPlan(world.sql, "Max", { onSale: true });
  });
});

describe("nothing is bought", () => {
  it("is not bought if a box is empty, the price has changed, money is missing, or the form is another", async () => {
    const gus = await richPerson("gus", 99n);
    const fields = await formOf(gus, "Pro");
    const { start_now: _, ...one } = fields;
    for (const [changed, said] of [
      [one, "Tick both boxes to buy"],
      [{ ...fields, is_final: "" }, "Tick both boxes to buy"],
      [{ ...fields, is_final: "2001-01-01" }, "the texts that you agreed to have changed"],
    ] as const) {
      const answer = await text(await send(gus, "Pro", changed));
      expect(answer).toContain(said);
      expect(fieldsOf(answer)["key"]).not.toBe(fields["key"]);
    }
    await setPlan(world.sql, "Pro", { priceMicros: 98n * USD });
    const again = await text(await send(gus, "Pro", fields));
    expect(again).toContain(
      "Nothing was bought: the offer has changed since you opened the page. The current offer is below",
    );
    expect(again).toContain("<button><span>Pay 98.00 USD");
    await setPlan(world.sql, "Pro", { priceMicros: 99_000_001n });
    expect(await text(await send(gus, "Pro", fieldsOf(again)))).toContain("you need 0.000001 USD more");
    const missing = await page(gus, "/console/plans/Pro/buy");
    expect(missing).toContain('href="/console/top-up">Top up</a>');
    expect(missing).not.toContain("<button><span>Pay");
    await setPlan(world.sql, "Pro", { priceMicros: 99n * USD });
    expect((await send(gus, "Pro", { ...fields, offer: "x" })).status).toBe(422);
    expect((await send(gus, "Pro", { ...fields, key: "x" })).status).toBe(400);
    expect((await send(gus, "Gold", fields)).status).toBe(404);
    expect((await gus.get("/console/plans/Gold/buy")).status).toBe(404);
    expect(await bought(gus)).toBe(0);
  });

  it("by a suspended account, or before the terms that hold now are agreed to", async () => {
    const hal = await richPerson("hal", 99n);
    const fields = await formOf(hal, "Pro");
    await world.sql`update accounts set suspended_at = now(), suspend_reason = 'a test' where id = ${hal.accountId}`;
    expect(await page(hal, "/console/plans/Pro/buy")).not.toContain("<button><span>Pay");
    expect((await send(hal, "Pro", fields)).status).toBe(403);
    expect(await bought(hal)).toBe(0);
    const ian = await world.makeHolder("ian@example.com", { hasAgreed: false });
    await world.giveMoney(ian.accountId, 99n * USD);
    const { client } = await world.signIn("ian@example.com");
    const person = Object.assign(client, ian);
    const response = await send(person, "Pro", await formOf(person, "Pro"));
    expect([response.status, await response.text()]).toEqual([403, expect.stringContaining("I accept these terms")]);
    expect(await bought(person)).toBe(0);
  });

  it("and nothing is seen of what another has bought", async () => {
    const [joy, kim] = [await richPerson("joy", 99n), await world.as("kim")];
    const done = await send(joy, "Pro", await formOf(joy, "Pro"));
    const path = done.headers.get("location") ?? "";
    expect((await joy.get(path)).status).toBe(200);
    expect((await kim.get(path)).status).toBe(404);
    expect((await kim.get("/console/purchases/x")).status).toBe(404);
    expect(await page(kim, "/console/purchases")).toContain("No purchases yet");
  });
});
