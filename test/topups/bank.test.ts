import { join } from "node:path";
import { noteOperatorChange } from "../../src/accounts/operators/operator-change-store.ts";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { closeRows } from "../../src/accounts/holders/close-store.ts";
import { connect, type Transaction } from "../../src/db/client.ts";
import { ROLES } from "../../src/db/roles/role-grants.ts";
import { checkLedger } from "../../src/ledger/check.ts";
import type { Leg } from "../../src/ledger/posting.ts";
import { post } from "../../src/ledger/store.ts";
import { listOpenSubjects } from "../../src/alerts/store.ts";
import { RATE_OF_USD } from "../../src/topups/bank/statements/amount.ts";
import { saveLines } from "../../src/topups/bank/line-store.ts";
import { approveMatch, matchLine } from "../../src/topups/bank/match.ts";
import { findOverdue } from "../../src/topups/bank/overdue-store.ts";
import { findSuspense } from "../../src/topups/bank/suspense-store.ts";
import { watchOverdueApprovals, watchSuspense } from "../../src/topups/bank/watch.ts";
import { findTopup, lockTopup } from "../../src/topups/topup-store.ts";
import { testContext } from "../support/context.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { makeVictims, stopAt } from "../support/victims.ts";
import { openBankWorld, problemOf, type BankWorld } from "./bank-world.ts";
import type { CookieClient } from "../support/cookie-client.ts";
import { assignments } from "../support/assignments.ts";

let bank: BankWorld;

beforeAll(async () => {
  bank = await openBankWorld();
});
afterAll(() => bank?.world.close());

/** A transfer that an account announced, a line with its reference, and their match by Ann. */
async function makeMatch(email: string) {
  const account = await bank.account(email);
  const topup = await bank.announce(account);
  const path = await bank.enter({ remittance: topup.reference });
  await bank.match(path, topup.reference, account);
  return { account, topup, path, match: await bank.matchId(path) };
}

describe("a bank transfer", () => {
  it("is credited once a second person approves the match of the first, and its holder gets a mail", async () => {
    const cleo = await bank.account("cleo@example.com");
    const topup = await bank.announce(cleo);
    const path = await bank.enter({
      remittance: `plan ${topup.reference.toLowerCase().replace(/(.{4})/g, "$1 ")} thanks`,
    });
    const page = await (await bank.ann.get(path)).text();
    expect(page).toContain("cleo@example.com");
    expect(page).toContain(">exact<");

    expect((await bank.match(path, topup.reference, cleo)).status).toBe(303);
    expect(await bank.holds("wallet", cleo)).toBe(0n);
    expect((await findTopup(bank.sql, cleo, topup.id))?.state).toBe("seen");
    const match = await bank.matchId(path);
    expect((await bank.ben.post(`${path}/approve`, { match })).status).toBe(303);

    expect(await bank.holds("wallet", cleo)).toBe(100_000_000n);
    expect(await bank.stateOf(path)).toBe("credited");
    const credited = await findTopup(bank.sql, cleo, topup.id);
    expect(credited).toMatchObject({ state: "credited", amountMicros: 100_000_000n });
    const mails = await bank.sql`select kind, recipient, body from mails where recipient = 'cleo@example.com'`;
    expect(mails).toMatchObject([{ kind: "topup-credited", body: expect.stringContaining(topup.reference) as string }]);
    const entries = await bank.sql`select action, actor from audit_log where target like ${`bank line %`} order by seq`;
    expect(entries).toMatchObject([
      { action: "bank.line.add", actor: "ann@example.com" },
      { action: "bank.line.match", actor: "ann@example.com" },
      { action: "bank.match.approve", actor: "ben@example.com" },
    ]);
    const [posted] =
      await bank.sql`select kind, idempotency_key as key from ledger_transactions order by id desc limit 1`;
    expect(posted).toEqual({ kind: "topup", key: "bank:main:ref-1" });
  });

  it("[FOUR-EYES] is not approved by a person created or reset within a day, nor ever by the author of the work", async () => {
    const { sql, world } = bank;
    await world.makeOperator("chief@example.com", "admin");
    const userId = await world.makeOperator("puppet@example.com", "operator");
    const { client: puppet } = await world.signIn("puppet@example.com");
    await sql`update auth.users set two_factor_enabled = true where id = ${userId}`;
    const { path, match } = await makeMatch("eyes@example.com");
    const change = (by: string) =>
      sql.begin((tx) => noteOperatorChange(tx, { userId, email: "puppet@example.com", what: "password", by }));
    const aDayLater = async () => {
      await sql`alter table operator_changes disable trigger operator_change_is_never_changed`;
      await sql`update operator_changes set made_at = made_at - interval '25 hours'`;
      await sql`alter table operator_changes enable trigger operator_change_is_never_changed`;
    };
    const approve = async () => problemOf(await puppet.post(`${path}/approve`, { match }));

    await change("chief@example.com");
    expect(await sql`select recipient from mails where kind = 'operator-changed'`).toEqual([
      { recipient: "chief@example.com" },
    ]);
    expect(await approve()).toContain("your password was reset by chief@example.com; you can approve from");
    await change("ann@example.com");
    await aDayLater();
    expect(await approve()).toContain("by ann@example.com, whose work this is: another person has to approve it");
    const refusals = await sql`select actor from audit_log where action = 'bank.match.approve.refused'`;
    expect(refusals).toEqual([{ actor: "puppet@example.com" }, { actor: "puppet@example.com" }]);

    expect((await bank.ben.post(`${path}/approve`, { match })).status).toBe(303);
    const [entry] = await sql`
      select after -> 'approver' as approver from audit_log where action = 'bank.match.approve' order by seq desc limit 1`;
    expect(entry).toEqual({ approver: [] });
  });

  it.for([
    ["disabled", "disabled_at = now()"],
    ["made a viewer", "role = 'viewer'"],
  ] as const)("[FOUR-EYES] is not approved by a person who is %s meanwhile", async ([what, change], { task }) => {
    const email = `${task.id}@example.com`;
    const id = await bank.world.makeOperator(email, "operator");
    const { client } = await bank.world.signIn(email);
    await bank.sql`update auth.users set two_factor_enabled = true where id = ${id}`;
    const { path, match } = await makeMatch(`of-${email}`);
    const { sent } = await bank.sql.begin(async (tx) => {
      await tx`update operators set ${tx.unsafe(change)} where user_id = ${id}`;
      const sending = client.post(`${path}/approve`, { match });
      await lockWaits(bank.sql, 1);
      return { sent: sending };
    });
    expect([what, (await sent).status]).toEqual([what, 403]);
    expect(await bank.stateOf(path)).toBe("matched");
  });

  it("[V2] is not approved by who matched or entered it, at the page, or past it at the database", async () => {
    const { account, topup, path, match } = await makeMatch("self@example.com");
    const refused = await bank.ann.post(`${path}/approve`, { match });
    expect(refused.status).toBe(422);
    expect(await problemOf(refused)).toContain("another person has to approve");
    await expect(
      bank.sql`update bank_matches set approved_by = matched_by, approved_at = now() where id = ${match}`,
    ).rejects.toThrow("match_is_approved_by_another");

    // Ben matches what Ann entered: Ann may not approve that either
    await bank.ann.post(`${path}/unmatch`, { match, reason: "Ben does it" });
    await bank.ben.post(`${path}/match`, { to: topup.reference, account: String(account) });
    const second = await bank.matchId(path);
    expect(await problemOf(await bank.ann.post(`${path}/approve`, { match: second }))).toContain(
      "you entered this line",
    );
    await expect(
      bank.sql`update bank_matches set approved_by = entered_by, approved_at = now() where id = ${second}`,
    ).rejects.toThrow("match_is_approved_by_another");
    await expect(
      bank.sql`update bank_lines set state = 'credited', credit_transaction_id = 1 where id = ${/\d+$/.exec(path)![0]}`,
    ).rejects.toThrow("another person has approved");
    expect(await bank.holds("wallet", account)).toBe(0n);
  });

  it("is credited once, however many approve it at the same time", async () => {
    const { account, path, match } = await makeMatch("rush@example.com");
    const answers = await Promise.all(Array.from({ length: 6 }, () => bank.ben.post(`${path}/approve`, { match })));
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 422)).toHaveLength(5);
    expect(await bank.holds("wallet", account)).toBe(100_000_000n);
    const mails = await bank.sql`select from mails where recipient = 'rush@example.com'`;
    expect(mails).toHaveLength(1);
  });

  it("in another currency is credited at the entered rate, shown to both", async () => {
    const account = await bank.account("euro@example.com");
    const topup = await bank.announce(account, "50.00 EUR");
    const path = await bank.enter({ remittance: topup.reference, amount: "50,00", currency: "EUR" });
    const preview = await (await bank.ann.get(`${path}?to=${topup.reference}&rate=1.0823`)).text();
    expect(preview).toContain("54.115 USD");
    expect(await problemOf(await bank.match(path, topup.reference, account))).toContain("nothing is no rate");
    await bank.match(path, topup.reference, account, "1.0823");
    expect(await (await bank.ben.get(path)).text()).toContain("1 EUR = 1.0823 USD");
    await bank.ben.post(`${path}/approve`, { match: await bank.matchId(path) });
    expect(await bank.holds("wallet", account)).toBe(54_115_000n);
  });

  it("sent twice with one reference is one more top-up of the same account", async () => {
    const account = await bank.account("again@example.com");
    const topup = await bank.announce(account);
    for (const amount of ["10.00", "11.00"]) {
      const path = await bank.enter({ remittance: topup.reference, amount });
      await bank.match(path, topup.reference, account);
      await bank.ben.post(`${path}/approve`, { match: await bank.matchId(path) });
    }
    expect(await bank.holds("wallet", account)).toBe(21_000_000n);
    const rows =
      await bank.sql`select details ->> 'again' as again from topups where account_id = ${account} order by id`;
    expect(rows).toEqual([{ again: null }, { again: topup.reference }]);
  });

  it("that arrives after it was cancelled, or too late, is credited all the same", async () => {
    const account = await bank.account("late-or-not@example.com");
    for (const change of [{ state: "cancelled" }, { expires_at: "2026-01-01" }]) {
      const topup = await bank.announce(account);
      await bank.sql`update topups set ${assignments(bank.sql, change)} where id = ${topup.id}`;
      const path = await bank.enter({ remittance: topup.reference });
      await bank.match(path, topup.reference, account);
      const first = await bank.matchId(path);
      await bank.ann.post(`${path}/unmatch`, { match: first, reason: "a slip" });
      expect((await findTopup(bank.sql, account, topup.id))?.state).toBe(change.state ?? "expired");
      await bank.match(path, topup.reference, account);
      await bank.ben.post(`${path}/approve`, { match: await bank.matchId(path) });
    }
    expect(await bank.holds("wallet", account)).toBe(200_000_000n);
  });

  it("with a typo in its reference is proposed as such", async () => {
    const account = await bank.account("typo@example.com");
    const { reference } = await bank.announce(account);
    const last = reference.at(-1) === "7" ? "8" : "7";
    const path = await bank.enter({ remittance: `Rechnung ${reference.slice(0, -1)}${last}` });
    const page = await (await bank.ann.get(path)).text();
    expect(page).toContain(">typo<");
    expect(page).toContain("typo@example.com");
    expect(await problemOf(await bank.match(path, `${reference.slice(0, -1)}${last}`, account))).toContain(
      "has a typo",
    );
  });

  it("is refused if the form names another account than that of the reference", async () => {
    const [own, other] = [await bank.account("own@example.com"), await bank.account("other@example.com")];
    const topup = await bank.announce(own);
    const path = await bank.enter({ remittance: topup.reference });
    const refused = await bank.match(path, topup.reference, other);
    expect(await problemOf(refused)).toContain(`is of account ${own}, not of ${other}`);
    expect(await bank.stateOf(path)).toBe("new");
    await bank.match(path, topup.reference, own);
    const first = await bank.matchId(path);
    await bank.ann.post(`${path}/unmatch`, { match: first, reason: "the other one" });
    await bank.match(path, "other@example.com", other);
    // Ben has the first match on his screen
    expect(await problemOf(await bank.ben.post(`${path}/approve`, { match: first }))).toContain("matched again");
    expect(await findTopup(bank.sql, other, topup.id)).toBeNull();
    expect(await bank.holds("wallet", own)).toBe(0n);
    expect(await bank.holds("wallet", other)).toBe(0n);
  });

  it("is approved by the same person if the setting allows one person, and that is recorded", async () => {
    const account = await bank.account("alone@example.com");
    const topup = await bank.announce(account);
    const path = await bank.enter({ remittance: topup.reference });
    await bank.match(path, topup.reference, account);
    const [ann] = await bank.sql<{ id: string }[]>`select id from auth.users where email = 'ann@example.com'`;
    const by = { id: ann!.id, email: "ann@example.com", hasTwoFactor: true };
    const [lineId, matchId] = [BigInt(/\d+$/.exec(path)![0]), BigInt(await bank.matchId(path))];
    const approve = (isOnePerson: boolean) =>
      bank.sql.begin((tx) => approveMatch(tx, by, { lineId, matchId, isOnePerson }));
    expect(await approve(false)).toMatchObject({ ok: false });
    expect(await approve(true)).toMatchObject({ ok: true });
    expect(await (await bank.ann.get(path)).text()).toContain("by the same person");
  });

  it.each([
    ["-5.00", "USD", "below zero"],
    ["0", "USD", "is nothing"],
    ["0.001", "USD", "more decimals"],
    ["1.0000001", "EUR", "more decimals"],
    ["1,234", "USD", "one or a thousand"],
    ["99999999999999", "USD", "a digit too many"],
    ["1e3", "USD", "no amount"],
    ["10.00", "GBP", "one of the currencies USD, EUR"],
  ])("of %s %s is not written down", async (amount, currency, why) => {
    const blank = { bank: "Main", bank_ref: "odd", value_date: "2026-11-20", sender: "X", remittance: "" };
    const response = await bank.ann.post("/ops/bank/lines/new", {
      ...blank,
      amount,
      currency,
    });
    expect(response.status).toBe(422);
    expect(await problemOf(response)).toContain(why);
  });

  it("is written down once, by the bank's own reference", async () => {
    await bank.enter({ bank_ref: "once" });
    await expect(bank.enter({ bank_ref: "once" })).rejects.toThrow("is here already");
    await expect(bank.enter({ bank_ref: "once", amount: "9.00" })).rejects.toThrow("with another amount");
    await expect(bank.enter({ bank: "MAIN", bank_ref: "once" })).rejects.toThrow("is here already");
    const twin = await bank.enter({ bank_ref: "once more" });
    expect(await (await bank.ann.get(twin)).text()).toContain(
      "Possible duplicates (same day and amount, same sender or reference)",
    );
    const capital = await bank.enter({ bank_ref: "ONCE", sender: "CALLER CLEO" });
    expect(await (await bank.ann.get(capital)).text()).toContain("main once</a>");
  });
});

describe("money that cannot be placed", () => {
  it("goes to suspense and from there to a wallet by two people", async () => {
    const account = await bank.account("late@example.com");
    const before = await bank.holds("suspense");
    const path = await bank.enter({ remittance: "no idea", currency: "EUR", amount: "20.00" });
    await bank.ann.post(`${path}/hold`, { rate: "1.1", reason: "unknown reference" });
    expect(await bank.stateOf(path)).toBe("suspense");
    expect((await bank.holds("suspense")) - before).toBe(22_000_000n);
    // the rate stands from when it was posted
    await bank.match(path, "late@example.com", account, "2");
    await bank.ben.post(`${path}/approve`, { match: await bank.matchId(path) });
    expect(await bank.holds("wallet", account)).toBe(22_000_000n);
    expect(await bank.holds("suspense")).toBe(before);
    const [posted] = await bank.sql`select kind from ledger_transactions order by id desc limit 1`;
    expect(posted).toEqual({ kind: "placement" });
  });

  it("[FOUR-EYES] is credited by neither who entered, set its rate nor decided on it, at the page or past it", async () => {
    const { sql, world } = bank;
    const id = await world.makeOperator("cat@example.com", "operator");
    const { client: cat } = await world.signIn("cat@example.com");
    await sql`update auth.users set two_factor_enabled = true where id = ${id}`;
    const account = await bank.account("held@example.com");
    const path = await bank.enter({ currency: "EUR", amount: "10000.00" });
    const lineId = /\d+$/.exec(path)![0];
    const third = "ann@example.com entered this line. If you set its rate, a third person has to approve its credit";
    const shown = async (of: CookieClient) => (await (await of.get(path)).text()).includes(third);
    expect([await shown(cat), await shown(bank.ann)]).toEqual([true, false]);
    await cat.post(`${path}/hold`, { rate: "10", reason: "unknown reference" });
    const held = "you set the rate of this line yourself: another person has to approve it";
    const page = async (of: CookieClient) => (await (await of.get(path)).text()).replaceAll(/\s+/g, " ");
    expect(await page(cat)).toContain("<dt>Held by</dt><dd>cat@example.com</dd>");

    await bank.ben.post(`${path}/match`, { to: "held@example.com", account: String(account), rate: "" });
    const match = await bank.matchId(path);
    expect(await page(cat)).toContain("You set the rate of this yourself: another person has to approve it.");
    expect(await problemOf(await cat.post(`${path}/approve`, { match }))).toBe(held);
    const approve = (table: string, which: string) =>
      sql`update ${sql(table)} set approved_by = ${id}, approved_at = now() where id = ${which}`;
    await expect(approve("bank_matches", match)).rejects.toThrow("match_is_approved_by_another");
    await expect(sql`update bank_lines set held_by = entered_by where id = ${lineId}`).rejects.toThrow("cannot change");
    await bank.ben.post(`${path}/unmatch`, { match, reason: "the rate is wrong" });

    await bank.ben.post(`${path}/return`, { reason: "sent back" });
    const [asked] = await sql<{ id: string }[]>`select max(id)::text as id from bank_returns`;
    const entered = "you entered this line yourself: another person has to approve it";
    expect(await page(bank.ann)).toContain("You entered the line yourself: another person has to confirm it.");
    expect(await problemOf(await bank.ann.post(`${path}/return/approve`, { return: asked!.id }))).toBe(entered);
    const past = sql`update bank_returns set approved_by = entered_by, approved_at = now() where id = ${asked!.id}`;
    await expect(past).rejects.toThrow("return_is_approved_by_another");
    expect(await bank.stateOf(path)).toBe("suspense");
    // all of it leaves suspense, whatever its rate is
    expect((await cat.post(`${path}/return/approve`, { return: asked!.id })).status).toBe(303);
    expect(await bank.stateOf(path)).toBe("returned");
  });

  it.each([
    ["USD", ""],
    ["EUR", "1.1"],
  ])(
    "in %s that was rejected is returned by two people, of whom one entered it and the other matched it",
    async (currency, rate) => {
      const email = `refused-${currency}@example.com`;
      const account = await bank.account(email);
      const path = await bank.enter({ currency });
      await bank.ben.post(`${path}/match`, { to: email, account: String(account), rate });
      await bank.ann.post(`${path}/reject`, { match: await bank.matchId(path), reason: "the name does not fit" });
      expect(await bank.stateOf(path)).toBe("rejected");
      await bank.ann.post(`${path}/return`, { reason: "sent back" });
      const [asked] = await bank.sql<{ id: string }[]>`select max(id)::text as id from bank_returns`;
      expect(await (await bank.ben.get(path)).text()).toContain("Confirm return");
      expect((await bank.ben.post(`${path}/return/approve`, { return: asked!.id })).status).toBe(303);
      expect(await bank.stateOf(path)).toBe("returned");
    },
  );

  it("in USD is credited by two people, also if it was put into suspense by the one who did not enter it", async () => {
    const account = await bank.account("pair@example.com");
    const path = await bank.enter({});
    expect(await (await bank.ben.get(path)).text()).not.toContain("a third person has to approve");
    await bank.ben.post(`${path}/hold`, { reason: "unknown reference" });
    await bank.match(path, "pair@example.com", account);
    expect((await bank.ben.post(`${path}/approve`, { match: await bank.matchId(path) })).status).toBe(303);
    expect(await bank.holds("wallet", account)).toBe(100_000_000n);
  });

  it("[FOUR-EYES] is credited by no match that hides who set its rate", async () => {
    const { sql } = bank;
    const account = await bank.account("hidden@example.com");
    const path = await bank.enter({ currency: "EUR" });
    await bank.ben.post(`${path}/hold`, { rate: "1.1", reason: "unknown reference" });
    await bank.match(path, "hidden@example.com", account);
    const run = sql.begin(async (tx) => {
      await tx`alter table bank_matches disable trigger bank_match_is_never_changed`;
      await tx`update bank_matches set held_by = null where id = ${await bank.matchId(path)}`;
      await tx`alter table bank_matches enable trigger bank_match_is_never_changed`;
      await tx`
        update bank_matches
        set approved_by = (select user_id from operators where user_id not in (matched_by, entered_by) limit 1), approved_at = now()
        where line_id = ${/\d+$/.exec(path)![0]}`;
      await tx`update bank_lines set state = 'credited' where id = ${/\d+$/.exec(path)![0]}`;
    });
    await expect(run).rejects.toThrow("can be credited only after another person has approved its account");
  });

  it.each([
    ["from suspense", true],
    ["directly", false],
  ])(
    "that was credited %s to the wrong account is reversed, entered again and credited to the right one",
    async (_, isHeld) => {
      const [wrong, right] = [
        await bank.account(`wrong-${isHeld}@example.com`),
        await bank.account(`right-${isHeld}@example.com`),
      ];
      const [suspense, cash] = [await bank.holds("suspense"), await bank.holds("cash_bank")];
      const ref = `misplaced-${isHeld}`;
      const path = await bank.enter({ bank_ref: ref });
      if (isHeld) await bank.ann.post(`${path}/hold`, { reason: "unknown reference" });
      await bank.match(path, `wrong-${isHeld}@example.com`, wrong);
      await bank.ben.post(`${path}/approve`, { match: await bank.matchId(path) });
      const [line] = await bank.sql<{ held: bigint | null; credit: bigint }[]>`
        select suspense_transaction_id as held, credit_transaction_id as credit from bank_lines where bank_ref = ${ref}`;
      const propose = (id: bigint) =>
        bank.ann.post(`/ops/ledger/transactions/${id}/reversal`, { reason: "wrong account" });
      const reverse = async (id: bigint) => {
        await propose(id);
        const [proposal] = await bank.sql<{ id: bigint }[]>`
          select id from reversal_proposals where transaction_id = ${id}`;
        const done = await bank.ben.post(`/ops/ledger/proposals/${proposal?.id}/approve`, { reason: "looked" });
        expect(done.status).toBe(303);
        const [made] = await bank.sql<{ id: bigint }[]>`select id from ledger_transactions where reverses = ${id}`;
        return made!.id;
      };
      if (isHeld) expect(await problemOf(await propose(line!.held!))).toContain("reverse the placement first");
      const reversal = await reverse(line!.credit);
      expect(await bank.holds("wallet", wrong)).toBe(0n);
      const mails = await bank.sql<{ subject: string; body: string }[]>`
        select subject, body from mails where recipient = ${`wrong-${isHeld}@example.com`} and kind = 'balance-reversed'`;
      expect(mails).toMatchObject([{ subject: "Taken back from your balance: 100.00 USD" }]);
      expect(mails[0]?.body).toContain(`transaction ${line!.credit}`);
      if (isHeld) {
        expect(await bank.holds("suspense")).toBe(suspense + 100_000_000n);
        expect(await (await bank.ann.get(`/ops/ledger/transactions/${line!.held!}`)).text()).toContain(
          "Propose reversal",
        );
        await reverse(line!.held!);
      }
      expect([await bank.holds("suspense"), await bank.holds("cash_bank")]).toEqual([suspense, cash]);
      const again = await bank.enter({ bank_ref: `${ref} again` });
      await bank.match(again, `right-${isHeld}@example.com`, right);
      expect((await bank.ben.post(`${again}/approve`, { match: await bank.matchId(again) })).status).toBe(303);
      expect(await bank.holds("wallet", right)).toBe(100_000_000n);
      // the line counts once: its first credit does not return
      expect(await problemOf(await propose(reversal))).toContain("enter it again at /ops/bank");
      const key = `past the page ${reversal}`;
      const legs = await bank.sql<Leg[]>`
        select jsonb_strip_nulls(jsonb_build_object('kind', a.kind, 'owner', a.owner_id)) as side, -e.amount as micros
        from ledger_entries e
        join ledger_accounts a on a.id = e.account_id
        where e.transaction_id = ${reversal}`;
      const posting = { kind: "reversal", key, legs, reverses: reversal } as const;
      await expect(bank.sql.begin((tx) => post(tx, posting))).rejects.toThrow(/of a bank line, which is final/);
      expect(await bank.holds("wallet", wrong)).toBe(0n);
      expect(await checkLedger(bank.sql)).toMatchObject({ ok: true });
    },
  );

  it("that went to suspense at a wrong rate leaves it by a reversal, and is entered again", async () => {
    const account = await bank.account("rate@example.com");
    const [suspense, cash] = [await bank.holds("suspense"), await bank.holds("cash_bank")];
    const typed = { amount: "1000.00", currency: "EUR" };
    const path = await bank.enter({ ...typed, bank_ref: "wrong-rate" });
    await bank.ann.post(`${path}/hold`, { rate: "0.10823", reason: "unknown reference" });
    const [line] = await bank.sql<{ id: bigint; held: bigint }[]>`
      select id, suspense_transaction_id as held from bank_lines where bank_ref = 'wrong-rate'`;
    const propose = () =>
      bank.ann.post(`/ops/ledger/transactions/${line!.held}/reversal`, { reason: "a typo in the rate" });
    const approve = async () => {
      const [proposal] = await bank.sql<{ id: bigint }[]>`
        select id from reversal_proposals where transaction_id = ${line!.held} and state = 'proposed'`;
      return bank.ben.post(`/ops/ledger/proposals/${proposal!.id}/approve`, { reason: "looked" });
    };

    await bank.ann.post(`${path}/return`, { reason: "sent back" });
    expect(await problemOf(await propose())).toContain("stop its pending return");
    const [asked] = await bank.sql<{ id: string }[]>`select id::text from bank_returns order by id desc limit 1`;
    await bank.ann.post(`${path}/return/stop`, { return: asked!.id, reason: "it was not sent" });
    expect((await propose()).status).toBe(303);
    await bank.match(path, "rate@example.com", account);
    expect(await problemOf(await approve())).toContain("take its match back");
    await bank.ann.post(`${path}/unmatch`, { match: await bank.matchId(path), reason: "the rate is wrong" });
    await expect(bank.sql`update bank_lines set state = 'reversed' where id = ${line!.id}`).rejects.toThrow(
      "was not reversed",
    );
    expect((await approve()).status).toBe(303);

    expect(await bank.stateOf(path)).toBe("reversed");
    expect([await bank.holds("suspense"), await bank.holds("cash_bank")]).toEqual([suspense, cash]);
    expect(await problemOf(await bank.match(path, "rate@example.com", account))).toContain("is reversed");
    expect(await problemOf(await bank.ann.post(`${path}/return`, { reason: "again" }))).toContain("is reversed");
    await expect(bank.sql`update bank_lines set state = 'suspense' where id = ${line!.id}`).rejects.toThrow(
      "is not changed any more",
    );
    expect(await (await bank.ann.get("/ops/bank?state=reversed")).text()).toContain("wrong-rate");

    const again = await bank.enter({ ...typed, bank_ref: "wrong-rate again" });
    await bank.match(again, "rate@example.com", account, "1.0823");
    await bank.ben.post(`${again}/approve`, { match: await bank.matchId(again) });
    expect(await bank.holds("wallet", account)).toBe(1_082_300_000n);
    expect(await checkLedger(bank.sql)).toMatchObject({ ok: true });
  });

  it("that is matched while the reversal of what holds it is approved stays in suspense", async () => {
    const account = await bank.account("both@example.com");
    const path = await bank.enter({ bank_ref: "both" });
    await bank.ann.post(`${path}/hold`, { reason: "unknown reference" });
    const [line] = await bank.sql<{ id: bigint; held: bigint; ann: string }[]>`
      select id, suspense_transaction_id as held, entered_by as ann from bank_lines where bank_ref = 'both'`;
    await bank.ann.post(`/ops/ledger/transactions/${line!.held}/reversal`, { reason: "entered twice" });
    const [proposal] = await bank.sql`select id from reversal_proposals where transaction_id = ${line!.held}`;
    const { sent } = await bank.sql.begin(async (tx) => {
      const by = { id: line!.ann, email: "ann@example.com", hasTwoFactor: true };
      const match = { lineId: line!.id, to: "both@example.com", accountId: account, rateE8: RATE_OF_USD, note: "" };
      expect(await matchLine(tx, by, match)).toMatchObject({ ok: true });
      const sending = bank.ben.post(`/ops/ledger/proposals/${proposal!["id"]}/approve`, { reason: "looked" });
      await lockWaits(bank.sql, 1);
      return { sent: sending };
    });
    expect(await problemOf(await sent)).toContain("take its match back");
    expect(await bank.stateOf(path)).toBe("matched");
  });

  it("of a closed account is not matched; what was matched before is not credited", async () => {
    const { account, topup, path, match } = await makeMatch("gone@example.com");
    await bank.sql`update accounts set closed_at = now(), email = 'closed-1@example.invalid' where id = ${account}`;
    expect(await problemOf(await bank.ben.post(`${path}/approve`, { match }))).toContain("was closed meanwhile");
    await bank.ben.post(`${path}/unmatch`, { match, reason: "the account was closed" });
    expect(await problemOf(await bank.match(path, topup.reference, account))).toContain("put the line into suspense");
    expect((await bank.ann.post(`${path}/hold`, { reason: "account closed" })).status).toBe(303);
    expect(await bank.stateOf(path)).toBe("suspense");
  });

  it("of an account that is closed while its match is approved is not credited", async () => {
    const { account, topup, path, match } = await makeMatch("going@example.com");
    const { sent } = await bank.sql.begin(async (tx) => {
      await lockTopup(tx, topup.id);
      const sending = bank.ben.post(`${path}/approve`, { match });
      await lockWaits(bank.sql, 1);
      await bank.sql.begin((other) => closeRows(other, account));
      return { sent: sending };
    });
    expect(await problemOf(await sent)).toContain("was closed meanwhile");
    expect([await bank.stateOf(path), await bank.holds("wallet", account)]).toEqual(["matched", 0n]);
  });

  it("that is rejected waits for its top-up before it locks the ledger, as an approval does", async () => {
    const { topup, path, match } = await makeMatch("waits@example.com");
    const { sent } = await bank.sql.begin(async (tx) => {
      await lockTopup(tx, topup.id);
      const sending = bank.ben.post(`${path}/reject`, { match, reason: "the sender is another person" });
      await lockWaits(bank.sql, 1);
      await tx`select from ledger_accounts where kind in ('suspense', 'cash_bank') for update nowait`;
      return { sent: sending };
    });
    expect((await sent).status).toBe(303);
    expect(await bank.stateOf(path)).toBe("rejected");
  });

  it("that is rejected never reaches a wallet, raises an alert, and leaves suspense by two people", async () => {
    const account = await bank.account("no@example.com");
    const topup = await bank.announce(account);
    const path = await bank.enter({ remittance: topup.reference, amount: "30.00" });
    await bank.match(path, topup.reference, account);
    const [before, cash] = [await bank.holds("suspense"), await bank.holds("cash_bank")];
    await bank.ben.post(`${path}/reject`, { match: await bank.matchId(path), reason: "the sender is another person" });
    expect(await bank.stateOf(path)).toBe("rejected");
    expect((await bank.holds("suspense")) - before).toBe(30_000_000n);
    const [mail] = await bank.sql`select subject from mails where recipient = 'no@example.com'`;
    expect(mail?.["subject"]).toContain("the sender is another person");
    expect((await findTopup(bank.sql, account, topup.id))?.reason).toBe("the sender is another person");
    expect(await problemOf(await bank.match(path, topup.reference, account))).toContain("is rejected");
    await expect(
      bank.sql`update bank_lines set state = 'new', reason = null where id = ${/\d+$/.exec(path)![0]}`,
    ).rejects.toThrow("never reaches a wallet");

    await bank.ann.post(`${path}/return`, { reason: "sent back as OUT-1" });
    const [asked] = await bank.sql<{ id: string }[]>`select id::text from bank_returns order by id desc limit 1`;
    const own = await bank.ann.post(`${path}/return/approve`, { return: asked!.id });
    expect(await problemOf(own)).toContain("another person");
    await expect(
      bank.sql`update bank_returns set approved_by = asked_by, approved_at = now() where id = ${asked!.id}`,
    ).rejects.toThrow("return_is_approved_by_another");
    expect((await bank.ben.post(`${path}/return/approve`, { return: asked!.id })).status).toBe(303);
    expect(await bank.stateOf(path)).toBe("returned");
    expect(await bank.holds("suspense")).toBe(before);
    expect(await bank.holds("cash_bank")).toBe(cash);
    expect(await bank.holds("wallet", account)).toBe(0n);
  });

  it("that is marked as returned is not matched meanwhile, and stays if that is stopped", async () => {
    const account = await bank.account("stay@example.com");
    const path = await bank.enter({ remittance: "?" });
    expect(await problemOf(await bank.ann.post(`${path}/return`, { reason: "too early" }))).toContain(
      "only what is in suspense",
    );
    await bank.ann.post(`${path}/hold`, { reason: "unknown" });
    await bank.ann.post(`${path}/return`, { reason: "sent back" });
    expect(await problemOf(await bank.match(path, "stay@example.com", account))).toContain("stop that first");
    const [asked] = await bank.sql<{ id: string }[]>`select id::text from bank_returns order by id desc limit 1`;
    await bank.ann.post(`${path}/return/stop`, { return: asked!.id, reason: "it did not leave" });
    expect((await bank.match(path, "stay@example.com", account)).status).toBe(303);
  });
});

describe("the permissions for bank transfers", () => {
  it("approving without a second factor leads to turning it on, and offers no form that would fail again", async () => {
    const account = await bank.account("factor@example.com");
    const topup = await bank.announce(account);
    const path = await bank.enter({ remittance: topup.reference });
    await bank.match(path, topup.reference, account);
    await bank.sql`update auth.users set two_factor_enabled = false where email = 'ben@example.com'`;
    const refused = await bank.ben.post(`${path}/approve`, { match: await bank.matchId(path) });
    const text = await refused.clone().text();
    expect(await problemOf(refused)).toContain("two-factor");
    expect(text).toContain('<a class="button" href="/ops/me?to=%2Fops#two-factor">');
    expect(text).not.toContain("Try again");
    await bank.sql`update auth.users set two_factor_enabled = true where email = 'ben@example.com'`;
  });

  it("viewers and data staff look, and change nothing", async () => {
    for (const role of ["viewer", "data"] as const) {
      const client = await bank.world.as(role);
      expect((await client.get("/ops/bank")).status).toBe(200);
      expect((await client.post("/ops/bank/lines/new", {})).status).toBe(403);
      expect((await client.post("/ops/bank/lines/1/approve", { match: "1" })).status).toBe(403);
    }
  });
});

describe("a statement that is pasted", () => {
  const csv = (rows: string[]) => ["bank_ref;value_date;amount;currency;sender;text", ...rows].join("\n");
  const look = async (statement: string) => {
    const done = await bank.ann.post("/ops/bank/import", { bank: "Main", statement });
    const location = done.headers.get("location");
    if (location === null) throw new Error(`${done.status}: ${await problemOf(done)}`);
    return location;
  };
  const count = async () => (await bank.sql<{ n: number }[]>`select count(*)::integer as n from bank_lines`)[0]!.n;

  it("is previewed, then imported once; known lines are skipped and reported", async () => {
    const before = await count();
    const rows = [
      'c-1;2026-11-19;12,50;EUR;"Doe; Ann";first',
      "c-2;2026-11-19;13.00;USD;Ben;second",
      "c-2;2026-11-19;14.00;USD;Ben;twice in one text",
      "c-3;2026-11-19;-5.00;USD;Ben;out",
    ];
    const path = await look(csv(rows));
    const page = await (await bank.ann.get(path)).text();
    expect(page).toContain("Doe; Ann");
    expect(page).toContain("Import 2 transfers");
    expect(page).toContain("the same bank reference as row 3: c-2");
    expect(page).toContain("-5.00 is below zero");
    expect(await count()).toBe(before);
    expect((await bank.ann.post(`${path}/import`)).status).toBe(303);
    expect(await count()).toBe(before + 2);
    expect((await bank.ann.post(`${path}/import`)).headers.get("location")).toMatch(/^\/ops\/bank\?import=\d+$/);
    expect(await count()).toBe(before + 2);

    const again = await look(csv([rows[0]!, "c-2;2026-11-19;99.00;USD;Ben;second", "c-4;2026-11-20;1.00;USD;Cy;"]));
    const text = await (await bank.ann.get(again)).text();
    expect(text).toContain("Import 1 transfer<");
    expect(text).toContain("with another amount");
    await bank.ann.post(`${again}/import`);
    expect(await count()).toBe(before + 3);
  });

  it("shows lines of the same day, amount and sender in its preview, as camt files without references give twice", async () => {
    const camtOf = (message: string, part: string, id: string) =>
      `<Document><${message}><${part}><Id>${id}</Id><Ntry><NtryRef>1</NtryRef><Amt Ccy="EUR">31.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><ValDt><Dt>2026-11-17</Dt></ValDt><NtryDtls><TxDtls><RltdPties><Dbtr><Nm>Twin ${id === "S1" ? "TOM" : "Tom"}</Nm></Dbtr></RltdPties></TxDtls></NtryDtls></Ntry></${part}></${message}></Document>`;
    const report = await look(camtOf("BkToCstmrAcctRpt", "Rpt", "R1"));
    expect(await (await bank.ann.get(report)).text()).not.toContain("possible duplicate");
    await bank.ann.post(`${report}/import`);
    const [line] = await bank.sql<{ id: string }[]>`select id::text from bank_lines where bank_ref = 'R1 1'`;
    const page = await (await bank.ann.get(await look(camtOf("BkToCstmrStmt", "Stmt", "S1")))).text();
    expect(page).toContain("1 possible duplicate among them");
    expect(page).toContain(`<a href="/ops/bank/lines/${line!.id}">main R1 1</a>`);
    expect(page).toContain("Import 1 transfer<");
    const again = await (await bank.ann.get(report)).text();
    expect(again).not.toContain("possible duplicate"); // it is that line
  });

  it("imports an entry that it has twice once, and lists the second one as a duplicate", async () => {
    const before = await count();
    const entry = `<Ntry><NtryRef>7</NtryRef><Amt Ccy="EUR">44.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><ValDt><Dt>2026-11-16</Dt></ValDt><NtryDtls><TxDtls><RltdPties><Dbtr><Nm>Dora</Nm></Dbtr></RltdPties></TxDtls></NtryDtls></Ntry>`;
    const path = await look(
      `<Document><BkToCstmrStmt><Stmt><Id>S-9</Id>${entry}${entry}</Stmt></BkToCstmrStmt></Document>`,
    );
    const page = await (await bank.ann.get(path)).text();
    expect(page).toContain("Import 1 transfer<");
    expect(page).toContain("1 duplicate, left out");
    expect(page).toMatch(/Row 2<[^]*?>duplicate<[^]*?the same line as row 1/);
    const done = await bank.ann.post(`${path}/import`);
    expect(await count()).toBe(before + 1);
    const text = await (await bank.ann.get(done.headers.get("location")!)).text();
    expect(text).toContain("Imported 1 transfer. Left out: 1 duplicate.");
    const [logged] = await bank.sql`
      select after ->> 'added' as added, after ->> 'duplicates' as duplicates
      from audit_log where action = 'bank.import.run' order by seq desc limit 1`;
    expect(logged).toEqual({ added: "1", duplicates: "1" });
  });

  it("is listed in its order, the last line first", async () => {
    const path = await look(csv(["d-2;2026-11-19;1.00;USD;Cy;", "d-1;2026-11-19;2.00;USD;Cy;"]));
    const done = await bank.ann.post(`${path}/import`);
    const text = await (await bank.ann.get(done.headers.get("location")!)).text();
    expect(text.match(/\bd-\d\b/g)).toEqual(["d-1", "d-2"]);
  });

  it("and another one with the same lines in another order are imported at the same time", async () => {
    const sql = connect(bank.world.databaseUrl, { name: "test imports", max: 4 });
    onTestFinished(() => sql.end());
    const [ann] = await sql<{ id: string }[]>`select id from auth.users where email = 'ann@example.com'`;
    const rest = {
      bank: "main",
      valueDate: "2026-11-20",
      currency: "USD",
      amountMinor: 1n,
      sender: "",
      remittance: "",
    };
    const save = (tx: Transaction, refs: readonly string[]) =>
      saveLines(
        tx,
        refs.map((bankRef) => ({ ...rest, bankRef })),
        { by: ann!.id, importId: null },
      );
    const { both } = await sql.begin(async (tx) => {
      await save(tx, ["order-2"]); // stops the first one in its middle
      const first = sql.begin((other) => save(other, ["order-1", "order-2", "order-3"]));
      await lockWaits(sql, 1);
      const second = sql.begin((other) => save(other, ["order-3", "order-1"]));
      await lockWaits(sql, 2);
      return { both: Promise.all([first, second]) };
    });
    expect((await both).flat().map(({ line, is }) => [line.bankRef, is])).toEqual([
      ["order-1", "new"],
      ["order-2", "same"],
      ["order-3", "new"],
      ["order-3", "same"],
      ["order-1", "same"],
    ]);
  });

  it("belongs to the person who pasted it, whoever imports it: they do not approve its lines", async () => {
    const account = await bank.account("pasted@example.com");
    const path = await look(csv(["forged;2026-11-20;70.00;USD;Pat;"]));
    expect((await bank.ben.post(`${path}/import`)).status).toBe(303);
    const [line] = await bank.sql<{ id: string }[]>`select id::text from bank_lines where bank_ref = 'forged'`;
    const at = `/ops/bank/lines/${line!.id}`;
    await bank.ben.post(`${at}/match`, { to: "pasted@example.com", account: String(account) });
    const refused = await bank.ann.post(`${at}/approve`, { match: await bank.matchId(at) });
    expect(await problemOf(refused)).toContain("you entered this line");
    expect(await bank.holds("wallet", account)).toBe(0n);
  });

  it("may be camt: credits that are booked, each transaction of an entry, and the sender's reference", async () => {
    const before = await count();
    const entry = (ref: string, way: string, details: string) =>
      `<Ntry><Amt Ccy="EUR">20.00</Amt><CdtDbtInd>${way}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><ValDt><Dt>2026-11-18</Dt></ValDt><AcctSvcrRef>${ref}</AcctSvcrRef><NtryDtls>${details}</NtryDtls></Ntry>`;
    const part = (id: string, amount: string) =>
      `<TxDtls><Refs><EndToEndId>${id}</EndToEndId></Refs><Amt Ccy="EUR">${amount}</Amt><RltdPties><Dbtr><Nm>Ann &amp; Co</Nm></Dbtr></RltdPties><RmtInf><Strd><CdtrRefInf><Ref>RF18539007547034</Ref></CdtrRefInf></Strd></RmtInf></TxDtls>`;
    const camt = `<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><Stmt>${entry("m-1", "CRDT", part("e1", "5.00") + part("e2", "15.00"))}${entry("m-2", "DBIT", "")}</Stmt></BkToCstmrStmt></Document>`;
    const path = await look(camt);
    const page = await (await bank.ann.get(path)).text();
    expect(page).toContain("Ann &amp; Co");
    expect(page).toContain("RF18539007547034");
    expect(page).toContain("1 entry that is not a booked credit");
    await bank.ann.post(`${path}/import`);
    const lines = await bank.sql`select bank_ref, amount_minor from bank_lines where bank_ref like 'm-%' order by id`;
    expect(lines).toEqual([
      { bank_ref: "m-1 e1", amount_minor: 500n },
      { bank_ref: "m-1 e2", amount_minor: 1_500n },
    ]);
    expect(await count()).toBe(before + 2);
    await expect(look("<!DOCTYPE x><Document><Ntry></Ntry></Document>")).rejects.toThrow("document type");
    await expect(look("a;b\n1;2")).rejects.toThrow("no column for");
  });
});

describe("the mails about bank transfers", () => {
  it("an alert with the amount opens for each line that waits for a second person for more than a day", async () => {
    const { log } = testContext(bank.sql).context;
    const account = await bank.account("slow@example.com");
    const path = await bank.enter({ remittance: "?", amount: "1234.50" });
    const back = await bank.enter({ remittance: "??" });
    await bank.ann.post(`${back}/hold`, { reason: "unknown" });
    await bank.ann.post(`${back}/return`, { reason: "sent back" });
    await bank.match(path, "slow@example.com", account);
    await watchOverdueApprovals(bank.sql, log);
    expect(await listOpenSubjects(bank.sql, "bank_approval")).toEqual([]);
    await bank.sql`alter table bank_matches disable trigger bank_match_is_never_changed`;
    const match = await bank.matchId(path);
    await bank.sql`update bank_matches set matched_at = matched_at - interval '25 hours' where id = ${match}`;
    await bank.sql`alter table bank_matches enable trigger bank_match_is_never_changed`;
    await watchOverdueApprovals(bank.sql, log);
    const [line, returned] = [path, back].map((one) => /\d+$/.exec(one)?.[0]);
    expect(await listOpenSubjects(bank.sql, "bank_approval")).toEqual([`1,234.50 USD of bank line ${line}`]);
    const [{ text } = { text: "" }] = await bank.sql<{ text: string }[]>`
      select text from alerts where kind = 'bank_approval' and closed_at is null`;
    expect(text).toMatch(
      /^the credit of 1,234\.50 USD of bank line \d+ \(main ref-\d+\) needs a second person since \d{4}-\d\d-\d\d \d\d:\d\d UTC: decide on it at \/ops\/bank\/lines\/\d+$/,
    );
    await bank.sql`alter table bank_returns disable trigger bank_return_is_never_changed`;
    await bank.sql`update bank_returns set asked_at = asked_at - interval '25 hours' where line_id = ${returned!}`;
    await bank.sql`alter table bank_returns enable trigger bank_return_is_never_changed`;
    await watchOverdueApprovals(bank.sql, log);
    expect((await listOpenSubjects(bank.sql, "bank_approval")).toSorted()).toEqual([
      `1,234.50 USD of bank line ${line}`,
      `100.00 USD of bank line ${returned}, return`,
    ]);
    const [request] = await bank.sql<{ id: string }[]>`select id::text from bank_returns where line_id = ${returned!}`;
    await bank.ann.post(`${back}/return/stop`, { return: request!.id, reason: "it did not leave" });
    await bank.ben.post(`${path}/approve`, { match });
    await watchOverdueApprovals(bank.sql, log);
    expect(await listOpenSubjects(bank.sql, "bank_approval")).toEqual([]);
  });
});

describe("the alerts about money in suspense", () => {
  const watch = () => watchSuspense(bank.sql, testContext(bank.sql).context.log);
  const subjects = () => listOpenSubjects(bank.sql, "suspense");
  const nameOf = (path: string) => `bank line ${/\d+$/.exec(path)?.[0]}`;

  it("open and close with the money of each line", async () => {
    const account = await bank.account("suspended-money@example.com");
    const [first, second] = [await bank.enter({ remittance: "?" }), await bank.enter({ remittance: "??" })];
    await bank.ann.post(`${first}/hold`, { reason: "unknown" });
    await watch();
    expect(await subjects()).toContain(nameOf(first));
    await bank.ann.post(`${second}/hold`, { reason: "unknown" });
    await watch();
    expect(await subjects()).toEqual(expect.arrayContaining([nameOf(first), nameOf(second)]));
    await bank.match(first, "suspended-money@example.com", account);
    await watch();
    expect(await subjects()).not.toContain(nameOf(first));
    await bank.ben.post(`${first}/approve`, { match: await bank.matchId(first) });
    await watch();
    expect(await subjects()).not.toContain(nameOf(first));
    expect(await subjects()).toContain(nameOf(second));
    const [{ text } = { text: "" }] = await bank.sql<{ text: string }[]>`
      select text from alerts where kind = 'suspense' and subject = ${nameOf(second)}`;
    expect(text).toMatch(/^100\.00 USD of bank line \d+ \(main ref-\d+\) wait in suspense/);

    const [line] = await bank.sql<{ credit: bigint }[]>`
      select credit_transaction_id as credit from bank_lines where id = ${/\d+$/.exec(first)![0]}`;
    await bank.ann.post(`/ops/ledger/transactions/${line!.credit}/reversal`, { reason: "wrong account" });
    const [proposal] = await bank.sql`select id from reversal_proposals where transaction_id = ${line!.credit}`;
    await bank.ben.post(`/ops/ledger/proposals/${proposal!["id"]}/approve`, { reason: "looked" });
    await watch();
    expect(await subjects()).toContain(`${nameOf(first)}, reversed`);
    expect(await subjects()).not.toContainEqual(expect.stringContaining("without a bank line"));
  });

  it("are found with the rights of a worker", async () => {
    await bank.ann.post(`${await bank.enter({ remittance: "?" })}/hold`, { reason: "unknown" });
    const found = await bank.sql.begin(async (tx) => {
      await tx.unsafe(`set local role ${ROLES.worker}`);
      return [await findSuspense(tx), await findOverdue(tx)] as const;
    });
    expect(found[0].length).toBeGreaterThan(0);
    expect(found[1]).toBeInstanceOf(Array);
  });

  it("count further lines after the hundred oldest, and money of no line", async () => {
    const undone = new Error("undone");
    const run = bank.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`
        insert into bank_lines (
          bank, bank_ref, value_date, currency, amount_minor, sender, remittance, entered_by, state, reason, held_by,
          rate_e8, suspense_micros, suspense_transaction_id
        )
        select
          'many', 'many-' || n, now(), 'USD', 100, '', '', entered_by, 'suspense', '?', entered_by, 100000000, 1000000, -n
        from (select entered_by from bank_lines limit 1) entered, generate_series(1, 120) n`;
      const found = await findSuspense(tx);
      expect(found.map(({ subject }) => subject)).toEqual(
        expect.arrayContaining(["more lines", "-120.00 USD without a bank line"]),
      );
      expect(found).toHaveLength(102);
      throw undone;
    });
    await expect(run).rejects.toBe(undone);
  });
});

describe("a process that is killed during a bank transfer", () => {
  const names = [
    "match: insert on bank_matches",
    "match: update on bank_lines",
    "match: update on audit_head",
    "approve: insert on ledger_transactions",
    "approve: insert on ledger_entries",
    "approve: update on topups",
    "approve: insert on mails",
    "approve: update on bank_lines",
    "approve: update on audit_head",
    "approve: commit of mails",
  ];

  it("leaves nothing half done at any statement, and doing it again does it once", async () => {
    const { sql, world } = bank;
    const account = await bank.account("killed@example.com");
    const topup = await bank.announce(account);
    const at = await bank.enter({ remittance: topup.reference });
    const line = /\d+$/.exec(at)![0];
    const [lineId, rateE8] = [BigInt(line), RATE_OF_USD];
    const traces = async () => {
      const [row] = await sql`
        select
          (select state from bank_lines where id = ${line}) as line,
          (select state from topups where id = ${topup.id}) as topup,
          (select count(*)::integer from bank_matches where line_id = ${line}) as matches,
          (select count(*)::integer from bank_matches where line_id = ${line} and approved_by is not null) as approved,
          (select count(*)::integer from ledger_transactions where meta ->> 'line' = ${line}) as posted,
          (select count(*)::integer from mails where recipient = 'killed@example.com') as mails,
          (select count(*)::integer from audit_log where target like ${`bank line ${line} %`}) as audits`;
      return { ...row, wallet: await bank.holds("wallet", account) };
    };
    const person = async (email: string) => {
      const [user] = await sql<{ id: string }[]>`select id from auth.users where email = ${email}`;
      return { id: user!.id, email, hasTwoFactor: true };
    };
    const [ann, ben] = [await person("ann@example.com"), await person("ben@example.com")];
    const script = join(import.meta.dirname, "bank-process.ts");
    const stops = Object.fromEntries(names.map((name) => [name, stopAt(name.split(": ")[1]!)]));
    const victims = await makeVictims(world, script, stops);

    const fresh = {
      line: "new",
      topup: "expected",
      matches: 0,
      approved: 0,
      posted: 0,
      mails: 0,
      audits: 1,
      wallet: 0n,
    };
    const matched = { ...fresh, line: "matched", topup: "seen", matches: 1, audits: 2 };
    const credited = {
      ...matched,
      line: "credited",
      topup: "credited",
      approved: 1,
      posted: 1,
      mails: 1,
      audits: 3,
      wallet: 100_000_000n,
    };
    for (const [name, victim] of victims) {
      if (!name.startsWith("match")) continue;
      await victim.killIn({ by: ann, match: { lineId, to: topup.reference, accountId: account, rateE8, note: "" } });
      expect([name, await traces()]).toEqual([name, fresh]);
    }
    expect((await bank.match(at, topup.reference, account)).status).toBe(303);
    const match = await bank.matchId(at);
    for (const [name, victim] of victims) {
      if (!name.startsWith("approve")) continue;
      await victim.killIn({ by: ben, approve: { lineId, matchId: BigInt(match) } });
      // what is being committed is the database's to end; whatever comes before that is undone
      const isEnded = name.includes("commit") && (await bank.stateOf(at)) === "credited";
      expect([name, await traces()]).toEqual([name, isEnded ? credited : matched]);
    }
    const isEnded = (await bank.stateOf(at)) === "credited";
    expect((await bank.ben.post(`${at}/approve`, { match })).status).toBe(isEnded ? 422 : 303);
    expect((await bank.ben.post(`${at}/approve`, { match })).status).toBe(422);
    expect(await traces()).toEqual(credited);
  });

  it("and whatever else was done here, the ledger is as its entries say", async () => {
    expect(await checkLedger(bank.sql)).toMatchObject({ ok: true, differences: [] });
  });
});
