import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { walletMicros } from "../../src/ledger/store.ts";
import { creditTopup, findTopup, saveTopup } from "../../src/topups/topup-store.ts";
import { openConsoleWorld, type ConsoleWorld } from "../console/world.ts";
import { problemOf } from "./bank-world.ts";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await openConsoleWorld({
    variables: {
      BANK_BENEFICIARY: "Roundhouse Ltd",
      BANK_IBAN: "de89 3704 0044 0532 0130 00",
      BANK_CURRENCIES: "USD,EUR",
    },
  });
});
afterAll(() => world?.close());

/** A top-up by the payment app, with its order: paid, so that it may be credited. */
const begin = async (accountId: bigint, reference: string) => {
  const id = await saveTopup(world.sql, { accountId, method: "binance-pay", reference });
  if (id === null) return null;
  await world.sql`
    insert into payment_app_orders (topup_id, trade_no, amount_micros, state, prepay_id, checkout_url, expires_at)
    values (${id}, ${`trade${id}`}, 5000000, 'paid', ${`prepay${id}`}, 'https://pay.example', now())`;
  return id;
};
const credit = (topupId: bigint, key: string, micros = 5_000_000n) =>
  world.sql.begin((tx) => creditTopup(tx, { topupId, micros, key, cash: "cash_payapp" }));

describe("a top-up", () => {
  it("is credited once, however often it is asked for, with one mail", async () => {
    const { accountId, email } = await world.makeHolder("once@example.com");
    const topup = (await begin(accountId, "chain:1"))!;
    const answers = await Promise.all([1, 2, 3, 4].map(() => credit(topup, "evm:1")));
    expect(answers.filter((one) => one.ok)).toHaveLength(4);
    expect(answers.filter((one) => one.ok && !one.isReplay)).toHaveLength(1);
    expect(await walletMicros(world.sql, accountId)).toBe(5_000_000n);
    expect(await findTopup(world.sql, accountId, topup)).toMatchObject({ state: "credited", amountMicros: 5_000_000n });
    expect(await world.sql`select kind from mails where recipient = ${email}`).toEqual([{ kind: "topup-credited" }]);
    expect(await begin(accountId, "chain:1")).toBeNull();
  });

  it("is not credited by other money, nor money to another top-up; both leave everything as it was", async () => {
    const { accountId } = await world.makeHolder("other@example.com");
    const [first, second] = [(await begin(accountId, "chain:2"))!, (await begin(accountId, "chain:3"))!];
    await credit(first, "evm:2");
    await expect(credit(first, "evm:other")).rejects.toThrow("one top-up is one credit");
    expect(await credit(second, "evm:2")).toMatchObject({ ok: false, reason: "other-request" });
    expect(await credit(first, "evm:2", 6_000_000n)).toMatchObject({ ok: false, reason: "other-request" });
    expect(await walletMicros(world.sql, accountId)).toBe(5_000_000n);
    expect((await findTopup(world.sql, accountId, second))?.state).toBe("expected");
    await expect(world.sql`update topups set amount_micros = 1 where id = ${first}`).rejects.toThrow("was credited");
    await expect(world.sql`delete from topups where id = ${second}`).rejects.toThrow("never deleted");
  });

  it("of a closed account is credited, and no mail is sent", async () => {
    const { accountId } = await world.makeHolder("gone@example.com");
    const topup = (await begin(accountId, "chain:4"))!;
    await world.sql`
      update accounts set closed_at = now(), user_id = null, email = 'closed@example.invalid' where id = ${accountId}`;
    expect(await credit(topup, "evm:4")).toMatchObject({ ok: true });
    expect(await world.sql`select from mails where recipient like '%.invalid'`).toHaveLength(0);
  });
});

describe("a holder who tops up by bank", () => {
  it("is given an amount, gets a reference with everything to copy, and shows its status", async () => {
    const ann = await world.as("ann");
    expect(await (await ann.get("/console/top-up")).text()).toContain("Bank transfer");
    const made = await ann.post("/console/top-up/bank", { amount: "1.250,5", currency: "EUR" });
    const path = made.headers.get("location")!;
    const page = await (await ann.get(path)).text();
    const [row] = await world.sql<{ reference: string; id: bigint }[]>`
      select id, reference from topups where account_id = ${ann.accountId}`;
    for (const text of [row!.reference, "1250.50 EUR", "Roundhouse Ltd", "DE89370400440532013000", "DE89 3704"]) {
      expect(page).toContain(text);
    }
    const entries =
      await world.sql`select actor, target, after::text as after from audit_log where action = 'topup.announce'`;
    expect(entries).toMatchObject([{ actor: `account ${ann.accountId}` }]);
    expect(JSON.stringify(entries)).not.toContain("@");
    await world.sql`update topups set expires_at = now() where id = ${row!.id}`;
    expect(await (await ann.get(path)).text()).toContain("It did not arrive in time");
  });

  it("has a limited number of open ones, may cancel one, and none of another account", async () => {
    const [ben, cleo] = [await world.as("ben"), await world.as("cleo")];
    const announce = () => ben.post("/console/top-up/bank", { amount: "10", currency: "USD" });
    const made = await Promise.all(Array.from({ length: 7 }, announce));
    expect(made.filter(({ status }) => status === 303)).toHaveLength(5);
    expect(made.filter(({ status }) => status === 422)).toHaveLength(2);
    expect(await (await ben.get("/console/top-up/bank")).text()).toContain("You have 5 pending transfers");
    const path = made.find(({ status }) => status === 303)!.headers.get("location")!;
    expect((await cleo.get(path)).status).toBe(404);
    expect((await cleo.post(`${path}/cancel`)).status).toBe(404);
    expect((await ben.post(`${path}/cancel`)).status).toBe(303);
    expect(await problemOf(await ben.post(`${path}/cancel`))).toContain("cannot be cancelled");
    expect((await announce()).status).toBe(303);
  });

  it("may announce twenty within a day, also if each is cancelled", async () => {
    const dora = await world.as("dora");
    const announce = () => dora.post("/console/top-up/bank", { amount: "10", currency: "USD" });
    for (let n = 0; n < 20; n += 1) {
      const made = await announce();
      expect(made.status).toBe(303);
      await dora.post(`${made.headers.get("location")}/cancel`);
    }
    expect(await problemOf(await announce())).toContain("You announced 20 transfers within a day");
    expect(await world.sql`select from topups where account_id = ${dora.accountId}`).toHaveLength(20);
  });

  it("sees that a credit was reversed, and when", async () => {
    const eve = await world.as("eve");
    const made = await eve.post("/console/top-up/bank", { amount: "10", currency: "USD" });
    const path = made.headers.get("location")!;
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      const [credited] = await tx<{ id: bigint }[]>`
        insert into ledger_transactions (kind, idempotency_key, request_hash)
        values ('topup', 'credited for eve', repeat('0', 64))
        returning id`;
      await tx`
        update topups
        set state = 'credited', amount_micros = 10000000, credited_at = now(), transaction_id = ${credited!.id}
        where account_id = ${eve.accountId}`;
      await tx`
        insert into ledger_transactions (kind, idempotency_key, request_hash, reverses)
        values ('reversal', 'reversed for eve', repeat('0', 64), ${credited!.id})`;
    });
    const page = await (await eve.get(path)).text();
    expect(page).toContain("It was credited and then taken back from your balance.");
    expect(page).toContain(">Taken back<");
    expect(page).not.toContain("It is in your balance.");
    expect(await (await eve.get("/console/top-up")).text()).toMatch(/>reversed</);
  });

  it("does not see a transfer that was matched with the account by mistake", async () => {
    const fay = await world.as("fay");
    const details = { line: "1" };
    const id = await saveTopup(world.sql, { accountId: fay.accountId, method: "bank", reference: "RF1", details });
    await world.sql`update topups set state = 'cancelled' where id = ${id}`;
    expect(await (await fay.get("/console/top-up")).text()).not.toContain("RF1");
    expect((await fay.get(`/console/top-up/bank/${id}`)).status).toBe(404);
  });

  it.each([
    ["-1", "USD"],
    ["0.001", "USD"],
    ["10", "GBP"],
    ["9".repeat(30), "EUR"],
    ["", "EUR"],
  ])("is refused with the reason for %j %s", async (amount, currency) => {
    const cleo = await world.as("cleo");
    expect((await cleo.post("/console/top-up/bank", { amount, currency })).status).toBe(422);
  });
});

describe("if no method to pay in is configured", () => {
  it("the page states it, and no page of a method is found", async () => {
    const bare = await openConsoleWorld();
    try {
      const ann = await bare.as("ann");
      const page = await (await ann.get("/console/top-up")).text();
      expect(page).toContain("has not set up a payment method yet");
      expect(page).not.toContain("Bank transfer");
      for (const path of ["/console/top-up/bank", "/console/top-up/bank/1"])
        expect((await ann.get(path)).status).toBe(404);
      for (const path of ["/console/top-up/bank", "/console/top-up/bank/1/cancel"]) {
        expect((await ann.post(path, { amount: "1", currency: "USD" })).status).toBe(404);
      }
    } finally {
      await bare.close();
    }
  });
});
