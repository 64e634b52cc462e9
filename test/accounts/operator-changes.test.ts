import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  changeDisabled,
  changeRole,
  createOperator,
  type OperatorDecision,
  resetTwoFactor,
} from "../../src/accounts/operators/manage.ts";
import type { Transaction } from "../../src/db/client.ts";
import { openTestDatabase } from "../support/database.ts";

const ADMIN = "ann@example.com";
const BOB = { email: "bob@example.com" };
const REFUSED = {
  ok: false,
  problem: "you made the same change of bob@example.com within two minutes; wait two minutes",
};

const { sql } = await openTestDatabase();
await sql.begin(async (tx) => {
  await createOperator(tx, { email: ADMIN, role: "admin", passwordHash: "none", by: "root" });
  await createOperator(tx, { ...BOB, role: "viewer", passwordHash: "none", by: "root" });
});

let now = Date.UTC(2026, 10, 29, 12);
beforeEach(() => {
  now += 3_600_000;
  vi.useFakeTimers({ toFake: ["Date"], now });
});
afterEach(() => vi.useRealTimers());

const setDisabled = (isDisabled: boolean, by: string) => (tx: Transaction) =>
  changeDisabled(tx, BOB, { isDisabled, by });
const setRole = (role: "viewer" | "operator", by: string) => (tx: Transaction) =>
  changeRole(tx, BOB, { role, was: null, by });
const run = (change: (tx: Transaction) => Promise<OperatorDecision>) => sql.begin(change);

/** The bodies of the newest mails to the admin, oldest first. */
async function newestMails(count: number): Promise<string[]> {
  const mails = await sql<{ body: string }[]>`
    select body
    from mails
    where recipient = ${ADMIN}
    order by id desc
    limit ${count}`;
  return mails.map(({ body }) => body.replaceAll(/\s+/g, " ")).toReversed();
}

it("disables and mails it each time, and refuses to enable again within two minutes, so that no mailbox is flooded", async () => {
  expect(await run(setDisabled(true, ADMIN))).toMatchObject({ ok: true });
  expect(await run(setDisabled(false, ADMIN))).toMatchObject({ ok: true });
  expect(await run(setDisabled(true, ADMIN))).toMatchObject({ ok: true });
  expect(await run(setDisabled(false, ADMIN))).toEqual(REFUSED);
  const [state] = await sql`
    select o.disabled_at is not null as disabled
    from operators o
    join auth.users u on u.id = o.user_id
    where u.email = ${BOB.email}`;
  expect(state).toEqual({ disabled: true });
  expect(await newestMails(3)).toEqual([
    expect.stringContaining(`was disabled by ${ADMIN}`),
    expect.stringContaining(`was enabled by ${ADMIN}`),
    expect.stringContaining(`was disabled by ${ADMIN}`),
  ]);
  const theirs = await sql`select from mails where recipient = ${BOB.email} and kind = 'sign-in-disabled'`;
  expect(theirs).toHaveLength(2);
  vi.setSystemTime(now + 120_000);
  expect(await run(setDisabled(false, ADMIN))).toMatchObject({ ok: true });
});

it("lets another person enable them meanwhile, and mails it", async () => {
  for (const isDisabled of [true, false, true]) await run(setDisabled(isDisabled, ADMIN));
  expect(await run(setDisabled(false, "chief@example.com"))).toMatchObject({ ok: true });
  expect(await newestMails(2)).toEqual([
    expect.stringContaining(`was disabled by ${ADMIN}`),
    expect.stringContaining("was enabled by chief@example.com"),
  ]);
});

it("states that there is no second factor, even if its reset was just mailed", async () => {
  const reset = (tx: Transaction) => resetTwoFactor(tx, BOB, ADMIN);
  await sql`update auth.users set two_factor_enabled = true where email = ${BOB.email}`;
  expect(await run(reset)).toMatchObject({ ok: true });
  expect(await run(reset)).toEqual({ ok: false, problem: "bob@example.com has no second factor" });
  await sql`update auth.users set two_factor_enabled = true where email = ${BOB.email}`;
  expect(await run(reset)).toEqual(REFUSED);
});

it("refuses to give the same role again within two minutes", async () => {
  for (const role of ["operator", "viewer"] as const)
    expect(await run(setRole(role, ADMIN))).toMatchObject({ ok: true });
  expect(await run(setRole("operator", ADMIN))).toEqual(REFUSED);
  expect(await newestMails(1)).toEqual([expect.stringContaining("is viewer now, and was operator")]);
});
