import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import sendMail from "../../jobs/send-mail.ts";
import { changeRole, createOperator, resetPassword, resetTwoFactor } from "../../src/accounts/operators/manage.ts";
import { LOCAL_OPERATOR } from "../../src/accounts/operators/local-operator.ts";
import { insertOperator } from "../../src/accounts/operators/operator-store.ts";
import * as browserName from "../../src/accounts/identity/browser-name.ts";
import type { Sql } from "../../src/db/client.ts";
import { type ConsoleWorld, openConsoleWorld, PASSWORD } from "../console/world.ts";
import { openOpsWorld, type OpsWorld } from "../ops/world.ts";
import { testContext } from "../support/context.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { startMailServer, type TestMailServer } from "../support/mail-server.ts";

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

let holders: ConsoleWorld;
let staff: OpsWorld;
let server: TestMailServer;
beforeAll(async () => {
  [holders, staff, server] = await Promise.all([openConsoleWorld(), openOpsWorld(), startMailServer()]);
});
beforeEach(() => {
  server.received.length = 0;
});
afterAll(async () => {
  await Promise.all([holders.close(), staff.close(), server.close()]);
});

/** Sends what waits in the outbox; returns what the mail server received: recipient and text. */
async function delivered(sql: Sql): Promise<{ to: string; subject: string; text: string }[]> {
  const { context } = testContext(sql, { env: { SMTP_URL: server.url, PUBLIC_URL: "https://rounds.example" } });
  await sendMail.run({}, context);
  return server.received.map(({ to, headers, text }) => ({
    to: to.join(),
    subject: headers.get("subject") ?? "",
    text: text.replaceAll(/\s+/g, " "),
  }));
}

/** As if the window in which one mail is sent were over. */
const passWindow = (sql: Sql) => sql`update mails set dedup_key = 'past ' || id where dedup_key is not null`;

/** The windows of the clock from a time until now, of two minutes: one mail is sent in each, and a test may see two. */
const windowsSince = (from: number) => Math.floor(Date.now() / 120_000) - Math.floor(from / 120_000) + 1;

const SURFACES = [
  {
    surface: "console",
    world: () => holders,
    make: (email: string) => holders.makeHolder(email),
    advice: "/console/forgot",
  },
  {
    surface: "ops",
    world: () => staff,
    make: (email: string) => staff.makeOperator(email, "viewer"),
    advice: "/ops/me",
  },
] as const;

describe.each(SURFACES)("a sign-in at $surface from a new browser", ({ surface, world, make, advice }) => {
  const signIn = (headers: Record<string, string>, email: string) => {
    const client = world().stranger();
    return client.post(`/${surface}/sign-in`, { email, password: PASSWORD }, headers);
  };

  it("is mailed with time, browser, shortened address and what to do, and without the header's text", async () => {
    await make("new@example.com");
    const sent = { "user-agent": `${FIREFOX} call +1 555 0100`, "x-forwarded-for": "203.0.113.77" };
    expect((await signIn(sent, "New@example.com")).status).toBe(303);
    const [mail, ...others] = await delivered(world().sql);
    expect(others).toEqual([]);
    expect([mail?.to, mail?.subject]).toEqual(["new@example.com", "New sign-in at Roundhouse"]);
    expect(mail?.text).toMatch(
      /When: \d{4}-\d\d-\d\d \d\d:\d\d UTC Browser: Firefox on Linux Network address: 203\.0\.113\.x /,
    );
    expect(mail?.text).toContain(advice);
    expect(mail?.text).not.toMatch(/555|203\.0\.113\.77/);
  });

  it("is not mailed again from the same browser, nor more than once in two minutes", async () => {
    await make("often@example.com");
    const { client } = await world().signIn("often@example.com");
    await passWindow(world().sql);
    expect((await client.post(`/${surface}/sign-in`, { email: "often@example.com", password: PASSWORD })).status).toBe(
      303,
    );
    expect((await delivered(world().sql)).map(({ to }) => to)).toEqual(["often@example.com"]);
    const from = Date.now();
    for (let n = 0; n < 3; n += 1) await world().signIn("often@example.com");
    const { length } = await delivered(world().sql);
    expect(length).toBeGreaterThanOrEqual(2);
    expect(length).toBeLessThanOrEqual(1 + windowsSince(from));
    await passWindow(world().sql);
    await world().signIn("often@example.com");
    expect(await delivered(world().sql)).toHaveLength(length + 1);
  });

  it("is not mailed if the password was wrong", async () => {
    await make("wrong@example.com");
    expect((await world().signIn("wrong@example.com", "not it at all")).response.status).toBe(401);
    expect(await delivered(world().sql)).toEqual([]);
  });

  it("is listed by browser and system, without the header's text", async () => {
    await make("listed@example.com");
    const client = world().stranger();
    const headers = { "user-agent": `${FIREFOX} call +1 555 0100` };
    await client.post(`/${surface}/sign-in`, { email: "listed@example.com", password: PASSWORD }, headers);
    const text = await (await client.get(surface === "ops" ? "/ops/me" : "/console/security")).text();
    expect(text).toContain(">Firefox on Linux</td>");
    expect(text).not.toContain("555");
    await delivered(world().sql);
  });
});

describe("changes of staff", () => {
  it("are mailed to every admin: a new member, another role, a factor that was reset", async () => {
    for (const name of ["chief", "deputy"]) await staff.makeOperator(`${name}@example.com`, "admin");
    const by = "chief@example.com";
    const given = { email: "cal@example.com", role: "viewer", passwordHash: "x", by } as const;
    await staff.sql.begin((tx) => createOperator(tx, given));
    await staff.sql.begin((tx) => changeRole(tx, given, { role: "operator", was: "viewer", by }));
    const [{ id }] = await staff.sql<[{ id: string }]>`
      update auth.users set two_factor_enabled = true where email = ${given.email} returning id`;
    await staff.sql`insert into auth.two_factors (id, secret, backup_codes, user_id) values ('cal', 'x', 'x', ${id})`;
    await staff.sql.begin((tx) => resetTwoFactor(tx, given, by));
    const mails = await delivered(staff.sql);
    for (const admin of ["chief@example.com", "deputy@example.com"]) {
      expect(mails.filter(({ to }) => to === admin).map(({ text }) => text)).toEqual([
        expect.stringContaining("cal@example.com was added to the staff by chief@example.com."),
        expect.stringContaining("cal@example.com is operator now, and was viewer. chief@example.com changed it."),
        expect.stringContaining("Two-factor authentication of cal@example.com was turned off by chief@example.com."),
      ]);
    }
    expect(mails.filter(({ to }) => to !== given.email)).toHaveLength(6);
  });

  it("are mailed to the person whose password or second factor another one reset, unless no mail reaches them", async () => {
    const by = "chief@example.com";
    const id = await staff.makeOperator("rea@example.com", "viewer");
    await staff.sql`update auth.users set two_factor_enabled = true where id = ${id}`;
    await staff.sql`insert into auth.two_factors (id, secret, backup_codes, user_id) values ('rea', 'x', 'x', ${id})`;
    await staff.sql.begin((tx) => resetTwoFactor(tx, { id }, by));
    await staff.sql.begin((tx) => resetPassword(tx, { id }, "x", by));
    const mails = await delivered(staff.sql);
    expect(mails.filter(({ to }) => to === "rea@example.com")).toMatchObject([
      {
        subject: "Your second factor was turned off",
        text: expect.stringMatching(/turned off by chief@example\.com, .*another admin than chief@example\.com/),
      },
      {
        subject: "Your password was reset",
        text: expect.stringMatching(/reset by chief@example\.com, .*another admin than chief@example\.com/),
      },
    ]);
    await staff.sql.begin(async (tx) => {
      await insertOperator(tx, { email: LOCAL_OPERATOR, role: "viewer", passwordHash: null, by });
      await resetPassword(tx, { email: LOCAL_OPERATOR }, "x", by);
    });
    expect((await delivered(staff.sql)).map(({ to }) => to)).not.toContain(LOCAL_OPERATOR);
  });

  it("cannot flood admins: repeating one change mails it once in two minutes", async () => {
    await staff.makeOperator("flip@example.com", "viewer");
    const who = { email: "flip@example.com" };
    const from = Date.now();
    for (let n = 0; n < 4; n += 1) {
      await staff.sql.begin((tx) => changeRole(tx, who, { role: "data", was: null, by: "x@example.com" }));
      await staff.sql.begin((tx) => changeRole(tx, who, { role: "viewer", was: null, by: "x@example.com" }));
    }
    const [{ n }] = await staff.sql<[{ n: number }]>`
      select count(*)::integer as n from mails where body like '%flip@example.com is data now%' and recipient like 'chief%'`;
    expect(n).toBeGreaterThanOrEqual(1);
    expect(n).toBeLessThanOrEqual(windowsSince(from));
  });
});

it("names browsers as its examples do", () => {
  const claims = listExamples("src/accounts/identity/browser-name.ts").flatMap((example) =>
    runExample(example, { ...browserName }),
  );
  expect(claims.length).toBeGreaterThan(2);
  for (const { actual, expected, line } of claims) expect(actual, line).toEqual(expected);
});
