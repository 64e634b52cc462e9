import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findCaller } from "../../src/callers/caller-store.ts";
import { hashKey } from "../../src/callers/key.ts";
import { suspendAccount } from "../../src/callers/account-store.ts";
import { setPlan } from "../../src/callers/plan-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { closeRows } from "../../src/accounts/holders/close-store.ts";
import { legalText } from "../../src/accounts/legal.ts";
import { checkLedger } from "../../src/ledger/check.ts";
import { proposeReversal } from "../../src/ledger/reversal-store.ts";
import { includedText } from "../../src/purchases/receipt.ts";
import { findPurchase, listPurchases } from "../../src/purchases/history-store.ts";
import type { Order } from "../../src/purchases/check-order.ts";
import { purchase } from "../../src/purchases/purchase-store.ts";
import remindHolders from "../../jobs/remind-holders.ts";
import { testContext } from "../support/context.ts";
import { takeBack } from "../support/take-back.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { makeVictims, stopAt } from "../support/victims.ts";
import { makeKeyOnly, openPurchaseWorld, type PurchaseWorld } from "./world.ts";
import { listening } from "../support/listening.ts";

const USD = 1_000_000n;
let world: PurchaseWorld;
beforeAll(async () => void (world = await openPurchaseWorld()));
afterAll(() => world.close());

/** Everything that a purchase leaves, of one account. */
async function tracesOf(id: bigint) {
  const { sql } = world;
  const [row] = await sql<(typeof NOTHING)[]>`
    select
      (select count(*)::integer from purchases where account_id = ${id}) as purchases,
      (select count(*)::integer from ledger_transactions where kind = 'purchase' and idempotency_key like ${`purchase:${id}:%`}) as paid,
      (select count(*)::integer from entitlements where account_id = ${id}) as entitlements,
      (select count(*)::integer from consents where account_id = ${id}) as consents,
      (select count(*)::integer from mails m join accounts a on a.email = m.recipient where a.id = ${id}) as mails,
      (select count(*)::integer from audit_log where target = ${`account ${id}`}) as audits`;
  return { ...NOTHING, ...row, balance: (await world.balance(id)) / USD };
}
const NOTHING = { purchases: 0, paid: 0, entitlements: 0, consents: 0, mails: 0, audits: 0 };
const ONCE = { purchases: 1, paid: 1, entitlements: 1, consents: 2, mails: 1, audits: 1 };

describe("a purchase", () => {
  it("pays, opens access from the next call on, keeps both consents, mails the receipt and is in the audit log", async () => {
    const id = await world.makeHolder(100n);
    const key = await makeKeyOnly(world.sql, id);
    const standing = async () => (await findCaller(world.sql, hashKey(key)))?.standing;
    expect(await standing()).toBe("no_active_plan");
    const { heard, close } = await listening(world.databaseUrl, "roundhouse_callers");
    const order = await world.order(id, "Pro");
    const done = await purchase(world.sql, order);
    expect(done).toEqual({ ok: true, purchaseId: expect.any(BigInt), isReplay: false });
    expect(await standing()).toBe("good");
    expect(await tracesOf(id)).toEqual({ ...ONCE, balance: 1n });
    await expect.poll(() => heard).toEqual([""]);
    await close();

    const { rows } = await listPurchases(world.sql, id, { page: 1, perPage: 9 });
    expect(rows).toMatchObject([
      { kind: "buy", plan: "Pro", listedMicros: 99n * USD, discountMicros: 0n, paidMicros: 99n * USD, days: 30 },
    ]);
    expect(await world.held(id)).toEqual([["Pro", 0, 30]]);
    const [mail] = await world.sql<{ subject: string; body: string }[]>`
      select subject, body from mails where dedup_key = ${`purchase ${rows[0]?.id ?? 0n}`}`;
    expect(mail?.subject).toBe(`Receipt ${rows[0]?.id}: Pro, 99.00 USD`);
    const body = mail?.body.replaceAll(/\s+/g, " ");
    for (const kind of ["start-now", "no-withdrawal"] as const) expect(body).toContain(legalText(kind).text);
    expect(body).toContain("Paid from your balance: 99.00 USD");
    const included =
      "100,000 calls per day, 2,500,000 calls per month, 10 calls per second, in bursts of up to 20; all houses";
    expect(body).toContain(`Included: ${included}`);
    const [audit] = await world.sql`
      select surface, actor, action, before, after, request_id from audit_log where target = ${`account ${id}`}`;
    expect(audit).toMatchObject({
      surface: "console",
      actor: `account ${id}`,
      action: "plan.buy",
      before: { plan: null, balance: "100.00" },
      after: { plan: "Pro", paid: "99.00", discount: "0.00", balance: "1.00" },
      request_id: order.requestId,
    });
  });

  it("of a plan that costs nothing posts nothing, and gives access all the same", async () => {
    await world.sql`
      insert into plans (name, position, day_limit, burst_per_second, burst, price_micros, days)
      values ('Free', 0, 100, 1, 1, 0, 7)`;
    const id = await world.makeHolder();
    const purchaseId = await world.bought(id, "Free");
    expect(await findPurchase(world.sql, id, purchaseId)).toMatchObject({ paidMicros: 0n, transactionId: null });
    expect(await tracesOf(id)).toEqual({ ...ONCE, paid: 0, balance: 0n });
    expect(await findPurchase(world.sql, await world.makeHolder(), purchaseId)).toBeNull();
  });

  it("is never changed afterwards, and is paid by its own transaction", async () => {
    await expect(world.sql`update purchases set plan = 'Max'`).rejects.toThrow("only ever added to");
    await expect(world.sql`delete from purchases`).rejects.toThrow("only ever added to");
    await expect(world.sql`truncate purchases cascade`).rejects.toThrow("only ever added to");
    const copied = (changed: string) => `
      insert into purchases (
        account_id, idempotency_key, kind, day_limit, month_limit, burst_per_second, burst, plan, plan_revision, listed_micros,
        discount_micros, paid_micros, days, starts_at, ends_at, start_now_version, no_withdrawal_version, transaction_id
      )
      select account_id, 'copy', 'upgrade', day_limit, month_limit, burst_per_second, burst, plan, plan_revision, listed_micros, ${changed}, days, now(), now() + interval '1 day', 'a', 'b', `;
    const [topUp] = await world.sql<
      { id: bigint }[]
    >`select min(id) as id from ledger_transactions where kind = 'topup'`;
    await expect(
      world.sql.unsafe(`${copied("0, listed_micros")} ${topUp?.id} from purchases where paid_micros > 0 limit 1`),
    ).rejects.toThrow("a purchases names a purchase of the ledger");
    await expect(
      world.sql.unsafe(`${copied("listed_micros, 0")} null from purchases where paid_micros > 0 limit 1`),
    ).rejects.toThrow("a discount is what was left of purchases of the same account");
  });
});

it("a purchase keeps what its plan included, whatever the plan becomes", async () => {
  const id = await world.makeHolder(299n);
  const purchaseId = await world.bought(id, "Max");
  await setPlan(world.sql, "Max", { day: 5 });
  const made = await findPurchase(world.sql, id, purchaseId);
  expect(made === null ? null : includedText(made)).toMatch(/^no fixed number of calls per day, no fixed number/);
  await setPlan(world.sql, "Max", { day: null });
});

describe("a plan that is had already", () => {
  it("is renewed from its end on, without a gap", async () => {
    const id = await world.makeHolder(100n);
    await world.bought(id, "Starter");
    await world.age(id, 10);
    await world.bought(id, "Starter");
    expect(await world.held(id)).toEqual([
      ["Starter", -10, 20],
      ["Starter", 20, 50],
    ]);
    const [gap] = await world.sql`
      select
        b.starts_at - a.ends_at = interval '0' as none,
        a.end_notified_at is not null and b.end_notified_at is null as "onlyLastIsWatched"
      from entitlements a, entitlements b
      where a.account_id = ${id} and b.account_id = ${id} and a.id < b.id`;
    expect(gap).toEqual({ none: true, onlyLastIsWatched: true });
    expect(await world.balance(id)).toBe(42n * USD);
  });

  it("is replaced by a higher one immediately, with its whole remainder as a discount, once", async () => {
    const id = await world.makeHolder(500n);
    const [first, second] = [await world.bought(id, "Starter"), await world.bought(id, "Starter")];
    await world.age(id, 15);
    const pro = await world.bought(id, "Pro");
    const made = await findPurchase(world.sql, id, pro);
    expect(made).toMatchObject({ kind: "upgrade", listedMicros: 99n * USD, replaces: [first, second] });
    // half of the first and all of the second, but for the moment that has gone by
    expect(Number(made?.discountMicros)).toBeCloseTo(43_500_000, -4);
    expect(made?.paidMicros).toBe(99n * USD - (made?.discountMicros ?? 0n));
    expect(await world.held(id)).toEqual([
      ["Starter", -15, 0],
      ["Pro", 0, 30],
    ]);
    expect(await findPurchase(world.sql, id, first)).toMatchObject({ replacedBy: pro });
    const max = await world.bought(id, "Max");
    expect(await findPurchase(world.sql, id, max)).toMatchObject({ replaces: [pro] });
    expect(Number((await findPurchase(world.sql, id, max))?.discountMicros)).toBeCloseTo(99_000_000, -4);
    await expect(
      world.sql`insert into purchase_credits (purchase_id, of_purchase, micros) values (${max}, ${first}, 1)`,
    ).rejects.toThrow("unused_share_is_credited_once");
  });

  it("lasts longer if it was worth more than the higher one costs", async () => {
    const id = await world.makeHolder(500n);
    for (let n = 0; n < 6; n++) await world.bought(id, "Starter");
    const before = await world.balance(id);
    const pro = await world.bought(id, "Pro");
    expect(await world.balance(id)).toBe(before);
    expect(await findPurchase(world.sql, id, pro)).toMatchObject({ paidMicros: 0n, days: 30, transactionId: null });
    const [, [, , ends] = []] = await world.held(id);
    expect(ends).toBeCloseTo((30 * 174) / 99, 1);
    const [mail] = await world.sql`select body from mails where dedup_key = ${`purchase ${pro}`}`;
    expect(String(mail?.["body"]).replaceAll(/\s+/g, " ")).toContain("lasts longer than its 30 days");
    await world.age(id, 1);
    const max = await findPurchase(world.sql, id, await world.bought(id, "Max"));
    expect(max).toMatchObject({ kind: "upgrade", replaces: [pro] });
    const days = (30 * 174) / 99;
    expect(Number(max?.discountMicros)).toBeCloseTo((174_000_000 * (days - 1)) / days, -4);
  });

  it("whose price was given back is worth nothing towards another, and one that went into another is not given back", async () => {
    const id = await world.makeHolder(299n);
    const made = await findPurchase(world.sql, id, await world.bought(id, "Pro"));
    const paidBy = made?.transactionId ?? 0n;
    const discount = async () => {
      const { offer } = await world.offer(id, "Max");
      return "discountMicros" in offer ? Number(offer.discountMicros) : null;
    };
    const reversedAt = async () => (await findPurchase(world.sql, id, made?.id ?? 0n))?.reversedAt;
    expect(await reversedAt()).toBeNull();
    const price = { accountId: id, micros: 99n * USD };
    const first = await takeBack(world.sql, { ...price, transactionId: paidBy });
    expect([await world.balance(id), await discount()]).toEqual([299n * USD, 0]);
    expect(await reversedAt()).toMatch(/^\d{4}-\d\d-\d\dT/);
    const second = await takeBack(world.sql, { ...price, transactionId: first, micros: -99n * USD });
    expect(await discount()).toBeCloseTo(99_000_000, -4); // the reversal was reversed: Pro is paid again
    expect(await reversedAt()).toBeNull();
    await world.topUp(id, 100n);
    const max = await world.bought(id, "Max");
    const refused = await world.sql.begin((tx) =>
      proposeReversal(tx, { transactionId: second, reason: "a test", by: "nobody" }),
    );
    expect(refused).toMatchObject({ ok: false, reason: expect.stringContaining(`the price of purchase ${max}`) });
  });

  it("is followed by a lower one, once", async () => {
    const id = await world.makeHolder(500n);
    await world.bought(id, "Max");
    await world.age(id, 5);
    const order = await world.order(id, "Starter");
    expect(await purchase(world.sql, order)).toMatchObject({ ok: true });
    expect(await world.held(id)).toEqual([
      ["Max", -5, 25],
      ["Starter", 25, 55],
    ]);
    const other = { ...order, key: "another", quote: { ...order.quote, plan: "Pro", listedMicros: 99n * USD } };
    expect(await purchase(world.sql, other)).toMatchObject({
      ok: false,
      reason: "not-offered",
      message: expect.stringContaining("only one change can wait"),
    });
  });

  it("is decided at the border between two by the database's clock: no call falls between them", async () => {
    const id = await world.makeHolder(500n);
    const key = await makeKeyOnly(world.sql, id);
    await world.bought(id, "Pro");
    await world.bought(id, "Starter");
    await world.age(id, 30);
    const caller = await findCaller(world.sql, hashKey(key));
    expect([caller?.standing, caller?.plan?.name]).toEqual(["good", "Starter"]);
    await world.age(id, 30);
    expect((await findCaller(world.sql, hashKey(key)))?.standing).toBe("plan_expired");
  });

  it("keeps its end if its account is closed at the moment at which it ends", async () => {
    const id = await world.makeHolder(99n);
    await world.bought(id, "Pro");
    const kept = await world.sql.begin(async (tx) => {
      await tx`
        update entitlements
        set starts_at = now() - interval '30 days', ends_at = now() + interval '1 microsecond'
        where account_id = ${id}`;
      await closeRows(tx, id);
      return tx`
        select ends_at = now() + interval '1 microsecond' as "isSame" from entitlements where account_id = ${id}`;
    });
    expect(kept).toEqual([{ isSame: true }]);
  });

  it("without an end prevents any purchase next to it, and two at the same time are impossible", async () => {
    const id = await world.makeHolder(500n);
    const order = await world.order(id, "Pro");
    const [account] = await world.sql<{ email: string }[]>`select email from accounts where id = ${id}`;
    expect(await createKey(world.sql, { email: account?.email ?? "", plan: "Starter" })).toMatchObject({ ok: true });
    expect(await purchase(world.sql, order)).toMatchObject({
      reason: "not-offered",
      message: expect.stringContaining("Starter without an end"),
    });
    await expect(
      world.sql`
        insert into entitlements (account_id, plan, starts_at, ends_at)
        values (${id}, 'Pro', now() + interval '5 days', now() + interval '6 days')`,
    ).rejects.toThrow("account_has_one_plan_at_a_time");
    expect(await tracesOf(id)).toEqual({ ...NOTHING, entitlements: 1, balance: 500n });
  });
});

describe("an order", () => {
  it("[API6][V2] that is sent twice, or twenty times concurrently, buys once", async () => {
    const id = await world.makeHolder(500n);
    const order = await world.order(id, "Pro");
    const done = await Promise.all(Array.from({ length: 20 }, () => purchase(world.sql, order)));
    expect(done.filter((one) => one.ok && !one.isReplay)).toHaveLength(1);
    expect(new Set(done.map((one) => one.ok && one.purchaseId)).size).toBe(1);
    expect(await tracesOf(id)).toEqual({ ...ONCE, balance: 401n });
    const later = { ...(await world.order(id, "Pro")), key: order.key };
    expect(await purchase(world.sql, later)).toMatchObject({ ok: false, reason: "other-request" });
    const stranger = await world.makeHolder(500n);
    const same = { ...(await world.order(stranger, "Pro")), key: order.key };
    expect(await purchase(world.sql, same)).toMatchObject({ ok: true, isReplay: false });
  });

  it("of twenty concurrent ones with money for one is done once, and nineteen report that the balance is not enough", async () => {
    const id = await world.makeHolder(29n);
    const order = await world.order(id, "Starter");
    const done = await Promise.all(
      Array.from({ length: 20 }, (_, n) => purchase(world.sql, { ...order, key: `click ${n}` })),
    );
    expect(done.filter(({ ok }) => ok)).toHaveLength(1);
    expect(done.filter((one) => !one.ok && one.reason === "balance")).toHaveLength(19);
    expect(done.find((one) => !one.ok)).toMatchObject({
      message: "Starter costs 29.00 USD and your balance is 0.00 USD: you need 29.00 USD more",
    });
    expect(await tracesOf(id)).toEqual({ ...ONCE, balance: 0n });
  });

  it("for what is no longer so is refused: price, plan, discount, texts, time, account", async () => {
    const id = await world.makeHolder(500n);
    await world.bought(id, "Starter");
    await world.age(id, 10);
    const before = await tracesOf(id);
    const seen = await world.order(id, "Pro");
    const half = 1_800_000_000n;
    const { quote, agreed } = seen;
    const cases: [string, Partial<Order>][] = [
      ["changed", { quote: { ...quote, discountMicros: quote.discountMicros + 1n } }],
      ["changed", { quote: { ...quote, listedMicros: 1n } }],
      ["changed", { quote: { ...quote, kind: "buy" } }],
      ["changed", { quote: { ...quote, asOf: quote.asOf - half } }],
      ["changed", { quote: { ...quote, asOf: quote.asOf + half } }],
      ["changed", { agreed: { ...agreed, startNow: "" } }],
      ["changed", { agreed: { ...agreed, noWithdrawal: "2020-01-01" } }],
      ["not-offered", { quote: { ...quote, plan: "Gold" } }],
      ["not-yours", { accountId: 999_999n }],
    ];
    for (const [reason, changed] of cases) {
      expect([changed, await purchase(world.sql, { ...seen, ...changed })]).toMatchObject([changed, { reason }]);
    }
    await setPlan(world.sql, "Pro", { day: 99_999 });
    expect(await purchase(world.sql, seen)).toMatchObject({ reason: "changed" });
    const afterwards = await world.order(id, "Pro");
    await setPlan(world.sql, "Pro", { day: 100_000, onSale: false });
    expect(await purchase(world.sql, afterwards)).toMatchObject({ reason: "not-offered", message: /not on sale/ });
    await setPlan(world.sql, "Pro", { onSale: true });
    const last = await world.order(id, "Pro");
    await world.sql.begin((tx) => suspendAccount(tx, id, { by: "a test", reason: "a test" }));
    expect(await purchase(world.sql, last)).toMatchObject({ reason: "suspended" });
    expect(await tracesOf(id)).toEqual(before);
  });

  it("waits for a change of the plan that is being made, and is refused once that is committed", async () => {
    const id = await world.makeHolder(500n);
    const order = await world.order(id, "Pro");
    const { done } = await world.sql.begin(async (tx) => {
      await tx`update plans set day_limit = day_limit where name = 'Pro'`;
      const ordered = purchase(world.sql, order);
      await lockWaits(world.sql, 1);
      return { done: ordered };
    });
    expect(await done).toMatchObject({ ok: false, reason: "changed" });
  });
});

describe("the holder of a plan", () => {
  const BANK = { BANK_BENEFICIARY: "Roundhouse Test", BANK_IBAN: "DE89370400440532013000" };
  let variables: Record<string, string> = {};
  const context = () =>
    testContext(world.sql, { env: { PUBLIC_URL: "https://roundhouse.example/", ...variables } }).context;
  const remind = async () => remindHolders.run({}, context());
  const isAsked = async () => (await remindHolders.sweep?.(context()))?.length;
  const mailsOf = async (id: bigint) => {
    const rows = await world.sql<{ subject: string; body: string }[]>`
      select m.subject, m.body from mails m join accounts a on a.email = m.recipient
      where a.id = ${id} and m.kind in ('plan-ends', 'plan-ended') order by m.id`;
    return rows.map(({ subject, body }) => [subject.replace(/ on .*/, ""), body.replaceAll(/\s+/g, " ")] as const);
  };

  it("is notified three days before its end, and at its end, once each", async () => {
    await remind(); // of those whose plans ended above
    const id = await world.makeHolder(99n);
    await world.bought(id, "Pro");
    await world.age(id, 26);
    expect([await isAsked(), await remind()]).toEqual([0, { reminded: 0, ended: 0, quotas: 0 }]);
    await world.age(id, 1.5);
    expect([await isAsked(), await remind(), await remind()]).toEqual([
      1,
      { reminded: 1, ended: 0, quotas: 0 },
      { reminded: 0, ended: 0, quotas: 0 },
    ]);
    expect(await isAsked()).toBe(0);
    expect(await mailsOf(id)).toEqual([["Your plan Pro ends", expect.stringContaining("plan_expired (402)")]]);
    await world.age(id, 3);
    expect([await isAsked(), await remind(), await remind(), await isAsked()]).toEqual([
      1,
      { reminded: 0, ended: 1, quotas: 0 },
      { reminded: 0, ended: 0, quotas: 0 },
      0,
    ]);
    expect(await mailsOf(id)).toEqual([
      ["Your plan Pro ends", expect.stringContaining("https://roundhouse.example/console/plans")],
      ["Your plan Pro has ended", expect.stringContaining("Your keys and your balance stay as they are")],
    ]);
  });

  it("is notified ten days before its end if bank transfers are offered, which take days, and three if the plan is short", async () => {
    await remind();
    const id = await world.makeHolder(99n);
    await world.bought(id, "Pro");
    await world.age(id, 20.5);
    expect([await isAsked(), await remind()]).toEqual([0, { reminded: 0, ended: 0, quotas: 0 }]);
    const short = await world.makeHolder(29n);
    await world.sql`update plans set days = 14 where name = 'Starter'`;
    await world.bought(short, "Starter");
    await world.sql`update plans set days = 30 where name = 'Starter'`;
    await world.age(short, 5);
    variables = BANK;
    expect([await isAsked(), await remind()]).toEqual([1, { reminded: 1, ended: 0, quotas: 0 }]);
    expect(await mailsOf(short)).toEqual([]);
    expect(await mailsOf(id)).toEqual([
      ["Your plan Pro ends", expect.stringContaining("A bank transfer takes one to five working days")],
    ]);
    expect((await mailsOf(id))[0]?.[1]).not.toContain("may arrive after the end");
    await world.age(short, 6.5);
    expect([await isAsked(), await remind()]).toEqual([1, { reminded: 1, ended: 0, quotas: 0 }]);
    expect((await mailsOf(short))[0]?.[1]).toContain("One that you send now may arrive after the end");
    variables = {};
  });

  it("is not advised to renew a plan that is not on sale", async () => {
    const id = await world.makeHolder(99n);
    await world.bought(id, "Pro");
    await world.age(id, 28);
    await setPlan(world.sql, "Pro", { onSale: false });
    await remind();
    await setPlan(world.sql, "Pro", { onSale: true });
    const [[, body] = ["", ""]] = await mailsOf(id);
    expect(body).not.toContain("If you renew it");
    expect(body).toContain("Pro is no longer on sale, so it cannot be renewed. You can buy a plan that is on sale.");
  });

  it("is not advised to buy if no plan is on sale", async () => {
    const id = await world.makeHolder(99n);
    await world.bought(id, "Pro");
    await world.age(id, 28);
    const before = await world.sql<{ name: string }[]>`update plans set on_sale = false where on_sale returning name`;
    variables = BANK;
    await remind();
    await world.age(id, 3);
    await remind();
    variables = {};
    await world.sql`update plans set on_sale = true where name = any(${before.map(({ name }) => name)}::text[])`;
    const bodies = (await mailsOf(id)).map(([, body]) => body);
    expect(bodies).toHaveLength(2);
    for (const body of bodies) {
      expect(body).toContain("No plan is on sale now. Ask the operator of this service if you need one.");
      expect(body).not.toMatch(/You can buy|console\/plans|bank transfer/);
    }
  });

  it("is notified by one of two concurrent workers", async () => {
    const id = await world.makeHolder(99n);
    await world.bought(id, "Pro");
    await world.age(id, 28);
    const counts = await Promise.all([remind(), remind(), remind()]);
    expect(counts.filter(({ reminded }) => reminded === 1)).toHaveLength(1);
    expect(await mailsOf(id)).toHaveLength(1);
  });

  it("is not notified if another plan follows, was upgraded to, is too short, or whose account is suspended", async () => {
    const follows = await world.makeHolder(300n);
    await world.bought(follows, "Pro");
    await world.bought(follows, "Starter");
    await world.age(follows, 28);
    const upgraded = await world.makeHolder(300n);
    await world.bought(upgraded, "Starter");
    await world.bought(upgraded, "Pro");
    const suspended = await world.makeHolder(300n);
    await world.bought(suspended, "Pro");
    await world.age(suspended, 31);
    await world.sql.begin((tx) => suspendAccount(tx, suspended, { by: "a test", reason: "a test" }));
    await world.sql`update plans set days = 2 where name = 'Free'`;
    const short = await world.makeHolder();
    await world.bought(short, "Free");
    expect([await isAsked(), await remind()]).toEqual([0, { reminded: 0, ended: 0, quotas: 0 }]);
    await world.age(follows, 2.5);
    expect(await remind()).toEqual({ reminded: 0, ended: 0, quotas: 0 });
    for (const id of [follows, upgraded, suspended, short]) expect(await mailsOf(id)).toEqual([]);
    await world.age(short, 3);
    expect(await remind()).toEqual({ reminded: 0, ended: 1, quotas: 0 });
  });

  it("is not notified of an end that is long ago", async () => {
    const id = await world.makeHolder(99n);
    await world.bought(id, "Pro");
    await world.age(id, 45);
    expect([await isAsked(), await remind()]).toEqual([0, { reminded: 0, ended: 0, quotas: 0 }]);
  });
});

describe("a process that is killed in the middle of a purchase", () => {
  const statements = [
    "insert on ledger_transactions",
    "insert on ledger_entries",
    "insert on purchases",
    "delete on entitlements",
    "insert on entitlements",
    "insert on consents",
    "insert on mails",
    "insert on audit_log",
    "commit of mails",
  ];

  it("leaves nothing half done between any two steps, and the same order sent again and again buys once", async () => {
    const script = path.join(import.meta.dirname, "purchase-process.ts");
    const stops = Object.fromEntries(statements.map((statement) => [statement, stopAt(statement)]));
    const victims = await makeVictims(world, script, stops);
    const id = await world.makeHolder(200n);
    await world.bought(id, "Starter");
    await world.bought(id, "Starter");
    const stateOf = async () => ({ traces: await tracesOf(id), held: (await world.held(id)).length });
    const before = await stateOf();
    const order = await world.order(id, "Pro");
    for (const [name, victim] of victims) {
      await victim.killIn(order);
      // what is being committed is the database's to end; whatever comes before that is undone
      const isEnded = name.includes("commit") && (await tracesOf(id)).purchases === 3;
      if (!isEnded) expect([name, await stateOf()]).toEqual([name, before]);
    }
    const isEnded = (await tracesOf(id)).purchases === 3;
    const done = await purchase(world.sql, order);
    expect(done).toEqual({ ok: true, purchaseId: expect.any(BigInt), isReplay: isEnded });
    expect(await purchase(world.sql, order)).toEqual({ ...done, isReplay: true });
    expect(await stateOf()).toEqual({
      traces: { purchases: 3, paid: 3, entitlements: 2, consents: 6, mails: 3, audits: 3, balance: 100n },
      held: 2,
    });
    expect(await checkLedger(world.sql)).toMatchObject({ ok: true, differences: [] });
  });
});
