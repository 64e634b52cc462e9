import { createHash, randomBytes } from "node:crypto";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeRows } from "../../src/accounts/holders/close-store.ts";
import { forgetOrigins } from "../../src/accounts/holders/consent-store.ts";
import { removeHolderTwoFactor } from "../../src/accounts/holders/holder-two-factor.ts";
import { lockPerson } from "../../src/accounts/holders/person-store.ts";
import { askCode, askOwnCode, WRONG_CODE } from "../../src/accounts/identity/code.ts";
import { openIdentity } from "../../src/accounts/identity/identity.ts";
import { hashPassword } from "../../src/accounts/identity/password.ts";
import { endHolderSessions } from "../../src/accounts/identity/session-store.ts";
import { insertOperator, savePassword } from "../../src/accounts/operators/operator-store.ts";
import { appendAudit } from "../../src/audit/store.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { createOwnKey } from "../../src/callers/key-store.ts";
import { walletMicros } from "../../src/ledger/store.ts";
import { queueMail } from "../../src/mail/outbox-store.ts";
import { announceTransfer } from "../../src/topups/bank/expected-store.ts";
import { beginOrder } from "../../src/topups/binance-pay/begin.ts";
import { forgetUsedCodes, totp } from "../ops/totp.ts";
import type { CookieClient } from "../support/cookie-client.ts";
import { holdForm } from "../support/held-form.ts";
import { listening } from "../support/listening.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { linkTo, mailsTo, SECRET, tokenOf } from "./mails.ts";
import { type ConsoleWorld, openConsoleWorld, PASSWORD } from "./world.ts";

const SECURITY = "/console/security";
const NEW = "seven blue spoons";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await openConsoleWorld({ variables: { OPS_REQUIRE_TWO_FACTOR: "1" } });
});
afterAll(() => world.close());

const isIn = async (client: CookieClient) => (await client.get(SECURITY)).status === 200;
const lastMail = async (email: string) => (await mailsTo(world.sql, email)).at(-1)?.kind;

async function actionsOf(accountId: bigint): Promise<string[]> {
  const rows = await world.sql<{ action: string }[]>`
    select action from audit_log where target = ${`account ${accountId}`} and surface = 'console' order by seq`;
  return rows.map(({ action }) => action);
}

describe("the password", () => {
  it("is changed with the current one, ends the other sign-ins and the open links, and sends a mail", async () => {
    const ann = await world.as("ann");
    const { client: other } = await world.signIn(ann.email);
    const wrong = await ann.post(`${SECURITY}/password`, { password: "not it at all", next: NEW, again: NEW });
    expect(wrong.status).toBe(422);
    const text = await wrong.text();
    expect(text).toContain("the password is not right");
    expect(text).not.toContain(NEW); // what was typed is not shown again
    await ann.post(`${SECURITY}/email`, { email: "thief@example.com", password: PASSWORD });
    const link = await linkTo(world.sql, "thief@example.com", "new-email");
    const done = await ann.post(`${SECURITY}/password`, { password: PASSWORD, next: NEW, again: NEW });
    expect(done.headers.get("location")).toBe(SECURITY);
    expect([await isIn(ann), await isIn(other)]).toEqual([true, false]);
    expect((await ann.get(link)).status).toBe(410);
    expect((await world.signIn(ann.email)).response.status).toBe(401);
    expect((await world.signIn(ann.email, NEW)).response.status).toBe(303);
    expect(await lastMail(ann.email)).toBe("password-changed");
    expect(await actionsOf(ann.accountId)).toEqual(["own.ask-email", "own.password"]);
  });

  it("is not changed by a request that was proven before a reset", async () => {
    const una = await world.as("una");
    const passwordHash = await hashPassword("eight blue spoons");
    const { sent } = await world.sql.begin(async (tx) => {
      await lockPerson(tx, una.userId);
      const sending = una.post(`${SECURITY}/password`, { password: PASSWORD, next: NEW, again: NEW });
      await lockWaits(world.sql, 1);
      await savePassword(tx, una.userId, passwordHash);
      return { sent: sending };
    });
    expect((await sent).status).toBe(409);
    expect((await world.signIn(una.email, NEW)).response.status).toBe(401);
    expect((await world.signIn(una.email, "eight blue spoons")).response.status).toBe(303);
    expect([await lastMail(una.email), await actionsOf(una.accountId)]).toEqual([undefined, []]);
  });

  it("checked while staff end all sign-ins signs nobody in", async () => {
    const pia = await world.as("pia");
    const { late } = await world.sql.begin(async (tx) => {
      await tx`select from auth.users where id = ${pia.userId} for update`;
      const signingIn = world.signIn(pia.email);
      await lockWaits(world.sql, 1);
      await endHolderSessions(tx, pia.userId);
      return { late: signingIn };
    });
    const { response, client } = await late;
    expect([response.status, await isIn(client)]).toEqual([401, false]);
    expect((await world.signIn(pia.email)).response.status).toBe(303);
  });

  it("cannot be tried out without end", async () => {
    const tim = await world.as("tim");
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) {
      statuses.push((await tim.post(`${SECURITY}/password`, { password: `wrong ${n}`, next: NEW, again: NEW })).status);
    }
    expect(statuses).toEqual([422, 422, 422, 422, 422, 429]);
  });

  it("is estimated a few times for a person, so that the forms of one keep nobody from a password", async () => {
    const { email } = await world.makeHolder("flo@example.com");
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) {
      const { client } = await world.signIn(email); // sessions share the limit
      const form = { password: "wrong", next: "password123", again: "password123" };
      statuses.push((await client.post(`${SECURITY}/password`, form)).status);
    }
    expect(statuses).toEqual([422, 422, 422, 422, 422, 429]);
  });

  it("is changed by no page of another site", async () => {
    const { client } = await world.signIn((await world.makeHolder("crossed@example.com")).email);
    const headers = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
    for (const path of [
      "security/password",
      "security/email",
      "security/sessions/end-others",
      "account/close",
      "terms",
    ]) {
      expect((await client.post(`/console/${path}`, { password: PASSWORD }, headers)).status).toBe(403);
    }
  });
});

describe("[V7] sign-ins", () => {
  it("that ended before all of a form arrived do nothing more", async () => {
    const ira = await world.as("ira");
    const sender = { url: world.url, client: ira, userId: ira.userId };
    const held = await holdForm(world.sql, sender, "/console/keys", { name: "stolen" });
    await world.sql.begin((tx) => endHolderSessions(tx, ira.userId));
    const { status, text } = await held.send();
    expect([status, text]).toEqual([401, expect.not.stringContaining(ira.email)]);
    expect(await world.sql`select from keys where account_id = ${ira.accountId}`).toEqual([]);
  });

  it("are listed, ended one by one or all others, and only those of the current account", async () => {
    const { email, userId } = await world.makeHolder("bea@example.com");
    const [here, second, third] = [await world.signIn(email), await world.signIn(email), await world.signIn(email)];
    const bea = here.client;
    const text = await (await bea.get(SECURITY)).text();
    const ids = [...text.matchAll(/name="id" value="([^"]+)"/g)].map(([, id = ""]) => id);
    expect(ids).toHaveLength(2);
    const eve = await world.as("eve");
    expect((await eve.post(`${SECURITY}/sessions/end`, { id: ids[0]! })).status).toBe(422);
    expect((await bea.post(`${SECURITY}/sessions/end`, { id: ids[0]! })).status).toBe(303);
    const others = await Promise.all([second, third].map(({ client }) => isIn(client)));
    expect(others.filter(Boolean)).toHaveLength(1);
    await world.signIn(email);
    await world.sql`
      insert into auth.sessions (id, token, user_id, surface, expires_at, updated_at, user_agent, created_at)
      select 'many ' || n, 'many ' || n, ${userId}, 'console', now() + interval '1 day', now(), repeat('a browser ', 30),
        now() - interval '1 day'
      from generate_series(1, 300) as n`;
    expect((await (await bea.get(SECURITY)).text()).length).toBeLessThan(100_000);
    await bea.post(`${SECURITY}/sessions/end-others`);
    const [row] = await world.sql`select count(*)::integer as n from auth.sessions where user_id = ${userId}`;
    expect(row).toEqual({ n: 1 });
    expect(await isIn(bea)).toBe(true);
  });
});

/** A holder who has turned on a second factor, with the first of their backup codes. */
async function makeEnrolled(name: string) {
  const holder = await world.makeHolder(`${name}@example.com`);
  const { client } = await world.signIn(holder.email);
  const page = await (await client.post(`${SECURITY}/two-factor/enable`, { password: PASSWORD })).text();
  const secret = /secret: <code>([A-Z2-7]+)</.exec(page)![1]!;
  expect((await client.post(`${SECURITY}/two-factor/verify`, { code: totp(secret) })).status).toBe(303);
  return { ...holder, client, backupCode: /<li><code>([^<]+)</.exec(page)![1]! };
}

/**
 * Changes a password with the code of a thief whose sign-in is pending in the same browser, and ends the session before the
 * code is checked. The name of the thief's cookie is followed by `behind`.
 */
async function sendCodeOfPending([name = "", behind = ""]: readonly string[]) {
  const [holder, thief] = [await makeEnrolled(name), await makeEnrolled(`thief-of-${name}`)];
  const { client: pending } = await world.signIn(thief.email);
  for (const [cookie, value] of pending.cookies) holder.client.cookies.set(cookie + behind, value);
  const form = { password: PASSWORD, code: thief.backupCode, next: NEW, again: NEW };
  const { sent } = await world.sql.begin(async (tx) => {
    await tx`lock table auth.accounts`; // where the password is read
    const sending = holder.client.post(`${SECURITY}/password`, form);
    await lockWaits(world.sql, 1);
    await endHolderSessions(tx, holder.userId);
    return { sent: sending };
  });
  return { holder, thief, pending, response: await sent };
}

describe("[V6] a second factor", () => {
  it.for([
    ["vera", ""],
    ["vega", " "],
  ])(
    "of %s is not replaced by that of another person whose sign-in waits, if the session ends before it is checked",
    async (names) => {
      const { holder, response } = await sendCodeOfPending(names);
      expect([response.status, await response.text()]).toEqual([422, expect.stringContaining(WRONG_CODE)]);
      expect((await world.signIn(holder.email, NEW)).response.status).toBe(401);
    },
  );

  it.for([
    ["mona", ""],
    ["mina", " "],
  ])(
    "of another person whose sign-in is pending is not spent by a form of %s, nor is that sign-in completed",
    async (names) => {
      const { thief, pending, response } = await sendCodeOfPending(names);
      expect(response.status).toBe(422);
      expect(await world.sql`select from auth.sessions where user_id = ${thief.userId}`).toHaveLength(1); // of makeEnrolled
      expect((await pending.post("/console/sign-in/code", { code: thief.backupCode })).status).toBe(303);
    },
  );

  it("that the library checked for another person, by their session or pending sign-in, is refused", async () => {
    const [holder, thief, other] = [
      await makeEnrolled("olga"),
      await makeEnrolled("thief-of-olga"),
      await makeEnrolled("other-thief-of-olga"),
    ];
    const { client: pending } = await world.signIn(other.email);
    const identity = openIdentity({
      databaseUrl: world.databaseUrl,
      secret: SECRET,
      surface: "console",
      isSecure: false,
      lastsSeconds: 60,
      mayBegin: () => Promise.resolve(true),
      redeemLink: () => Promise.resolve(null),
      log: pino({ level: "silent" }),
    });
    try {
      const parts = { sql: world.sql, identity };
      const requesterOf = ({ cookies }: CookieClient) => {
        const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
        return { cookie, address: "192.0.2.1", userAgent: "" };
      };
      // without a body: the library's own refusals have one
      const refused = { status: 401, body: null, cookies: [] };
      expect(await askOwnCode(parts, requesterOf(thief.client), holder.userId, thief.backupCode)).toEqual(refused);
      expect(await askCode(parts, requesterOf(pending), holder.userId, other.backupCode)).toEqual(refused);
    } finally {
      await identity.close();
    }
  });

  it("of another person who is signed in is not the one that a sign-in waits for", async () => {
    const [nia, thief] = [await makeEnrolled("nia"), await makeEnrolled("thief-of-nia")];
    const { client: waiting } = await world.signIn(nia.email);
    for (const [name, value] of thief.client.cookies)
      if (name.endsWith("session_token")) waiting.cookies.set(`${name} `, value);
    const response = await waiting.post("/console/sign-in/code", { code: thief.backupCode });
    expect([response.status, response.headers.getSetCookie()]).toEqual([401, []]);
    expect(await world.sql`select from auth.sessions where user_id = ${nia.userId}`).toHaveLength(1);
    expect((await waiting.post("/console/sign-in/code", { code: nia.backupCode })).status).toBe(303);
  });

  it("is enabled with a code, required at sign-ins and changes, kept by a reset, and disabled, each with a mail", async () => {
    const { email, accountId } = await world.makeHolder("zoe@example.com");
    const { client: zoe } = await world.signIn(email);
    const enroll = await (await zoe.post(`${SECURITY}/two-factor/enable`, { password: PASSWORD })).text();
    const secret = /secret: <code>([A-Z2-7]+)</.exec(enroll)![1]!;
    const backup = [...enroll.matchAll(/<li><code>([^<]+)</g)].map(([, code = ""]) => code);
    expect(enroll).toContain("data:image/svg+xml;base64,");
    expect(backup.length).toBeGreaterThan(5);
    /** What the authenticator shows, as if half a minute had passed since the last time. */
    const code = async () => {
      await forgetUsedCodes(world.sql);
      return totp(secret);
    };
    const { client: elsewhere } = await world.signIn(email);
    expect((await zoe.post(`${SECURITY}/two-factor/verify`, { code: await code() })).status).toBe(303);
    expect([await isIn(elsewhere), await isIn(zoe)]).toEqual([false, true]); // the other began with the password alone
    expect(await lastMail(email)).toBe("second-factor-changed");

    const { client: later, response } = await world.signIn(email);
    expect(response.headers.get("location")).toBe("/console/sign-in/code");
    expect(await isIn(later)).toBe(false);
    expect((await later.post("/console/sign-in/code", { code: "not-a-code" })).status).toBe(401);
    const shown = await code();
    const second = await later.post("/console/sign-in/code", { code: shown, to: SECURITY });
    expect([second.status, second.headers.get("location")]).toEqual([303, SECURITY]);
    expect(await isIn(later)).toBe(true);
    const replay = await world.signIn(email);
    expect((await replay.client.post("/console/sign-in/code", { code: shown })).status).toBe(401);

    // from here on from another address, since each of these takes one of the few tries
    const bare = { password: PASSWORD, next: NEW, again: NEW };
    expect((await later.post(`${SECURITY}/password`, bare)).status).toBe(422);
    expect((await later.post(`${SECURITY}/password`, { ...bare, code: backup[0]! })).status).toBe(303);
    const off = { password: NEW, code: backup[0]! };
    expect((await later.post(`${SECURITY}/two-factor/disable`, off)).status).toBe(422); // once is all
    expect((await later.post(`${SECURITY}/two-factor/codes`, { password: NEW, code: backup[1]! })).status).toBe(200);

    await world.stranger().post("/console/forgot", { email });
    await expect.poll(() => lastMail(email)).toBe("reset-password");
    const token = tokenOf(await linkTo(world.sql, email, "reset"));
    await world.stranger().post("/console/reset", { token, next: PASSWORD, again: PASSWORD });
    const again = await world.signIn(email);
    expect(again.response.headers.get("location")).toBe("/console/sign-in/code");
    expect((await again.client.post("/console/sign-in/code", { code: await code() })).status).toBe(303);
    const codes = await (
      await again.client.post(`${SECURITY}/two-factor/codes`, { password: PASSWORD, code: "" })
    ).text();
    expect(codes).toContain("the code is not right");
    const done = await again.client.post(`${SECURITY}/two-factor/disable`, {
      password: PASSWORD,
      code: await code(),
    });
    expect(done.status).toBe(303);
    expect(await isIn(again.client)).toBe(true);
    expect(await lastMail(email)).toBe("second-factor-changed");
    expect(await actionsOf(accountId)).toEqual([
      "own.two-factor",
      "own.password",
      "own.backup-codes",
      "own.reset-password",
      "own.two-factor",
    ]);
    expect((await world.signIn(email)).response.headers.get("location")).toBe("/console");
  });
});

describe("a second factor that was lost", () => {
  it("is reset by an admin, which ends the sign-ins of its holder and sends a mail", async () => {
    const { email, userId, accountId } = await world.makeHolder("lost@example.com");
    const { client } = await world.signIn(email);
    const drop = () => world.sql.begin((tx) => removeHolderTwoFactor(tx, accountId));
    expect(await drop()).toEqual({ ok: false, problem: `${email} has no second factor` });
    await world.sql`update auth.users set two_factor_enabled = true where id = ${userId}`;
    await world.sql`
      insert into auth.two_factors (id, secret, backup_codes, user_id) values ('lost', 'x', 'x', ${userId})`;
    expect(await drop()).toMatchObject({ ok: true, after: { two_factor: false, sessions_ended: 1 } });
    expect(await isIn(client)).toBe(false);
    expect((await world.signIn(email)).response.headers.get("location")).toBe("/console");
    expect(await lastMail(email)).toBe("second-factor-changed");
  });
});

describe("another e-mail address", () => {
  it("is not requested by what was proven before a reset of the password", async () => {
    const ulf = await world.as("ulf");
    const passwordHash = await hashPassword(NEW);
    const { sent } = await world.sql.begin(async (tx) => {
      await lockPerson(tx, ulf.userId);
      const sending = ulf.post(`${SECURITY}/email`, { email: "thief2@example.com", password: PASSWORD });
      await lockWaits(world.sql, 1);
      await savePassword(tx, ulf.userId, passwordHash);
      return { sent: sending };
    });
    expect((await sent).status).toBe(409);
    expect(await mailsTo(world.sql, "thief2@example.com")).toEqual([]);
    expect([await lastMail(ulf.email), await actionsOf(ulf.accountId)]).toEqual([undefined, []]);
  });

  it("counts once the mail to it is opened and its form sent, for the sign-in and the account together", async () => {
    const cas = await world.as("cas");
    expect((await cas.post(`${SECURITY}/email`, { email: "new@example.com", password: "wrong one" })).status).toBe(422);
    expect(await mailsTo(world.sql, "new@example.com")).toEqual([]);
    await cas.post(`${SECURITY}/email`, { email: "newer@example.com", password: PASSWORD });
    const stale = tokenOf(await linkTo(world.sql, "newer@example.com", "new-email"));
    await cas.post(`${SECURITY}/email`, { email: "New@example.com", password: PASSWORD });
    const link = await linkTo(world.sql, "new@example.com", "new-email");
    expect(await lastMail(cas.email)).toBe("address-will-change");
    expect((await cas.get(`/console/new-email?token=${stale}`)).status).toBe(410);

    const looked = await (await world.stranger().get(link)).text();
    expect(looked).toContain('name="password"');
    expect(await (await cas.get(link)).text()).not.toContain('name="password"');
    const token = tokenOf(link);
    expect((await world.stranger().post("/console/new-email", { token, password: "wrong one" })).status).toBe(401);
    const eve = await world.as("eve2"); // signed in as another account
    expect((await eve.post("/console/new-email", { token })).status).toBe(401);
    expect((await world.stranger().post("/console/new-email", { token, password: PASSWORD })).status).toBe(303);
    const rows = await world.sql`
      select a.email as account, u.email as person from accounts a join auth.users u on u.id = a.user_id where a.id = ${cas.accountId}`;
    expect([...rows]).toEqual([{ account: "new@example.com", person: "new@example.com" }]);
    expect(await lastMail(cas.email)).toBe("address-changed");
    expect((await world.signIn(cas.email)).response.status).toBe(401);
    expect((await world.signIn("new@example.com")).response.status).toBe(303);
    expect((await cas.post("/console/new-email", { token })).status).toBe(410);
    const [{ log }] = (await world.sql`
      select string_agg(to_jsonb(a)::text, '') as log from audit_log a where surface = 'console'`) as [{ log: string }];
    expect(log).not.toContain("@example.com"); // the log cannot forget
  });

  it("that is already in use is refused in the mail to it alone, and one that is taken meanwhile at the end", async () => {
    const dan = await world.as("dan");
    await world.makeHolder("taken@example.com");
    const [free, taken] = [
      await dan.post(`${SECURITY}/email`, { email: "free@example.com", password: PASSWORD }),
      await dan.post(`${SECURITY}/email`, { email: "taken@example.com", password: PASSWORD }),
    ];
    expect([taken.status, taken.headers.get("location")]).toEqual([free.status, free.headers.get("location")]);
    const [mail] = await mailsTo(world.sql, "taken@example.com");
    expect(mail!.kind).toBe("new-address-is-taken");
    expect(mail!.body).not.toContain("token=");
    await dan.post(`${SECURITY}/email`, { email: "race@example.com", password: PASSWORD });
    const token = tokenOf(await linkTo(world.sql, "race@example.com", "new-email"));
    await world.makeHolder("race@example.com");
    const late = await dan.post("/console/new-email", { token });
    expect(late.status).toBe(410);
    expect(await late.text()).toContain("an account of its own meanwhile");
  });
});

describe("an account", () => {
  it("[V14] is closed permanently with address and password: nothing works, no one is named, the ledger stays", async () => {
    const gus = await world.as("gus");
    const { accountId, email, userId } = gus;
    await world.giveMoney(accountId, 29_500_000n);
    await world.givePlan(accountId, "Pro", 10);
    const { key } = await world.giveKey(accountId, "server");
    const call = () => fetch(`${world.url}/api/v1/usage`, { headers: { "x-api-key": key } });
    expect((await call()).status).toBe(200);
    await world.sql.begin(async (tx) => {
      await tx`update consents set address = null where account_id = ${accountId}`;
      await tx`
        insert into consents (account_id, kind, version, sha256, address, user_agent)
        select account_id, kind, version, sha256, '198.51.100.7', 'a browser' from consents where account_id = ${accountId}`;
    });
    const page = await (await gus.get("/console/account")).text();
    expect(page).toContain("29.50 USD</strong> is lost");

    expect(
      (await gus.post("/console/account/close", { address: "other@example.com", password: PASSWORD })).status,
    ).toBe(422);
    expect((await gus.post("/console/account/close", { address: email, password: "wrong one" })).status).toBe(422);
    const { heard, close } = await listening(world.databaseUrl, "roundhouse_callers");
    const done = await gus.post("/console/account/close", { address: "GUS@example.com ", password: PASSWORD });
    expect([done.status, done.headers.get("location")]).toEqual([303, "/console/sign-in"]);

    await expect.poll(() => heard).not.toEqual([]); // the cached key expires in 5 s even without it
    await close();
    await expect.poll(async () => (await call()).status).toBe(401);
    expect(await isIn(gus)).toBe(false);
    expect((await world.signIn(email)).response.status).toBe(401);
    const [account] = await world.sql`
      select email, user_id, closed_at is not null as closed from accounts where id = ${accountId}`;
    expect(account).toEqual({ email: `closed-${accountId}@accounts.invalid`, user_id: null, closed: true });
    const left = await world.sql`
      select
        (select count(*)::integer from auth.users where id = ${userId}) as users,
        (select count(*)::integer from auth.sessions where user_id = ${userId}) as sessions,
        (select count(*)::integer from entitlements where account_id = ${accountId} and ends_at > now()) as plans,
        (select count(*)::integer from consents where account_id = ${accountId} and address is not null) as origins,
        (select count(*)::integer from consents where account_id = ${accountId} and kind = 'terms') as consents`;
    expect([...left]).toEqual([{ users: 0, sessions: 0, plans: 0, origins: 0, consents: 2 }]);
    expect(await walletMicros(world.sql, accountId)).toBe(29_500_000n);
    expect(await lastMail(email)).toBe("account-closed");
    expect(await actionsOf(accountId)).toEqual(["account.close"]);
    await expect(world.giveKey(accountId, "late")).rejects.toThrow("was closed by its holder");
    const insertion = world.sql`
      insert into keys (account_id, name, sha256, last4) values (${accountId}, 'late', ${randomBytes(32)}, 'late')`;
    await expect(insertion).rejects.toThrow("was closed by its holder and gets no key");
    expect((await verifyAudit(world.sql)).failure).toBeNull();

    await world.makeHolder(email); // the address is free for a new account
  });

  type Late = (holder: CookieClient, accountId: bigint) => Promise<{ status: number } | { ok: boolean }>;
  it.for<[string, Late]>([
    ["consent", (holder) => holder.post("/console/terms", { terms: "on" })],
    ["transfer", (_, accountId) => world.sql.begin((tx) => announceTransfer(tx, { accountId, announced: "1.00 EUR" }))],
    ["order", (_, accountId) => world.sql.begin((tx) => beginOrder(tx, { accountId, micros: 25_000_000n }))],
    ["key", (_, accountId) => world.sql.begin((tx) => createOwnKey(tx, accountId, "late"))],
  ])("[V14] gets no %s that was begun before it was closed", async ([what, begin]) => {
    const email = `late-${what}@example.com`;
    const { accountId } = await world.makeHolder(email, { hasAgreed: false });
    const { client } = await world.signIn(email);
    const { begun } = await world.sql.begin(async (tx) => {
      await closeRows(tx, accountId);
      await forgetOrigins(tx, accountId);
      const beginning = begin(client, accountId);
      await lockWaits(world.sql, 1);
      return { begun: beginning };
    });
    expect(await begun).toMatchObject(what === "consent" ? { status: 403 } : { ok: false });
    const left = await world.sql`
      select account_id from consents where account_id = ${accountId}
      union all select account_id from topups where account_id = ${accountId}`;
    expect([...left]).toEqual([]);
  });

  it("is given to its holder as a file, without a secret and without anybody else's", async () => {
    const ida = await world.as("ida");
    await world.giveMoney(ida.accountId, 5_000_000n);
    const { id, key } = await world.giveKey(ida.accountId, "laptop");
    await ida.post(`${SECURITY}/sessions/end-others`);
    const { sql } = world;
    await sql`
      insert into deposit_addresses (account_id, address_index, address, xpub_fingerprint)
      values (${ida.accountId}, 7, ${`0x${"1d".repeat(20)}`}, 'f')`;
    await sql`
      insert into chain_deposits (
        chain_id, tx_hash, position, account_id, token, sender, units, micros, rest_units, block_number, block_hash, log_index
      )
      values (
        1, ${`0x${"ab".repeat(32)}`}, 0, ${ida.accountId}, 't', ${`0x${"5e".repeat(20)}`}, 1, 2500000, 0, 1,
        ${`0x${"b1".repeat(32)}`}, 0
      )`;
    const [keeper, checker] = await sql.begin((tx) =>
      Promise.all(
        ["keeper", "checker"].map((name) =>
          insertOperator(tx, { email: `${name}@example.com`, role: "operator", passwordHash: null, by: "test" }),
        ),
      ),
    );
    const [topup] = await sql<{ id: bigint }[]>`
      insert into topups (account_id, method, reference) values (${ida.accountId}, 'bank', 'RF00TEST') returning id`;
    const [line] = await sql<{ id: bigint }[]>`
      insert into bank_lines (bank, bank_ref, value_date, currency, amount_minor, sender, remittance, entered_by)
      values ('test', 'line 1', '2026-11-20', 'USD', 2900, 'IDA KETTLE', 'RF00TEST', ${keeper!.id})
      returning id`;
    await sql`
      insert into bank_matches (
        line_id, entered_by, topup_id, account_id, topup_state, rate_e8, micros, matched_by, approved_by, approved_at
      )
      values (
        ${line!.id}, ${keeper!.id}, ${topup!.id}, ${ida.accountId}, 'expected', 100000000, 29000000, ${keeper!.id},
        ${checker!.id}, now()
      )`;
    const changed = {
      surface: "ops",
      role: "admin",
      reason: "a test",
      requestId: "1",
      address: "203.0.113.99",
    } as const;
    const target = `account ${ida.accountId}`;
    await sql.begin(async (tx) => {
      const after = { suspended: true, reason: "a test" };
      await appendAudit(tx, {
        ...changed,
        actor: "keeper@example.com",
        action: "account.suspend",
        target,
        before: null,
        after,
      });
      for (const named of [`key ${id}`, `key ${id} of ${target}`, `key ${id}0`, `key ${id} of ${target}0`]) {
        const revoked = { action: "key.revoke", target: named, before: null, after: null };
        await appendAudit(tx, { ...changed, ...revoked, actor: "keeper@example.com" });
      }
      const other = `${target}0`;
      await appendAudit(tx, {
        ...changed,
        actor: "keeper@example.com",
        action: "other",
        target: other,
        before: null,
        after,
      });
    });
    expect(await (await ida.get("/console/account")).text()).not.toContain("Everything that is stored");
    const response = await ida.get("/console/account/data.json");
    expect(response.headers.get("content-disposition")).toContain(`roundhouse-account-${ida.accountId}.json`);
    const text = await response.text();
    const data = JSON.parse(text) as Record<string, unknown[]>;
    expect(data).toMatchObject({
      account: { id: String(ida.accountId), email: ida.email },
      agreed: [{ kind: "terms" }, { kind: "adult" }],
      keys: [{ name: "laptop", last4: key.slice(-4) }],
      balance_entries: [{ micros: "5000000" }],
      changes: [{ action: "own.end-session" }],
      changes_by_staff: [
        { action: "key.revoke", target: `key ${id} of ${target}` },
        { action: "key.revoke", target: `key ${id}` },
        { action: "account.suspend", target, after: { suspended: true, reason: "a test" } },
      ],
      bank_transfers: [{ sender: "IDA KETTLE", remittance: "RF00TEST", amount_minor: "2900" }],
      chain: { address: `0x${"1d".repeat(20)}`, deposits: [{ sender: `0x${"5e".repeat(20)}`, micros: "2500000" }] },
      is_whole: true,
    });
    expect(data["sign_ins"]).toHaveLength(1);
    const session = ida.cookies.get("rh_console.session_token")!;
    const hash = createHash("sha256").update(key).digest("hex");
    for (const secret of [
      key,
      hash,
      decodeURIComponent(session).split(".")[0]!,
      "argon2",
      "eve@",
      "keeper@",
      "203.0.113.99",
    ]) {
      expect(text).not.toContain(secret);
    }
    expect((await world.stranger().get("/console/account/data.json")).status).toBe(302);
  });

  it("has every key, sign-in, mail and change in its file, however many there are", async () => {
    const ivy = await world.as("ivy");
    const actor = `account ${ivy.accountId}`;
    await world.sql`
      insert into audit_log (seq, at, surface, actor, action, target, prev_hash, hash)
      select -n, now() - n * interval '1 hour', 'console', ${actor}, 'change ' || n, ${actor}, 'before ' || n, 'of ' || n
      from generate_series(1, 10001) n`;
    await world.sql`
      insert into keys (account_id, name, sha256, last4)
      select ${ivy.accountId}, 'key ' || n, sha256(('ivy ' || n)::bytea), 'last' from generate_series(1, 2001) n`;
    await world.sql`
      insert into auth.sessions (id, expires_at, token, created_at, updated_at, user_agent, user_id, surface)
      select 'ivy ' || n, now() + interval '1 hour', 'ivy ' || n, now() - 1000 * interval '1 hour' + (n / 3) * interval '1 s',
        now(), 'browser ' || n, ${ivy.userId}, 'console'
      from generate_series(1, 2000) n`; // three at each time
    await world.sql`
      insert into mails (kind, recipient, subject, body)
      select 'receipt', ${ivy.email}, 'mail ' || n, 'x' from generate_series(1, 2500) n`;
    const response = await ivy.get("/console/account/data.json", { "accept-encoding": "gzip" }); // as browsers do
    const data = (await response.json()) as Record<string, object[]>;
    const numbers = (list: string, field: string) =>
      data[list]!.map((row) =>
        /^(?:change|key|browser|mail) (\d+)$/.exec(String((row as Record<string, unknown>)[field])),
      )
        .filter((match) => match !== null)
        .map(([, n]) => Number(n));
    const upTo = (n: number) => Array.from({ length: n }, (_, place) => place + 1);
    expect(numbers("changes", "action")).toEqual(upTo(10_001));
    expect(numbers("keys", "name")).toEqual(upTo(2_001));
    expect(numbers("sign_ins", "user_agent").toSorted((a, b) => a - b)).toEqual(upTo(2_000));
    expect(numbers("mails", "subject")).toEqual(upTo(2_500));
    expect(data).toMatchObject({ is_whole: true, changes_order: "newest first" });
    expect(JSON.stringify(data)).not.toMatch(/"place"|"ivy \d/); // ids of sessions are not for files
  });

  it("begins its file before the last of it is read, and ends the connection if the rest cannot be read", async () => {
    const una = await world.as("una-file");
    const { response, reader } = await world.sql.begin(async (tx) => {
      await tx`lock table mails in access exclusive mode`;
      const begun = await una.get("/console/account/data.json");
      const reading = begun.body!.getReader();
      const { value } = await reading.read();
      expect(new TextDecoder().decode(value)).toContain('"account": {');
      await lockWaits(world.sql, 1);
      await tx`
        select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      return { response: begun, reader: reading };
    });
    expect(response.status).toBe(200);
    await expect(
      (async () => {
        for (;;) if ((await reader.read()).done) return;
      })(),
    ).rejects.toThrow("terminated");
  });

  it("has the mails of an account whose address was written with capitals when it was made", async () => {
    const cass = await world.as("cass");
    await world.sql`update accounts set email = 'Cass@Example.com' where id = ${cass.accountId}`; // then it was claimed
    await world.sql.begin(async (tx) => {
      const [account] = await tx<{ email: string }[]>`select email from accounts where id = ${cass.accountId}`;
      await queueMail(tx, { kind: "receipt", recipient: account!.email, subject: "Receipt", body: "29.00 USD" });
    });
    const data = (await (await cass.get("/console/account/data.json")).json()) as Record<string, unknown[]>;
    expect(data["mails"]).toContainEqual(expect.objectContaining({ kind: "receipt", subject: "Receipt" }));
  });
});
