import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OperatorChange, saveOperatorChange } from "../../src/accounts/operators/operator-change-store.ts";
import { changeRole } from "../../src/accounts/operators/manage.ts";
import { type BankWorld, openBankWorld, problemOf } from "../topups/bank-world.ts";
import type { CookieClient } from "../support/cookie-client.ts";

let bank: BankWorld;
beforeAll(async () => {
  bank = await openBankWorld();
});
afterAll(() => bank?.world.close());

interface Person extends CookieClient {
  id: string;
}

let people = 0;

/** A new operator who is signed in. */
async function person({ hasTwoFactor = true } = {}): Promise<Person> {
  people += 1;
  const email = `person-${people}@example.com`;
  const id = await bank.world.makeOperator(email, people % 2 === 0 ? "operator" : "admin");
  const { client } = await bank.world.signIn(email);
  if (hasTwoFactor) await bank.sql`update auth.users set two_factor_enabled = true where id = ${id}`;
  return Object.assign(client, { id });
}

/** Records a change of a person's sign-in, that many hours ago. */
async function changed(of: Person, what: OperatorChange, by: string, hours: number): Promise<void> {
  const { sql } = bank;
  await sql.begin((tx) => saveOperatorChange(tx, { userId: of.id, what, by }));
  await sql`alter table operator_changes disable trigger operator_change_is_never_changed`;
  await sql`
    update operator_changes
    set made_at = made_at - make_interval(hours => ${hours})
    where user_id = ${of.id} and made_at > clock_timestamp() - interval '1 minute'`;
  await sql`alter table operator_changes enable trigger operator_change_is_never_changed`;
}

/** Moves the changes of a person's sign-in back by 90 minutes. */
async function passTime(of: Person): Promise<void> {
  await bank.sql`alter table operator_changes disable trigger operator_change_is_never_changed`;
  await bank.sql`update operator_changes set made_at = made_at - interval '90 minutes' where user_id = ${of.id}`;
  await bank.sql`alter table operator_changes enable trigger operator_change_is_never_changed`;
}

/** Work that needs a second person: its author, and how another approves it. */
interface Work {
  approve(as: CookieClient): Promise<Response>;
}

let works = 0;

/** Enters a line of a bank statement for a new account. */
async function line(author: CookieClient, currency = "USD") {
  works += 1;
  const email = `holder-${works}@example.com`;
  const account = await bank.account(email);
  const topup = await bank.announce(account);
  const entered = await author.post("/ops/bank/lines/new", {
    bank: "Main",
    bank_ref: `work-${works}`,
    value_date: "2026-11-20",
    amount: "100.00",
    currency,
    sender: "Cleo Caller",
    remittance: topup.reference,
  });
  const path = entered.headers.get("location") ?? "";
  const match = (as: CookieClient) =>
    as.post(`${path}/match`, { to: topup.reference, account: String(account), rate: "" });
  return { path, match, account };
}

const WORK: Record<string, (author: CookieClient) => Promise<Work>> = {
  async credit(author) {
    const { path, match } = await line(author);
    await match(author);
    const id = await bank.matchId(path);
    return { approve: (as) => as.post(`${path}/approve`, { match: id }) };
  },
  async return(author) {
    const { path } = await line(author);
    await author.post(`${path}/hold`, { reason: "unknown" });
    await author.post(`${path}/return`, { reason: "sent back" });
    const [asked] = await bank.sql<{ id: string }[]>`select max(id)::text as id from bank_returns`;
    return { approve: (as) => as.post(`${path}/return/approve`, { return: asked!.id }) };
  },
  async reversal(author) {
    const { path, match } = await line(bank.ann);
    await match(bank.ann);
    await bank.ben.post(`${path}/approve`, { match: await bank.matchId(path) });
    const [credited] = await bank.sql<{ id: string }[]>`select max(id)::text as id from ledger_transactions`;
    await author.post(`/ops/ledger/transactions/${credited!.id}/reversal`, { reason: "credited twice" });
    const [proposal] = await bank.sql<{ id: string }[]>`select max(id)::text as id from reversal_proposals`;
    const reason = "looked at the bank's line";
    return { approve: (as) => as.post(`/ops/ledger/proposals/${proposal!.id}/approve`, { reason }) };
  },
};

const moved = async () => (await bank.sql<[{ n: bigint }]>`select count(*) as n from ledger_transactions`)[0].n;

describe("[FOUR-EYES] a credit of a line from a statement", () => {
  it("is not approved by somebody who reset the password of its sender less than a day before it was sent", async () => {
    const [sender, chief, other] = [await person(), await person(), await person()];
    await changed(sender, "password", chief.email, 26);
    const account = await bank.account("from-statement@example.com");
    const topup = await bank.announce(account);
    const statement = `bank_ref;value_date;amount;currency;sender;text\nsent-1;2026-11-20;100.00;USD;Cleo;${topup.reference}`;
    const sent = await sender.post("/ops/bank/import", { bank: "Main", statement });
    await bank.sql`update bank_imports set entered_at = entered_at - interval '25 hours'`;
    expect((await chief.post(`${sent.headers.get("location")}/import`)).status).toBe(303);
    const [entered] = await bank.sql<{ id: string }[]>`select id::text from bank_lines where bank_ref = 'sent-1'`;
    const path = `/ops/bank/lines/${entered!.id}`;
    await other.post(`${path}/match`, { to: topup.reference, account: String(account), rate: "" });
    const refused = await chief.post(`${path}/approve`, { match: await bank.matchId(path) });
    expect(await problemOf(refused)).toContain("within 24 hours of this work");
    expect(await bank.holds("wallet", account)).toBe(0n);
    const third = await person();
    expect((await third.post(`${path}/approve`, { match: await bank.matchId(path) })).status).toBe(303);
  });
});

describe("[FOUR-EYES] another role", () => {
  it.each([
    ["viewer", "operator", 1],
    ["data", "operator", 1],
    ["viewer", "admin", 1],
    ["operator", "admin", 0],
    ["admin", "operator", 0],
    ["operator", "viewer", 0],
  ] as const)("from %s to %s is a change after which approvals wait: %i", async (was, role, waits) => {
    const { sql, world } = bank;
    const email = `${was}-to-${role}@example.com`;
    const id = await world.makeOperator(email, was);
    expect(await sql.begin((tx) => changeRole(tx, { id }, { role, was, by: "chief@example.com" }))).toMatchObject({
      ok: true,
    });
    expect(await sql`select what, made_by from operator_changes where user_id = ${id}`).toEqual(
      Array.from({ length: waits }, () => ({ what: "role", made_by: "chief@example.com" })),
    );
    const mails = await sql<{ body: string }[]>`
      select body from mails where kind = 'operator-changed' and body like ${`%${email} is ${role} now%`}`;
    expect(mails.length).toBeGreaterThan(0);
    for (const { body } of mails) {
      expect(body.includes("For 24 hours they cannot approve anything.")).toBe(waits === 1);
    }
  });

  it("lets nobody approve within minutes", async () => {
    const { sql, world } = bank;
    const email = "promoted@example.com";
    const id = await world.makeOperator(email, "viewer");
    const { client } = await world.signIn(email);
    await sql`update auth.users set two_factor_enabled = true where id = ${id}`;
    const { approve } = await WORK["credit"]!(bank.ann);
    const chief = await world.as("admin");
    const given = await chief.post(`/ops/people/${id}/role`, { role: "operator", was: "viewer", reason: "cover" });
    expect(given.status).toBe(303);
    expect(await problemOf(await approve(client))).toContain("your role was changed by");
  });
});

describe("[FOUR-EYES] a line in suspense", () => {
  it("is not credited by who was created by the person who set its rate", async () => {
    const [holder, matcher, other] = [await person(), await person(), await person()];
    await changed(other, "created", holder.email, 24 * 365);
    const { path, match } = await line(matcher, "EUR");
    await holder.post(`${path}/hold`, { rate: "1.1", reason: "unknown" });
    await match(matcher);
    const refused = await other.post(`${path}/approve`, { match: await bank.matchId(path) });
    expect(await problemOf(refused)).toContain("whose work this is: another person has to approve it");
    expect((await bank.ben.post(`${path}/approve`, { match: await bank.matchId(path) })).status).toBe(303);
  });
});

describe.each(Object.entries(WORK))("[FOUR-EYES] a %s", (_, work) => {
  /** Refused with these words, without a movement of money. */
  async function expectRefusal(of: Work, as: CookieClient, words: RegExp) {
    const before = await moved();
    const response = await of.approve(as);
    expect(response.status).toBe(422);
    expect(await problemOf(response)).toMatch(words);
    expect(await moved()).toBe(before);
  }

  it("is not approved by its author, and then by another person once", async () => {
    const [author, other] = [await person(), await person()];
    const done = await work(author);
    await expectRefusal(done, author, /another person|someone else/);
    const before = await moved();
    expect((await done.approve(other)).status).toBe(303);
    expect(await moved()).toBe(before + 1n);
    expect((await done.approve(await person())).status).toBe(422);
    expect(await moved()).toBe(before + 1n);
  });

  it("is not approved without two-factor authentication", async () => {
    const [author, other] = [await person(), await person({ hasTwoFactor: false })];
    await expectRefusal(await work(author), other, /requires two-factor authentication/);
  });

  it.each<[string, OperatorChange]>([
    ["was created", "created"],
    ["has a password that was reset", "password"],
    ["has no second factor since", "second-factor"],
    ["was enabled again", "enabled"],
    ["may approve since", "role"],
  ])("is not approved by who %s 23 hours ago, and is an hour and a half later", async (__, what) => {
    const [author, other] = [await person(), await person()];
    const done = await work(author);
    await changed(other, what, "chief@example.com", 23);
    await expectRefusal(done, other, /by chief@example\.com; you can approve from/);
    const [{ n }] = await bank.sql<[{ n: bigint }]>`
      select count(*) as n from audit_log where actor = ${other.email} and action like '%.refused'`;
    expect(n).toBe(1n);
    await passTime(other);
    expect((await done.approve(other)).status).toBe(303);
  });

  it.each<OperatorChange>(["created", "password", "second-factor"])(
    "is never approved by who was created or reset by its author (%s), enabled since or not",
    async (what) => {
      const [author, other] = [await person(), await person()];
      await changed(other, what, author.email, 24 * 365);
      const done = await work(author);
      await expectRefusal(done, other, /whose work this is: another person has to approve it/);
      await changed(other, "enabled", author.email, 1);
      await expectRefusal(done, other, /whose work this is: another person has to approve it/);
    },
  );

  it.each<[string, OperatorChange]>([
    ["your sign-in was enabled", "enabled"],
    ["your role was changed", "role"],
  ])("is not approved for 24 hours by who got this from its author, and is then: %s", async (words, what) => {
    const [author, other] = [await person(), await person()];
    await changed(other, what, author.email, 23);
    const done = await work(author);
    await expectRefusal(done, other, new RegExp(`${words} by ${author.email}; you can approve from`));
    await passTime(other);
    expect((await done.approve(other)).status).toBe(303);
  });

  it.each<[string, OperatorChange]>([
    ["created", "created"],
    ["reset the password of", "password"],
    ["turned off the second factor of", "second-factor"],
    ["enabled", "enabled"],
    ["changed the role of", "role"],
  ])("is not approved by who %s its author within a day before it or since", async (__, what) => {
    const [author, chief] = [await person(), await person()];
    await changed(author, what, chief.email, 23);
    const done = await work(author);
    await expectRefusal(done, chief, new RegExp(`${author.email}.* within 24 hours of this work: another person`));
    const [late, later] = [await person(), await person()];
    const before = await work(late);
    await changed(late, what, later.email, 0);
    await expectRefusal(before, later, /within 24 hours of this work/);
    const [old, founder] = [await person(), await person()];
    await changed(old, what, founder.email, 25);
    expect((await (await work(old)).approve(founder)).status).toBe(303);
  });
});
