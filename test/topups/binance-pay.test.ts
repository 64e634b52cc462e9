import path from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { insertOperator } from "../../src/accounts/operators/operator-store.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { binancePayOrderPage, binancePayPage } from "../../src/console/top-up/binance-pay.ts";
import { notifySurface } from "../../src/console/top-up/notify.ts";
import { checkLedger } from "../../src/ledger/check.ts";
import { post } from "../../src/ledger/store.ts";
import * as answers from "../../src/topups/binance-pay/responses.ts";
import { mayBeOurs } from "../../src/topups/binance-pay/notice.ts";
import { findPaymentAppProblems } from "../../src/topups/binance-pay/problem-store.ts";
import { configuredMethods } from "../../src/topups/methods.ts";
import { eventually } from "../support/eventually.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { makeVictims, type Victim } from "../support/victims.ts";
import type { Task } from "./binance-pay-process.ts";
import type { ProviderOrder } from "../support/payment-app.ts";
import { openPayWorld, type PayWorld } from "./binance-pay-world.ts";

let world: PayWorld;
beforeAll(async () => void (world = await openPayWorld()), 60_000);
afterAll(() => world.close());

const text = async (response: Response) => (await response.text()).replaceAll(/\s+/g, " ");
type Holder = Awaited<ReturnType<PayWorld["as"]>>;

/** An order that somebody began at the console; gives the path of its page. */
async function begin(client: Holder, amount = "25.17"): Promise<string> {
  const response = await client.post("/console/top-up/binance-pay", { amount });
  expect([response.status, await text(response)]).toEqual([303, ""]);
  return response.headers.get("location") ?? "";
}
/** An order that was made and may be paid. */
async function made(client: Holder, amount?: string): Promise<{ page: string; id: string; order: ProviderOrder }> {
  const page = await begin(client, amount);
  const id = page.split("/").at(-1) ?? "";
  await world.work();
  return { page, id, order: await orderOf(id) };
}
async function orderOf(id: string): Promise<ProviderOrder> {
  const [row] = await world.sql<{ prepayId: string }[]>`
    select prepay_id as "prepayId" from payment_app_orders where topup_id = ${id}`;
  const order = world.provider.orders.get(row?.prepayId ?? "");
  if (order === undefined) throw new Error(`top-up ${id} has no order at the payment app`);
  return order;
}
async function stateOf(id: string): Promise<string[]> {
  const [row] = await world.sql<{ order: string; topup: string }[]>`
    select o.state as order, t.state as topup
    from payment_app_orders o join topups t on t.id = o.topup_id where t.id = ${id}`;
  return [row?.order ?? "", row?.topup ?? ""];
}
const troubles = async () =>
  (await findPaymentAppProblems(world.sql, true)).map(({ text: told }) => told.replace(/:.*$/, ""));
const creditsOf = (id: string) => world.sql`
  select idempotency_key as key from ledger_transactions where meta ->> 'topup' = ${id}`;

/** Reverses a credit of the payment app, as two people of the staff do. */
async function reverse(transactionId: bigint, { owner, micros }: { owner: bigint; micros: bigint }): Promise<void> {
  await world.sql.begin(async (tx) => {
    const people: string[] = [];
    for (const email of ["ann.operator@example.com", "ben.operator@example.com"]) {
      people.push((await insertOperator(tx, { email, role: "operator", passwordHash: null, by: "test" }))!.id);
    }
    const posted = await post(tx, {
      kind: "reversal",
      key: `reversal:${transactionId}`,
      reverses: transactionId,
      legs: [
        { side: { kind: "wallet", owner }, micros: -micros },
        { side: { kind: "cash_payapp" }, micros },
      ],
    });
    if (!posted.ok) throw new Error(posted.message);
    await tx`
      insert into reversal_proposals (
        transaction_id, reason, proposed_by, state, decided_by, decided_at, decided_why, reversal_id
      )
      values (
        ${transactionId}, 'a test', ${people[0]!}, 'approved', ${people[1]!}, now(), 'a test', ${posted.transactionId}
      )`;
  });
}

describe("an order", () => {
  it("is requested at the console, made by the worker, paid in the app, notified, looked up, and credited once", async () => {
    const ana = await world.as("ana");
    expect(await text(await ana.get("/console/top-up/binance-pay"))).toContain("5.00 to 10,000.00");
    const page = await begin(ana);
    const id = page.split("/").at(-1) ?? "";
    expect(await text(await ana.get(page))).toContain("The order is being created");
    expect(await world.work()).toMatchObject({ made: 1 });
    const order = await orderOf(id);
    expect(order.asked).toMatchObject({
      orderAmount: 25.17,
      currency: "USDT",
      merchantTradeNo: expect.stringMatching(/^[A-Za-z0-9]{1,32}$/),
      webhookUrl: "https://round.example/topups/binance-pay/notify",
      returnUrl: `https://round.example${page}`,
    });
    const open = await text(await ana.get(page));
    expect(open).toContain(`href="https://pay.example/checkout/${order.prepayId}"`);
    expect(open).toContain('src="data:image/png;base64,');
    expect(await world.work()).toEqual({}); // nobody's turn

    order.status = "PAID";
    expect(await world.send(world.provider.notice(order))).toEqual([
      200,
      { returnCode: "SUCCESS", returnMessage: null },
    ]);
    expect(await world.wallet(ana.accountId)).toBe(0n); // a notice credits nothing by itself
    expect(await world.work()).toEqual({ credited: 1 });
    expect(await world.wallet(ana.accountId)).toBe(25_170_000n);
    expect(await creditsOf(id)).toEqual([{ key: `binance-pay:${order.prepayId}` }]);
    expect(await text(await ana.get(page))).toContain("25.17 USD were added to your balance");
    expect(await text(await ana.get("/console/statement"))).toContain("Top-up by Binance Pay");
    expect(await world.sql`select 1 from mails where dedup_key = ${`topup ${id} credited`}`).toHaveLength(1);

    // told of again, by notices and by the clock
    expect((await world.send(world.provider.notice(order)))[0]).toBe(200);
    await world.wait(id);
    expect(await world.work()).toEqual({});
    expect(await world.wallet(ana.accountId)).toBe(25_170_000n);
    expect(await troubles()).toEqual([]);
  });

  it("that is paid while every notification is lost is found at its next lookup", async () => {
    const ben = await world.as("ben");
    const { id, order } = await made(ben);
    await world.wait(id);
    expect(await world.work()).toEqual({ waiting: 1 });
    order.status = "PAID";
    await world.wait(id);
    expect(await world.work()).toEqual({ credited: 1 });
    expect(await stateOf(id)).toEqual(["paid", "credited"]);
  });

  it.each([
    ["another amount", { orderAmount: "25.16000000" }],
    ["another currency", { currency: "BUSD" }],
    ["another reference", { merchantTradeNo: "SOMEBODYELSE1" }],
  ])("with %s credits nothing, is left to staff, and shows it", async (_, changed) => {
    const cleo = await world.as("cleo");
    const before = await world.wallet(cleo.accountId);
    const { page, id, order } = await made(cleo);
    Object.assign(order, { status: "PAID", ...changed });
    await world.send(world.provider.notice(order));
    expect(await world.work()).toEqual({ strange: 1 });
    expect(await world.wallet(cleo.accountId)).toBe(before);
    expect(await stateOf(id)).toEqual(["strange", "seen"]);
    expect(await text(await cleo.get(page))).toContain("our staff check it");
    const open = () =>
      world.sql`select 1 from alerts where kind = 'topup' and subject = ${`binance-pay ${id}`} and closed_at is null`;
    expect(await open()).toHaveLength(1);
    // sent back in the merchant's portal, whatever it was: the matter is closed
    Object.assign(order, { status: "REFUNDED", merchantTradeNo: order.asked["merchantTradeNo"] });
    await world.wait(id);
    expect(await world.work()).toEqual({ closed: 1 });
    expect(await open()).toHaveLength(0);
  });

  it.each([
    ["EXPIRED", "expired", "It expired unpaid"],
    ["CANCELED", "cancelled", "It was cancelled"],
    ["ERROR", "rejected", "It was rejected"],
  ])(
    "that the payment app calls %s ends, and is credited all the same where it is paid after that",
    async (status, state, said) => {
      const dora = await world.as("dora");
      const before = await world.wallet(dora.accountId);
      const { page, id, order } = await made(dora);
      order.status = status;
      await world.send(world.provider.notice(order, { bizStatus: "PAY_CLOSED" }));
      expect(await world.work()).toEqual({ closed: 1 });
      expect(await stateOf(id)).toEqual(["closed", state]);
      expect(await text(await dora.get(page))).toContain(said);
      order.status = "PAID";
      await world.send(world.provider.notice(order));
      expect(await world.work()).toEqual({ credited: 1 });
      expect(await world.wallet(dora.accountId)).toBe(before + 25_170_000n);
    },
  );

  it("whose time is over is closed at the payment app, and only then here", async () => {
    const { id, order } = await made(await world.as("emil"));
    await world.sql`update payment_app_orders set expires_at = now() where topup_id = ${id}`;
    await world.wait(id);
    expect(await world.work()).toEqual({ waiting: 1 });
    expect(order.status).toBe("CANCELED");
    expect(await stateOf(id)).toEqual(["open", "expected"]);
    await world.wait(id);
    expect(await world.work()).toEqual({ closed: 1 });
    expect(await stateOf(id)).toEqual(["closed", "cancelled"]);
  });

  it("whose response is lost is made again under another name, and given up in the end", async () => {
    const finn = await world.as("finn");
    const page = await begin(finn);
    const id = page.split("/").at(-1) ?? "";
    const place = "/binancepay/openapi/v3/order";
    for (const failure of ["cut", "huge", { code: "400000", errorMessage: "busy" }] as const) {
      world.provider.failing.set(place, failure);
      await world.wait(id);
      expect(await world.work()).toEqual({ failed: 1 });
    }
    const [last] = await world.sql`select last_error as error from payment_app_orders where topup_id = ${id}`;
    expect(last).toEqual({ error: "refused: 400000 busy" });
    world.provider.failing.delete(place);
    await world.wait(id);
    expect(await world.work()).toEqual({ made: 1 });
    const order = await orderOf(id);
    const names = [...world.provider.orders.values()].map(({ merchantTradeNo }) => merchantTradeNo);
    expect(names.filter((name) => name.slice(0, -1) === order.merchantTradeNo.slice(0, -1))).toHaveLength(4);
    expect(await text(await finn.get(page))).toContain(order.prepayId); // the one that may be paid is the last

    const other = (await begin(finn)).split("/").at(-1) ?? "";
    world.provider.failing.set(place, "cut");
    for (let turn = 0; turn < 6; turn += 1) {
      await world.wait(other);
      await world.work();
    }
    world.provider.failing.delete(place);
    expect(await stateOf(other)).toEqual(["closed", "rejected"]);
    expect(await troubles()).toEqual(["Binance Pay did not make 1 of our orders in the last hour"]);
    await world.sql`update payment_app_orders set asked_at = now() - interval '61 minutes' where topup_id = ${other}`;
    expect(await troubles()).toEqual([]);
    expect(await text(await finn.get(`/console/top-up/binance-pay/${other}`))).toContain("nothing was paid");
  });

  it("waits while the payment app does not say what became of it", async () => {
    const { id, order } = await made(await world.as("gus"));
    order.status = "PAID";
    world.provider.failing.set("/binancepay/openapi/v2/order/query", "cut");
    await world.wait(id);
    expect(await world.work()).toMatchObject({ failed: 1 });
    world.provider.failing.clear();
    expect(await stateOf(id)).toEqual(["open", "expected"]);
    expect(await troubles()).toEqual(["Binance Pay does not report the state of 1 of our orders"]);
    await world.wait(id);
    expect(await world.work()).toMatchObject({ credited: 1 });
    expect(await troubles()).toEqual([]);
  });

  it("expires a week after its end if the payment app does not know it, and is credited if a notice reports it as paid", async () => {
    const gwen = await world.as("gwen");
    const { page, id, order } = await made(gwen);
    const query = "/binancepay/openapi/v2/order/query";
    const forget = () => world.provider.failing.set(query, { code: "400202", errorMessage: "order not found" });
    const pass = (days: number) => world.sql`
      update payment_app_orders set expires_at = now() - make_interval(days => ${days}) where topup_id = ${id}`;
    forget();
    await pass(6);
    await world.wait(id);
    expect(await world.work()).toEqual({ failed: 1 });
    await pass(8);
    await world.wait(id);
    world.provider.failing.set(query, "cut"); // this says nothing about the order
    expect(await world.work()).toEqual({ failed: 1 });
    expect(await stateOf(id)).toEqual(["open", "expected"]);
    forget();

    await world.wait(id);
    expect(await world.work()).toEqual({ closed: 1 });
    expect(await stateOf(id)).toEqual(["closed", "expired"]);
    expect(await troubles()).toEqual([]);
    expect(await text(await gwen.get(page))).toContain("does not know the order any more");
    await world.wait(id);
    expect(await world.work()).toEqual({});

    world.provider.failing.clear();
    order.status = "PAID";
    await world.send(world.provider.notice(order));
    expect(await world.work()).toEqual({ credited: 1 });
    expect(await stateOf(id)).toEqual(["paid", "credited"]);
  });

  it.each(["4.99", "10000.01", "25.171", "1e3", "-5", ""])("of %s USDT is refused", async (amount) => {
    const response = await (await world.as("hana")).post("/console/top-up/binance-pay", { amount });
    expect([response.status, await text(response)]).toEqual([
      422,
      expect.stringMatching(/expected (?:an amount|5\.00 to 10000\.00)/),
    ]);
  });

  it("is seen by its holder alone, and five of them may wait", async () => {
    const ida = await world.as("ida");
    const page = await begin(ida);
    expect((await (await world.as("ana")).get(page)).status).toBe(404);
    const more = await Promise.all(
      Array.from({ length: 5 }, () => ida.post("/console/top-up/binance-pay", { amount: "25" })),
    );
    const refused = more.filter(({ status }) => status !== 303);
    expect(refused.map(({ status }) => status)).toEqual([422]);
    expect(await text(refused[0]!)).toContain("5 orders that are not paid yet");
  });
});

describe("the keys of notices", () => {
  it.each([
    ["were never fetched", null],
    ["were not fetched since", "3 days"],
  ])("raise an alert after five minutes of attempts if they %s", async (words, age) => {
    const { provider, sql } = world;
    await sql`
      update payment_app_state
      set certificates_at = now() - ${age}::interval, certificates_tried_at = null`;
    provider.failing.set("/binancepay/openapi/certificates", { code: "400002", errorMessage: "Invalid signature." });
    expect(await world.work()).toMatchObject({ failed: 1 });
    expect(await troubles()).toEqual([]);
    await sql`update payment_app_state set certificates_failing_since = now() - interval '6 minutes'`;
    expect(await troubles()).toEqual([expect.stringContaining(words)]);
    provider.failing.clear();
    await sql`update payment_app_state set certificates_tried_at = null`;
    expect(await world.work()).toMatchObject({ certificates: 1 });
    expect(await troubles()).toEqual([]);
  });
});

describe("[WEBHOOK] a notice", () => {
  let order: ProviderOrder;
  let holder: Holder;
  beforeAll(async () => {
    holder = await world.as("jo");
    ({ order } = await made(holder));
    order.status = "PAID";
    await world.sql`update payment_app_orders set ask_at = now() + interval '5 minutes' where ask_at is not null`;
  });
  const fits = { returnCode: "FAIL", returnMessage: expect.stringMatching(/./) as string };

  it.each<[string, number, () => ReturnType<PayWorld["provider"]["notice"]>]>([
    [
      "with another body than was signed",
      401,
      () => ({
        ...world.provider.notice(order),
        body: world.provider.notice(order).body.replace("PAY_SUCCESS", "PAY_SUCCESS "),
      }),
    ],
    ["with a time that is not the signed one", 401, () => withHeader("BinancePay-Timestamp", String(Date.now() - 1))],
    [
      "with a signature of nobody",
      401,
      () => withHeader("BinancePay-Signature", Buffer.alloc(256, 7).toString("base64")),
    ],
    ["with a certificate that is not known", 401, () => withHeader("BinancePay-Certificate-SN", "0".repeat(32))],
    ["without a nonce", 400, () => withHeader("BinancePay-Nonce", "")],
    ["of six minutes ago", 401, () => world.provider.notice(order, { timestamp: String(Date.now() - 360_000) })],
    ["of six minutes ahead", 401, () => world.provider.notice(order, { timestamp: String(Date.now() + 360_000) })],
  ])("%s is refused and changes nothing", async (_, status, notice) => {
    expect(await world.send(notice())).toEqual([status, fits]);
    expect(await world.work()).toEqual({});
  });

  it("counts once: its nonce is not taken again, by any process", async () => {
    const notice = world.provider.notice(order);
    const sent = await Promise.all([world.send(notice), world.send(notice), world.send(notice)]);
    expect(sent.map(([status]) => status).toSorted((a, b) => a - b)).toEqual([200, 409, 409]);
    expect(await world.work()).toEqual({ credited: 1 });
    expect(await world.send(notice)).toEqual([409, fits]);
  });

  it("that arrives while its order is looked up causes another lookup", async () => {
    const { id, order: open } = await made(holder);
    await world.wait(id);
    world.provider.beforeResponse = async () => {
      open.status = "PAID"; // right after it was said to be unpaid
      expect((await world.send(world.provider.notice(open)))[0]).toBe(200);
    };
    expect(await world.work()).toEqual({ waiting: 1 });
    expect(await world.work()).toEqual({ credited: 1 });
  });

  it("is not needed to report orders that may be paid while Binance Pay is not configured", async () => {
    const gil = await world.as("gil");
    const before = await waiting();
    const { id, order: open } = await made(gil);
    expect(await waiting()).toBe(before + 1);
    open.status = "PAID";
    await world.wait(id);
    expect(await world.work()).toEqual({ credited: 1 });
    expect(await waiting()).toBe(before);
    async function waiting(): Promise<number> {
      const problems = await findPaymentAppProblems(world.sql, false);
      const unsettled = problems.find(({ subject }) => subject === "orders not settled");
      return Number(/^\d+/.exec(unsettled?.text ?? "0")?.[0]);
    }
  });

  it("that a credited payment was refunded raises an alert until the credit is reversed", async () => {
    const fay = await world.as("fay");
    const { id, order: paid } = await made(fay);
    paid.status = "PAID";
    await world.send(world.provider.notice(paid));
    expect(await world.work()).toEqual({ credited: 1 });
    paid.status = "FULL_REFUNDED";
    const refund = (bizStatus: string) => world.provider.notice(paid, { bizType: "PAY_REFUND", bizStatus });
    expect((await world.send(refund("REFUND_REJECTED")))[0]).toBe(200);
    expect(await findPaymentAppProblems(world.sql, true)).toEqual([]);
    for (let n = 0; n < 2; n += 1) expect((await world.send(refund("REFUND_SUCCESS")))[0]).toBe(200);
    const [{ transaction } = { transaction: 0n }] = await world.sql<{ transaction: bigint }[]>`
      select transaction_id as transaction from topups where id = ${id}`;
    expect(await findPaymentAppProblems(world.sql, true)).toEqual([
      {
        subject: `refund of top-up ${id}`,
        text: expect.stringMatching(`25\\.17 USD .* reversal of transaction ${transaction}`),
      },
    ]);
    const off = async () => (await findPaymentAppProblems(world.sql, false)).map(({ subject }) => subject);
    expect(await off()).toContain(`refund of top-up ${id}`);
    await reverse(transaction, { owner: fay.accountId, micros: 25_170_000n });
    expect(await findPaymentAppProblems(world.sql, true)).toEqual([]);
  });

  it("of an unknown order is accepted, credits nothing, and raises an alert if the order was paid", async () => {
    const unknown = { ...order, prepayId: "1", status: "PAID" };
    expect((await world.send(world.provider.notice(unknown, { bizStatus: "PAY_CLOSED" })))[0]).toBe(200);
    expect(await troubles()).toEqual([]);
    for (let n = 0; n < 2; n += 1) expect((await world.send(world.provider.notice(unknown)))[0]).toBe(200);
    expect(await world.work()).toEqual({});
    expect(await findPaymentAppProblems(world.sql, true)).toEqual([
      { subject: "unknown orders, newest 1", text: expect.stringMatching(/an order was paid .* unknown here.*: 1;/) },
    ]);
    for (let n = 2; n <= 7; n += 1) await world.send(world.provider.notice({ ...unknown, prepayId: String(n) }));
    expect(await findPaymentAppProblems(world.sql, true)).toEqual([
      {
        subject: "unknown orders, newest 7",
        text: expect.stringMatching(/7 orders were paid .*: 7, 6, 5, 4, 3 and 2 more; .* RH, .* another shop/),
      },
    ]);
    await world.sql`update payment_app_unknown_orders set seen_at = now() - interval '8 days'`;
    expect(await troubles()).toEqual([]);
  });

  it.each([
    ["another shop of the merchant", "9825382937292", 0],
    ["us, as after a restore,", `RH${"2".repeat(20)}1`, 1],
  ])("of an unknown order that was made by %s raises as many alerts: its number is %s", async (_, number, count) => {
    await world.sql`truncate payment_app_unknown_orders`;
    const unknown = { ...order, prepayId: "8", status: "PAID", merchantTradeNo: number };
    expect((await world.send(world.provider.notice(unknown)))[0]).toBe(200);
    expect(await troubles()).toHaveLength(count);
    await world.sql`truncate payment_app_unknown_orders`;
  });

  it.each([undefined, null, 7, "no JSON", "7", "{}", "null", '{"merchantTradeNo":7}'])(
    "may be of our order if it has no trade number: %j",
    (data) => expect(mayBeOurs(data)).toBe(true),
  );

  it("of a key that is new makes the worker ask for the keys, at most every five minutes", async () => {
    await world.sql`delete from payment_app_certificates`;
    const asked = () => world.provider.calls.filter((call) => call.endsWith("/certificates")).length;
    const before = asked();
    expect(await world.send(world.provider.notice(order))).toEqual([401, fits]);
    await world.sql`update payment_app_state set certificates_tried_at = null`;
    expect(await world.work()).toEqual({}); // they were fetched a moment ago
    await world.sql`update payment_app_state set certificates_at = now() - interval '6 minutes'`;
    expect(await world.work()).toEqual({ certificates: 1 });
    expect(asked()).toBe(before + 1);
    expect((await world.send(world.provider.notice(order)))[0]).toBe(200);
  });

  it("is not larger than 64 KiB, is sent by POST, and to its own address alone", async () => {
    const huge = await fetch(world.notifyUrl, { method: "POST", body: "x".repeat(70_000) }).then(
      ({ status }) => status,
      () => 413,
    );
    expect(huge).toBe(413);
    expect((await fetch(world.notifyUrl)).status).toBe(405);
    expect((await fetch(`${world.notifyUrl}/more`, { method: "POST" })).status).toBe(404);
  });

  function withHeader(name: string, value: string) {
    const { headers, body } = world.provider.notice(order);
    return { body, headers: { ...headers, [name]: value } };
  }
});

describe("without a configured payment app", () => {
  const settings = loadSettings({});
  it("is not offered, its pages are not found, and nothing is taken", async () => {
    expect(configuredMethods(settings).map(({ id }) => id)).not.toContain("binance-pay");
    for (const page of [binancePayPage, binancePayOrderPage]) {
      const parts = { sql: world.sql, settings } as Parameters<typeof page.show>[0];
      const holder = await world.as("ana");
      const asked = { holder, params: { id: "1" }, query: {} } as unknown as Parameters<typeof page.show>[1];
      expect(await page.show(parts, asked)).toBeNull();
    }
    const { listener } = notifySurface({ sql: world.sql, settings, log: undefined as never });
    let status = 0;
    const response = { writeHead: (code: number) => (status = code), end: () => undefined };
    listener()({ url: "/topups/binance-pay/notify", method: "POST", complete: true } as never, response as never);
    await eventually(() => status === 404);
  });

  it.each([
    [{ BINANCE_PAY_KEY: "a-key-of-ours" }, "BINANCE_PAY_KEY: expected BINANCE_PAY_SECRET too"],
    [{ BINANCE_PAY_URL: "http://pay.example" }, "BINANCE_PAY_URL: expected a URL that begins with https://"],
  ])("half a configuration is refused: %j", (env, message) => {
    expect(() => loadSettings(env)).toThrow(message);
  });
});

describe("[API10] the responses of the payment app", () => {
  it("are interpreted like the examples", () => {
    const claims = listExamples("src/topups/binance-pay/responses.ts").flatMap((one) =>
      runExample(one, { ...answers }),
    );
    expect(claims).toHaveLength(3);
    for (const { line, actual, expected } of claims) expect([line, actual]).toEqual([line, expected]);
  });

  it("counts as paid for one amount alone, whatever else it states", () => {
    const ours = { tradeNo: "RH1", prepayId: "7", micros: 25_170_000n };
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.float().map(String), fc.bigInt().map(String)), (orderAmount) => {
        const told = { prepayId: "7", merchantTradeNo: "RH1", currency: "USDT", status: "PAID", orderAmount };
        const isPaid = answers.decideOrder(ours, told).kind === "paid";
        expect(isPaid).toBe(/^0*25\.170*$/.test(orderAmount.trim()));
      }),
    );
  });
});

describe("a response of the payment app that no column holds", () => {
  const MAKE = "/binancepay/openapi/v3/order";
  const ASK = "/binancepay/openapi/v2/order/query";
  const inData = (changed: object) => (said: Record<string, unknown>) => ({
    ...said,
    data: { ...(said["data"] as object), ...changed },
  });
  it.each<[string, string, (said: Record<string, unknown>) => Record<string, unknown>]>([
    ["[NUMBERS] an end of an order beyond all calendars", MAKE, inData({ expireTime: 9e15 })],
    ["[NUMBERS] an end of an order as a fraction", MAKE, inData({ expireTime: 1.5 })],
    ["[NUMBERS] an id that is no id", MAKE, inData({ prepayId: "9".repeat(65) })],
    ["[TEXTS] a zero byte in a code", MAKE, inData({ qrContent: "a\0b" })],
    ["[TEXTS] a zero byte in a link", MAKE, inData({ checkoutUrl: "https://pay.example/\0" })],
    [
      "[TEXTS] a zero byte and a megabyte in an error",
      MAKE,
      () => ({ status: "FAIL", code: "\0", errorMessage: `\0${"x".repeat(60_000)}` }),
    ],
    ["[TEXTS] a zero byte in a status", ASK, inData({ status: "PAID\0" })],
    ["[NUMBERS] an amount with a zero byte", ASK, inData({ orderAmount: "25\0" })],
  ])("%s: the order waits, and is made or asked for again", async (_, call, lie) => {
    const { provider, sql } = world;
    await sql`update payment_app_orders set state = 'closed', ask_at = null where state <> 'paid'`;
    const client = await world.as(`liar-${crypto.randomUUID().slice(0, 8)}`);
    const { id } = call === ASK ? await made(client) : { id: (await begin(client)).split("/").at(-1) ?? "" };
    if (call === ASK) await world.wait(id);
    provider.lie = (asked, said) => (asked === call ? lie(said) : said);
    try {
      expect(await world.work()).toMatchObject({ failed: 1 });
    } finally {
      provider.lie = null;
    }
    const [row] = await sql<
      { error: string }[]
    >`select last_error as error from payment_app_orders where topup_id = ${id}`;
    expect(row?.error.length).toBeGreaterThan(0);
    expect(row?.error.length).toBeLessThanOrEqual(300);
    await world.wait(id);
    await world.work();
    expect((await stateOf(id))[0]).toBe("open");
    await sql`update payment_app_orders set state = 'closed', ask_at = null where topup_id = ${id}`;
  });

  it("[TEXTS] keys with a zero byte are left out", async () => {
    const { provider, sql } = world;
    await sql`update payment_app_state set certificates_at = null, certificates_tried_at = null`;
    provider.lie = (call, said) => {
      const [own] = call.endsWith("certificates") ? (said["data"] as { certSerial: string; certPublic: string }[]) : [];
      return own === undefined ? said : { ...said, data: [{ ...own, certPublic: `${own.certPublic}\0` }] };
    };
    try {
      expect(await world.work()).toMatchObject({ failed: 1 });
    } finally {
      provider.lie = null;
    }
  });
});

describe("a process that is killed", () => {
  const script = path.join(import.meta.dirname, "binance-pay-process.ts");
  const ORDERS = "before update on payment_app_orders for each row when";
  const STEPS: Record<string, string> = {
    "begin attempt": `${ORDERS} (new.attempts > old.attempts)`,
    "keep the order": `${ORDERS} (old.state = 'new' and new.state = 'open')`,
    "note the turn": `${ORDERS} (old.state = new.state and new.attempts = old.attempts)`,
    "post the credit": "before insert on ledger_entries for each row",
    "mark the order": `${ORDERS} (new.state = 'paid')`,
    commit: "after insert on mails deferrable initially deferred for each row",
  };
  let victims: Map<string, Victim>;
  beforeAll(async () => {
    victims = await makeVictims(world, script, STEPS);
  });
  /** Lets a process do a task and kills it where it stops. */
  const killIn = (name: string, task: Omit<Task, "settings">) =>
    victims.get(name)!.killIn({ ...task, settings: world.settings });

  it("between any two steps leaves nothing half done, and what is done again is done once", async () => {
    const kim = await world.as("kim");
    const page = await begin(kim, "40");
    const id = page.split("/").at(-1) ?? "";
    const forForty = () => [...world.provider.orders.values()].filter((one) => one.orderAmount === "40.00000000");
    await killIn("begin attempt", { of: id });
    expect([await stateOf(id), forForty().length]).toEqual([["new", "expected"], 0]);
    await world.wait(id);
    await killIn("keep the order", { of: id }); // made at the payment app, and nobody knows where to pay it
    expect([await stateOf(id), forForty().length]).toEqual([["new", "expected"], 1]);
    await world.wait(id);
    expect(await world.work()).toMatchObject({ made: 1 });
    const order = await orderOf(id);
    expect(forForty()).toHaveLength(2);
    order.status = "PAID";

    const notice = world.provider.notice(order);
    await killIn("note the turn", { notice });
    const nonce = notice.headers["BinancePay-Nonce"] ?? "";
    expect(await world.sql`select 1 from payment_app_nonces where nonce = ${nonce}`).toHaveLength(0);
    expect((await world.send(notice))[0]).toBe(200); // sent again, it counts

    for (const step of ["post the credit", "mark the order"]) {
      await world.wait(id);
      await killIn(step, { of: id });
      expect([step, await world.wallet(kim.accountId), await stateOf(id)]).toEqual([step, 0n, ["open", "expected"]]);
    }
    // the database was told to commit already: it may, though nobody hears of it, and then all of it is there
    await world.wait(id);
    await killIn("commit", { of: id });
    const isDone = (await world.wallet(kim.accountId)) > 0n;
    expect(await stateOf(id)).toEqual(isDone ? ["paid", "credited"] : ["open", "expected"]);
    await world.wait(id);
    expect(await world.work()).toEqual(isDone ? {} : { credited: 1 });
    expect(await world.wallet(kim.accountId)).toBe(40_000_000n);
    expect(await creditsOf(id)).toHaveLength(1);
    expect(await world.sql`select 1 from mails where dedup_key = ${`topup ${id} credited`}`).toHaveLength(1);
    expect((await checkLedger(world.sql)).ok).toBe(true);
  });
});
