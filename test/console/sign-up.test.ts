import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { legalText } from "../../src/accounts/legal.ts";
import { insertOperator } from "../../src/accounts/operators/operator-store.ts";
import { forgetEndedSignIns } from "../../src/accounts/identity/session-store.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import type { CookieClient } from "../support/cookie-client.ts";
import { linkTo, mailsTo, plain, tokenOf } from "./mails.ts";
import { type ConsoleWorld, openConsoleWorld, PASSWORD } from "./world.ts";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await openConsoleWorld({ variables: { OPERATOR_NAME: "Kettles <Ltd>" } });
});
afterAll(() => world.close());

const BOTH = { terms: "on", adult: "on" };

async function signUp(email: string, password = PASSWORD, boxes: Record<string, string> = BOTH) {
  const client = world.stranger();
  const response = await client.post("/console/sign-up", { email, password, ...boxes });
  return { client, response };
}

/** Signs up and opens the link. */
async function join(email: string): Promise<CookieClient> {
  const { client } = await signUp(email);
  const token = tokenOf(await linkTo(world.sql, email, "confirm"));
  const { status } = await client.post("/console/confirm", { token, password: PASSWORD });
  expect(status).toBe(303);
  return client;
}

async function countUsers(email: string): Promise<number> {
  const [row] = await world.sql<{ n: number }[]>`
    select count(*)::integer as n from auth.users where email = ${email}`;
  return row!.n;
}

describe("signing up", () => {
  it("leads by the link in the mail to an account that is signed in, with what was agreed to", async () => {
    const form = await (await world.stranger().get("/console/sign-up")).text();
    expect(form.match(/type="checkbox"/g)).toHaveLength(2);
    expect(form).not.toContain("checked");

    const { client, response } = await signUp(" Ann@Example.com ");
    expect(response.status).toBe(200);
    expect([...client.cookies.keys()]).toEqual(["rh_console_sign_up"]); // which is no sign-in
    expect(await countUsers("ann@example.com")).toBe(0); // nothing is stored for an unproven address

    const link = await linkTo(world.sql, "ann@example.com", "confirm");
    const page = await client.get(link);
    expect(page.status).toBe(200);
    expect(await page.text()).not.toContain('name="password"'); // it was asked for in this browser
    expect([page.headers.get("cache-control"), page.headers.get("referrer-policy")]).toEqual([
      "no-store",
      "same-origin",
    ]);
    await client.get(link); // looking uses nothing up
    const done = await client.post("/console/confirm", { token: tokenOf(link) });
    expect([done.status, done.headers.get("location")]).toEqual([303, "/console"]);
    expect((await client.get("/console/security")).status).toBe(200);
    expect((await world.signIn("ann@example.com")).response.status).toBe(303);

    const [account] = await world.sql`
      select a.id, a.verified_at is not null as verified, u.email
      from accounts a join auth.users u on u.id = a.user_id
      where a.email = 'ann@example.com'`;
    expect(account).toMatchObject({ verified: true, email: "ann@example.com" });
    const consents = await world.sql`
      select kind, version, sha256, address is not null as from, given_at < clock_timestamp() as past
      from consents where account_id = ${account!["id"] as bigint} order by id`;
    const expected = (["terms", "adult"] as const).map((kind) => {
      const { version, sha256 } = legalText(kind);
      return { kind, version, sha256, from: true, past: true };
    });
    expect([...consents]).toEqual(expected);
    const entries = await world.sql`select surface, actor, role from audit_log where action = 'account.open'`;
    expect([...entries]).toEqual([{ surface: "console", actor: `account ${String(account!["id"])}`, role: null }]);
    expect((await verifyAudit(world.sql)).failure).toBeNull();
  });

  it.each([
    ["without the terms", { adult: "on" }, PASSWORD, "terms are not accepted"],
    ["without the age of 18", { terms: "on" }, PASSWORD, "18 or older"],
    ["with a short password", BOTH, "kettles", "at least 10 characters"],
    ["with a password that is easy to guess", BOTH, "password123", "easy to guess"],
  ])("is refused %s", async (_, boxes, password, problem) => {
    const { response } = await signUp("refused@example.com", password, boxes);
    expect(response.status).toBe(422);
    const text = await response.text();
    expect(text).toContain(problem);
    expect(text).toContain('value="refused@example.com"');
    const ticked = [...text.matchAll(/name="(\w+)" value="on" required checked/g)].map(([, name]) => name);
    expect(ticked).toEqual(Object.keys(BOTH).filter((name) => name in boxes));
    expect(text).not.toContain(password);
    expect(await mailsTo(world.sql, "refused@example.com")).toEqual([]);
  });

  it.each(["", "ann", "ann@localhost", "a b@example.com", "ann@example.com\n@example.com"])(
    "is refused without an address: %j",
    async (email) => expect((await signUp(email)).response.status).toBe(422),
  );

  it("does not reveal whether an address is known: only the mail to it does", async () => {
    await world.makeHolder("known@example.com");
    await world.sql.begin((tx) =>
      insertOperator(tx, { email: "boss@example.com", role: "admin", passwordHash: null, by: "test" }),
    );
    const responses: unknown[] = [];
    for (const email of ["known@example.com", "unknown@example.com", "boss@example.com"]) {
      const { client, response } = await signUp(email, "another good password");
      responses.push({ status: response.status, text: await plain(response), cookies: [...client.cookies.keys()] });
    }
    expect(responses[1]).toEqual(responses[0]);
    expect(responses[2]).toEqual(responses[0]);
    const kinds = async (email: string) => (await mailsTo(world.sql, email)).map(({ kind }) => kind);
    expect(await kinds("known@example.com")).toEqual(["sign-up-of-known"]);
    expect(await kinds("boss@example.com")).toEqual(["confirm-address"]); // the console does not know operators
    const token = tokenOf(await linkTo(world.sql, "boss@example.com", "confirm"));
    await world.stranger().post("/console/confirm", { token, password: "another good password" });
    expect((await world.signIn("boss@example.com", "another good password")).response.status).toBe(401);
    expect(await world.sql`select from accounts where email = 'boss@example.com'`).toEqual([]);
    expect(await kinds("unknown@example.com")).toEqual(["confirm-address"]);
    const [mail] = await mailsTo(world.sql, "known@example.com");
    expect(mail!.body).not.toContain("token=");
    expect((await world.signIn("known@example.com")).response.status).toBe(303); // and changes nothing
    expect((await world.signIn("known@example.com", "another good password")).response.status).toBe(401);
  });

  it("by an attacker gives them nothing: the owner of the address does not know the password", async () => {
    await signUp("victim@example.com", "the attacker's password");
    const link = await linkTo(world.sql, "victim@example.com", "confirm");
    const victim = world.stranger();
    const refused = await victim.post("/console/confirm", { token: tokenOf(link), password: PASSWORD });
    expect(refused.status).toBe(401);
    expect(await countUsers("victim@example.com")).toBe(0);
    await join("victim@example.com"); // the owner signs up meanwhile, with their own link
    const late = await world
      .stranger()
      .post("/console/confirm", { token: tokenOf(link), password: "the attacker's password" });
    expect(late.status).toBe(410);
    expect((await world.signIn("victim@example.com", "the attacker's password")).response.status).toBe(401);
    expect((await world.signIn("victim@example.com")).response.status).toBe(303);
  });

  it("asks for the password in any other browser, also in one whose cookie is of another sign-up", async () => {
    await signUp("phone@example.com");
    const link = await linkTo(world.sql, "phone@example.com", "confirm");
    const { client: other } = await signUp("other@example.com");
    for (const browser of [world.stranger(), other]) {
      expect(await (await browser.get(link)).text()).toContain('name="password"');
      expect((await browser.post("/console/confirm", { token: tokenOf(link) })).status).toBe(401);
    }
    expect(await countUsers("phone@example.com")).toBe(0);
    expect((await other.post("/console/confirm", { token: tokenOf(link), password: PASSWORD })).status).toBe(303);
  });

  it("sends its mail again to the browser that signed up, and to no other", async () => {
    const { client } = await signUp("again@example.com");
    const [sent, foreign] = [
      await client.post("/console/sign-up/resend", { email: "again@example.com" }),
      await world.stranger().post("/console/sign-up/resend", { email: "again@example.com" }),
    ];
    expect([sent.status, foreign.status]).toEqual([200, 200]);
    expect(await plain(sent)).toBe(await plain(foreign));
    expect((await mailsTo(world.sql, "again@example.com")).map(({ kind }) => kind)).toEqual([
      "confirm-address",
      "confirm-address",
    ]);
    const token = tokenOf(await linkTo(world.sql, "again@example.com", "confirm"));
    expect((await client.post("/console/confirm", { token })).headers.get("location")).toBe("/console");
    await client.post("/console/sign-up/resend", { email: "again@example.com" });
    expect((await mailsTo(world.sql, "again@example.com")).slice(2)).toEqual([]); // the sign-up is used up
  });

  it("is not kept out by strangers who ask to send its mail again; its own browser sends it a few times", async () => {
    const email = "wanted@example.com";
    for (let n = 0; n < 8; n += 1) {
      expect((await world.stranger().post("/console/sign-up/resend", { email })).status).toBe(200);
    }
    const { client, response } = await signUp(email);
    expect(response.status).toBe(200);
    const again: number[] = [];
    for (let n = 0; n < 5; n += 1) again.push((await client.post("/console/sign-up/resend", { email })).status);
    expect(again).toEqual([200, 200, 200, 200, 429]);
    expect(await mailsTo(world.sql, email)).toHaveLength(5);
  });

  it("shows no link, whatever the mail server, unless the instance is a demo", async () => {
    const { response } = await signUp("shown@example.com");
    expect(await response.text()).not.toContain("token=");
  });

  it("ends the session that the browser had", async () => {
    const { userId } = await world.makeHolder("former@example.com");
    const { client } = await world.signIn("former@example.com");
    await client.post("/console/sign-up", { email: "present@example.com", password: PASSWORD, ...BOTH });
    const token = tokenOf(await linkTo(world.sql, "present@example.com", "confirm"));
    const sessions = () => world.sql`select from auth.sessions where user_id = ${userId}`;
    expect(await sessions()).toHaveLength(1);
    const done = await client.post("/console/confirm", { token, password: PASSWORD });
    expect([done.status, done.headers.get("location")]).toEqual([303, "/console"]);
    expect(await sessions()).toHaveLength(0);
    expect((await client.get("/console/security")).status).toBe(200);
  });

  it("has a link that works once, for a day, and for nothing else", async () => {
    await signUp("late@example.com");
    const token = tokenOf(await linkTo(world.sql, "late@example.com", "confirm"));
    await world.sql`update sign_ups set expires_at = clock_timestamp() where email = 'late@example.com'`;
    const client = world.stranger();
    expect((await client.get(`/console/confirm?token=${token}`)).status).toBe(410);
    expect((await client.post("/console/confirm", { token, password: PASSWORD })).status).toBe(410);
    expect((await client.get(`/console/reset?token=${token}`)).status).toBe(410);
    expect((await client.get(`/console/new-email?token=${token}`)).status).toBe(410);
    expect((await client.get("/console/confirm?token=")).status).toBe(410);
    await forgetEndedSignIns(world.sql);
    expect([...(await world.sql`select from sign_ups where email = 'late@example.com'`)]).toEqual([]);

    await signUp("once@example.com");
    const once = tokenOf(await linkTo(world.sql, "once@example.com", "confirm"));
    const both = await Promise.all(
      [client, world.stranger()].map((one) => one.post("/console/confirm", { token: once, password: PASSWORD })),
    );
    expect(both.filter(({ status, headers }) => status === 303 && headers.get("location") === "/console")).toHaveLength(
      1,
    );
    expect(await countUsers("once@example.com")).toBe(1);
    expect((await client.post("/console/confirm", { token: once, password: PASSWORD })).status).toBe(410);
  });

  it("[V14] keeps neither the link's token nor the password", async () => {
    await signUp("secret@example.com", "a password that is nowhere");
    const token = tokenOf(await linkTo(world.sql, "secret@example.com", "confirm"));
    const rows = JSON.stringify([...(await world.sql`select * from sign_ups where email = 'secret@example.com'`)]);
    for (const secret of [token, "a password that is nowhere"]) {
      expect(rows).not.toContain(secret);
      expect(world.lines.join("")).not.toContain(secret);
    }
  });

  it("claims the account that was made at the command line, with its keys", async () => {
    const made = await createAccount(world.sql, "Claimed@example.com");
    await createKey(world.sql, { email: "claimed@example.com", plan: "Pro" });
    await join("claimed@example.com");
    const rows = await world.sql`
      select a.id, a.user_id is not null as held, (select count(*)::integer from keys k where k.account_id = a.id) as keys
      from accounts a where lower(a.email) = 'claimed@example.com'`;
    expect([...rows]).toEqual([{ id: made.ok && made.id, held: true, keys: 1 }]);
  });

  it("[API6] is limited: mails to one address, mails that one network asks for, and tries of a link's password", async () => {
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) statuses.push((await signUp("bombed@example.com")).response.status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    const machine = world.stranger();
    const many = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        machine.post("/console/sign-up", { email: `list${n}@example.com`, password: PASSWORD, ...BOTH }),
      ),
    );
    const refused = many.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(2);
    expect(Number(refused[0]!.headers.get("retry-after"))).toBeGreaterThan(0);
    const token = tokenOf(await linkTo(world.sql, "bombed@example.com", "confirm"));
    const tries: number[] = [];
    for (let n = 0; n < 6; n += 1) {
      tries.push((await machine.post("/console/confirm", { token, password: `wrong ${n}` })).status);
    }
    expect(tries).toEqual([401, 401, 401, 401, 401, 429]);
  });

  it("[API6] limits the passwords that are tried, none of which costs a mail", async () => {
    const statuses: number[] = [];
    const machine = world.stranger();
    const typed = { email: "weak@example.com", password: "password123" };
    const weak = { ...typed, ...BOTH };
    const unread = await machine.post("/console/sign-up", typed);
    expect(await unread.text()).toContain("terms are not accepted"); // its password is not estimated
    for (let n = 0; n < 6; n += 1) statuses.push((await machine.post("/console/sign-up", weak)).status);
    expect(statuses).toEqual([422, 422, 422, 422, 422, 429]);
    const many: number[] = [];
    for (let n = 0; n < 26; n += 1) {
      many.push((await machine.post("/console/sign-up", { ...weak, email: `weak${n}@example.com` })).status);
    }
    expect(many).toEqual([...Array<number>(25).fill(422), 429]);
    const sent: number[] = [];
    for (let n = 0; n < 5; n += 1) sent.push((await signUp("weak@example.com")).response.status);
    expect(sent).toEqual([200, 200, 200, 200, 200]);
  });

  it("is not done by a page of another site", async () => {
    const fields = { email: "cross@example.com", password: PASSWORD, ...BOTH };
    const headers = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
    for (const path of [
      "sign-up",
      "sign-up/resend",
      "confirm",
      "sign-in",
      "sign-in/code",
      "forgot",
      "reset",
      "new-email",
      "sign-out",
    ]) {
      expect([path, (await world.stranger().post(`/console/${path}`, fields, headers)).status]).toEqual([path, 403]);
    }
    expect(await mailsTo(world.sql, "cross@example.com")).toEqual([]);
  });
});

describe("a person who lost their account", () => {
  it("is signed out, and refused like a wrong password", async () => {
    const { accountId } = await world.makeHolder("olga@example.com");
    const { client: olga } = await world.signIn("olga@example.com");
    expect((await olga.get("/console/security")).status).toBe(200);
    await world.sql`update accounts set user_id = null where id = ${accountId}`;
    for (const path of ["/console", "/console/security", "/console/account", "/console/account/data.json"]) {
      const { status, headers } = await olga.get(path);
      expect([path, status, headers.get("location")?.split("?")[0]]).toEqual([path, 302, "/console/sign-in"]);
    }
    expect((await olga.post("/console/security/password", { password: PASSWORD, next: "x", again: "x" })).status).toBe(
      401,
    );
    expect((await world.signIn("olga@example.com")).response.status).toBe(401);
  });
});

describe("the terms", () => {
  it("are public, with their version and who offers them", async () => {
    const response = await world.stranger().get("/console/terms");
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).toContain(legalText("terms").version);
    expect(text).toContain(legalText("terms").sha256);
    expect(text).toContain("Kettles &lt;Ltd&gt;");
    expect(text).not.toContain('<form method="post" action="/console/terms"');
  });

  it("are requested again of everyone who agreed to another version, and kept as agreed", async () => {
    const { accountId } = await world.makeHolder("older@example.com", { hasAgreed: false });
    await world.sql.begin(async (tx) => {
      await tx`insert into legal_texts (kind, version, sha256, body) values ('terms', '2020-01-01', ${"0".repeat(64)}, 'old')`;
      await tx`insert into consents (account_id, kind, version, sha256) values (${accountId}, 'terms', '2020-01-01', ${"0".repeat(64)})`;
    });
    const { client } = await world.signIn("older@example.com");
    const asked = await (await client.get("/console/terms?to=/console/keys")).text();
    expect(asked).toContain('<form method="post" action="/console/terms"');
    const unticked = await client.post("/console/terms", { to: "/console/keys" });
    expect(unticked.headers.get("location")).toBe("/console/terms?to=%2Fconsole%2Fkeys");
    expect(asked).toContain(`name="version" value="${legalText("terms").version}"`);
    const stale = await client.post("/console/terms", { terms: "on", version: "2020-01-01", to: "/console/keys" });
    expect(stale.headers.get("location")).toBe("/console/terms?to=%2Fconsole%2Fkeys"); // they read another text
    const done = await client.post("/console/terms", { terms: "on", to: "/console/keys" });
    expect(done.headers.get("location")).toBe("/console/keys");
    await client.post("/console/terms", { terms: "on", to: "https://evil.example" }); // once is all
    const rows = await world.sql`select version from consents where account_id = ${accountId} order by id`;
    expect(rows.map(({ version }) => String(version))).toEqual(["2020-01-01", legalText("terms").version]);
    expect(await (await client.get("/console/terms")).text()).not.toContain('action="/console/terms"');
    await expect(world.sql`delete from consents`).rejects.toThrow("only ever added");
    await expect(world.sql`update consents set version = '2020-01-01'`).rejects.toThrow("only ever added");
    await expect(world.sql`update legal_texts set body = ''`).rejects.toThrow("only ever added");
  });
});

describe("a demo without a mail server", () => {
  it("shows the link to the browser that signed up, on a demo instance only", async () => {
    const demo = await openConsoleWorld({ isDemo: true });
    try {
      const sign = async (email: string) => {
        const client = demo.stranger();
        const response = await client.post("/console/sign-up", { email, password: PASSWORD, ...BOTH });
        const text = await response.text();
        return { client, link: /href="(\/console\/confirm\?token=[\w-]+)"/.exec(text)?.[1] ?? null };
      };
      const { client, link } = await sign("new@example.com");
      const done = await client.post("/console/confirm", { token: tokenOf(link ?? "") });
      expect(done.headers.get("location")).toBe("/console");
      expect((await sign("new@example.com")).link).toBeNull();
      await createAccount(demo.sql, "made@example.com"); // at the command line: its keys are not for new sign-ups
      expect((await sign("made@example.com")).link).toBeNull();
    } finally {
      await demo.close();
    }
  });

  it("with a mail server shows none", async () => {
    const demo = await openConsoleWorld({ isDemo: true, variables: { SMTP_URL: "smtp://127.0.0.1:9" } });
    try {
      const fields = { email: "new@example.com", password: PASSWORD, ...BOTH };
      const response = await demo.stranger().post("/console/sign-up", fields);
      expect(await response.text()).not.toContain("token=");
    } finally {
      await demo.close();
    }
  });
});
