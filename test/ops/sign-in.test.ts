import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LOCAL_OPERATOR, makeLocalLink } from "../../src/accounts/operators/local-operator.ts";
import { changeDisabled, changeRole, endAllSessions, resetPassword } from "../../src/accounts/operators/manage.ts";
import { REVOKED, SIGNED_OUT } from "../../src/accounts/identity/ask-session.ts";
import { hashPassword } from "../../src/accounts/identity/password.ts";
import { endSession } from "../../src/accounts/identity/session-store.ts";
import type { Transaction } from "../../src/db/client.ts";
import { eventually } from "../support/eventually.ts";
import { holdForm } from "../support/held-form.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { forgetUsedCodes, totp } from "./totp.ts";
import { openOpsWorld, type OpsWorld, PASSWORD, type CookieClient } from "./world.ts";

const SESSION_COOKIE = "rh_ops.session_token";

let world: OpsWorld;
beforeAll(async () => {
  world = await openOpsWorld();
});
afterAll(() => world.close());

async function audited(action: string, target: string): Promise<number> {
  const [row] = await world.sql<{ n: number }[]>`
    select count(*)::integer as n from audit_log where action = ${action} and target = ${`operator ${target}`}`;
  return row!.n;
}

/** The reasons of refused sign-ins. */
const refusals = (email: string) =>
  world.sql`
    select reason from audit_log where action = 'session.refused' and target = ${`operator ${email}`} order by seq`;
const STALE = { reason: REVOKED };

const RESET_TO = "seven new grey kettles";

/** Changes something while a request waits to store what refers to a person. */
async function changeDuring<Sent>(
  id: string,
  send: () => Promise<Sent>,
  change: (tx: Transaction) => Promise<unknown>,
): Promise<Sent> {
  const { sent } = await world.sql.begin(async (tx) => {
    await tx`select from auth.users where id = ${id} for update`;
    const sending = send();
    await lockWaits(world.sql, 1);
    await change(tx);
    return { sent: sending };
  });
  return sent;
}

/** Resets a password while a request waits to store what refers to its holder. */
async function resetDuring(id: string, send: () => Promise<Response>): Promise<Response> {
  const passwordHash = await hashPassword(RESET_TO);
  return changeDuring(id, send, (tx) => resetPassword(tx, { id }, passwordHash, "test"));
}

const isIn = async (client: CookieClient) => (await client.get("/ops/me")).status === 200;

describe("without signing in", () => {
  it.each([
    "/ops",
    "/ops/",
    "/ops/people",
    "/ops/audit?before=2",
    "/ops/nothing/here",
    "/ops/ops.css",
    "/ops/%zz",
    "/ops/.env",
  ])("%s leads to the sign-in page", async (path) => {
    const { status, headers } = await world.stranger().get(path);
    expect(status).toBe(302);
    expect(headers.get("location")).toMatch(/^\/ops\/sign-in/);
  });

  it("nothing is done", async () => {
    for (const path of ["/ops/people", "/ops/me/password", "/ops/nothing"]) {
      expect((await world.stranger().post(path, { email: "eve@example.com", role: "admin" })).status).toBe(401);
    }
  });
});

describe("[API2][V6] signing in", () => {
  it("continues to the requested page, below /ops only", async () => {
    await world.makeOperator("ann@example.com", "viewer");
    for (const [to, location] of [
      ["/ops/people?x=1", "/ops/people?x=1"],
      ["https://evil.example/ops", "/ops"],
      ["//evil.example", "/ops"],
      ["/ops\\evil", "/ops"],
      ["/opsevil", "/ops"],
      ["/ops/houses/\u20AC?q=\u00E9", "/ops/houses/%E2%82%AC?q=%C3%A9"],
    ] as const) {
      const ann = world.stranger();
      const { status, headers } = await ann.post("/ops/sign-in", { email: " Ann@Example.com", password: PASSWORD, to });
      expect([status, headers.get("location")]).toEqual([303, location]);
      expect(await isIn(ann)).toBe(true);
    }
    expect(await audited("session.begin", "ann@example.com")).toBe(6);
  });

  it("gives a cookie that scripts do not see and other sites do not send", async () => {
    const { response } = await world.signIn("ann@example.com");
    const [cookie = ""] = response.headers.getSetCookie();
    expect(cookie).toMatch(/^rh_ops\.session_token=/);
    for (const part of ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=43200"]) expect(cookie).toContain(part);
  });

  it("does not reveal who may sign in: unknown, wrong, disabled and a caller alone get the same response", async () => {
    await world.makeOperator("gone@example.com", "viewer");
    await world.sql.begin((tx) => changeDisabled(tx, { email: "gone@example.com" }, { isDisabled: true, by: "test" }));
    await world.makeOperator("caller@example.com", "viewer");
    await world.sql`delete from operators where user_id = (select id from auth.users where email = 'caller@example.com')`;
    const responses = await Promise.all(
      [
        ["nobody@example.com", PASSWORD],
        ["ann@example.com", "not the password"],
        ["gone@example.com", PASSWORD],
        ["caller@example.com", PASSWORD],
        ["not an address", PASSWORD],
        ["ann@example.com", "x".repeat(900)],
        ["", ""],
      ].map(async ([email = "", password = ""]) => {
        const { response, client } = await world.signIn(email, password);
        const text = (await response.text()).replace(/value="[^"]*"/g, "").replace(/req_\w+/, "");
        return { status: response.status, text, cookies: client.cookies.size };
      }),
    );
    for (const each of responses) expect(each).toEqual(responses[0]);
    expect(responses[0]).toMatchObject({ status: 401, cookies: 0 });
    expect(responses[0]!.text).toContain("the e-mail or the password is not right");
    await eventually(async () => (await audited("session.refused", "ann@example.com")) > 0);
    await eventually(async () => (await audited("session.refused", "gone@example.com")) === 1);
  });

  it("takes no longer for a known address, because its records are written after the response", async () => {
    const { sql } = world;
    const holding = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const busy = sql.begin(async (tx) => {
      await tx`select 1 from audit_head for update`;
      held.resolve();
      await holding.promise;
    });
    await held.promise;
    const before = await audited("session.refused", "gone@example.com");
    const { response } = await world.signIn("gone@example.com");
    expect(response.status).toBe(401); // no request waits for the log
    holding.resolve();
    await busy;
    await eventually(async () => (await audited("session.refused", "gone@example.com")) === before + 1);
  });

  it("from one address does not use up the tries that its holder has elsewhere", async () => {
    await world.makeOperator("locked@example.com", "viewer");
    const machine = world.stranger();
    const fields = { email: "locked@example.com", password: "wrong every time" };
    await Promise.all(Array.from({ length: 70 }, () => machine.post("/ops/sign-in", fields)));
    expect((await world.signIn("locked@example.com")).response.status).toBe(303);
  });

  it("is refused for a while after a few wrong tries, also with the right password", async () => {
    await world.makeOperator("forced@example.com", "viewer");
    const forced = world.stranger();
    const statuses: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      statuses.push(
        (await forced.post("/ops/sign-in", { email: "forced@example.com", password: `wrong try ${n}` })).status,
      );
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429, 429]);
    const late = await forced.post("/ops/sign-in", { email: "FORCED@example.com", password: PASSWORD });
    expect(late.status).toBe(429);
    expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(0);
    const { response } = await world.signIn("forced@example.com"); // from elsewhere its holder is not locked out
    expect(response.status).toBe(303);
  });

  it("of a list of accounts from one address is refused after thirty", async () => {
    const machine = world.stranger();
    const statuses = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        machine
          .post("/ops/sign-in", { email: `user${n}@example.com`, password: PASSWORD })
          .then(({ status }) => status),
      ),
    );
    expect(statuses.filter((status) => status === 429)).toHaveLength(10);
  });

  it("is not done by a page of another site", async () => {
    const form = { email: "ann@example.com", password: PASSWORD };
    const evil = "https://evil.example";
    for (const headers of [
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: evil, "sec-fetch-site": "cross-site" },
    ]) {
      expect((await world.stranger().post("/ops/sign-in", form, headers)).status).toBe(403);
    }
    for (const origin of [evil, "null", "http://127.0.0.1:1"]) {
      const response = await fetch(`${world.url}/ops/sign-in`, {
        method: "POST",
        body: new URLSearchParams(form),
        headers: { origin },
        redirect: "manual",
      });
      expect([origin, response.status]).toEqual([origin, 403]);
    }
    // an older browser, or one over plain http, sends no more than this
    const { status } = await fetch(`${world.url}/ops/sign-in`, {
      method: "POST",
      body: new URLSearchParams(form),
      headers: { origin: world.url },
      redirect: "manual",
    });
    expect(status).toBe(303);
  });
});

describe("[V7] a sign-in", () => {
  async function session(email: string) {
    const { client } = await world.signIn(email);
    const [row] = await world.sql<{ id: string }[]>`
      select s.id from auth.sessions s join auth.users u on u.id = s.user_id
      where u.email = ${email} order by s.created_at desc limit 1`;
    return { client, id: row!.id };
  }

  it("ends after twelve hours, after an idle one, and when its holder is disabled", async () => {
    await world.makeOperator("shift@example.com", "viewer");
    const [long, idle, gone] = [
      await session("shift@example.com"),
      await session("shift@example.com"),
      await session("shift@example.com"),
    ];
    const [{ hours }] = await world.sql<[{ hours: number }]>`
      select extract(epoch from expires_at - created_at)::integer as hours from auth.sessions where id = ${long.id}`;
    expect(hours).toBe(12 * 3_600);
    await world.sql`update auth.sessions set expires_at = clock_timestamp() - interval '1 second' where id = ${long.id}`;
    await world.sql`update auth.sessions set seen_at = clock_timestamp() - interval '61 minutes' where id = ${idle.id}`;
    expect([await isIn(long.client), await isIn(idle.client), await isIn(gone.client)]).toEqual([false, false, true]);
    await world.sql.begin((tx) => changeDisabled(tx, { email: "shift@example.com" }, { isDisabled: true, by: "test" }));
    expect(await isIn(gone.client)).toBe(false);
  });

  it("continues while it is used, and its use is recorded", async () => {
    const { client, id } = await session("ann@example.com");
    await world.sql`update auth.sessions set seen_at = clock_timestamp() - interval '59 minutes' where id = ${id}`;
    expect(await isIn(client)).toBe(true);
    const [row] = await world.sql<[{ fresh: boolean }]>`
      select seen_at > clock_timestamp() - interval '1 minute' as fresh from auth.sessions where id = ${id}`;
    expect(row.fresh).toBe(true);
  });

  it("is not begun without an entry in the audit log, whether with a password, a code or a link", async () => {
    const [alone, withCode] = ["full@example.com", "full-code@example.com"];
    const ids = [await world.makeOperator(alone, "viewer"), await world.makeOperator(withCode, "viewer")];
    const { client } = await world.signIn(withCode);
    const enroll = await (await client.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    const secret = /secret: <code>([A-Z2-7]+)<\/code>/.exec(enroll)![1]!;
    expect((await client.post("/ops/me/two-factor/verify", { code: totp(secret) })).status).toBe(303);
    await client.post("/ops/sign-out");
    await forgetUsedCodes(world.sql);
    const token = await makeLocalLink(world.sql, 60);
    await world.sql.unsafe(`
      create function refuse_entry() returns trigger language plpgsql as $$ begin raise exception 'full'; end $$;
      create trigger refuse_entry before insert on audit_log for each row execute function refuse_entry()`);
    const byPassword = await world.signIn(alone);
    const { client: byCode } = await world.signIn(withCode);
    const byLink = world.stranger();
    const statuses = [
      byPassword.response.status,
      (await byCode.post("/ops/sign-in/code", { code: totp(secret) })).status,
      (await byLink.get(`/ops/link?token=${token}`)).status,
    ];
    await world.sql`drop function refuse_entry cascade`;
    expect(statuses).toEqual([500, 500, 500]);
    for (const one of [byPassword.client, byCode, byLink]) expect(one.cookies.has(SESSION_COOKIE)).toBe(false);
    const left = await world.sql`
      select from auth.sessions s join auth.users u on u.id = s.user_id
      where u.id = any(${ids}) or u.email = ${LOCAL_OPERATOR}`;
    expect(left).toHaveLength(0);
  });

  /** Another client with the same cookies, which keeps them. */
  function copyOf(client: CookieClient): CookieClient {
    const copy = world.stranger();
    for (const [name, value] of client.cookies) copy.cookies.set(name, value);
    return copy;
  }

  it("ends when another one begins in the same browser, with a password or a printed link", async () => {
    await world.makeOperator("first@example.com", "viewer");
    const form = { email: "first@example.com", password: PASSWORD };
    const token = await makeLocalLink(world.sql, 60);
    const begins = [
      (client: CookieClient) => client.post("/ops/sign-in", form),
      (client: CookieClient) => client.get(`/ops/link?token=${token}`),
    ];
    for (const [index, begin] of begins.entries()) {
      const { client, id } = await session("first@example.com");
      const copy = copyOf(client);
      expect((await begin(client)).status).toBe(303);
      expect([await isIn(client), await isIn(copy)]).toEqual([true, false]);
      expect(await world.sql`select from auth.sessions where id = ${id}`).toHaveLength(0);
      expect(await audited("session.end", "first@example.com")).toBe(index + 1);
    }
  });

  it("ends when the password of another one with a second factor was right, which takes its cookie off", async () => {
    const email = "anew-code@example.com";
    const userId = await world.makeOperator(email, "viewer");
    const { client } = await world.signIn(email);
    const enroll = await (await client.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    const secret = /secret: <code>([A-Z2-7]+)<\/code>/.exec(enroll)![1]!;
    expect((await client.post("/ops/me/two-factor/verify", { code: totp(secret) })).status).toBe(303);
    await forgetUsedCodes(world.sql);
    const copy = copyOf(client);
    expect((await client.post("/ops/sign-in", { email, password: "not the password" })).status).toBe(401);
    expect([await isIn(client), await isIn(copy)]).toEqual([true, true]);
    expect((await client.post("/ops/sign-in", { email, password: PASSWORD })).status).toBe(303);
    expect([await isIn(client), await isIn(copy)]).toEqual([false, false]);
    expect(await audited("session.end", email)).toBe(1);
    expect((await client.post("/ops/sign-in/code", { code: totp(secret) })).status).toBe(303);
    expect(await isIn(client)).toBe(true);
    expect(await world.sql`select from auth.sessions where user_id = ${userId}`).toHaveLength(1);
  });

  it("is not used by a page that refreshes itself: it ends after an idle hour all the same", async () => {
    const { client, id } = await session("ann@example.com");
    await world.sql`update auth.sessions set seen_at = clock_timestamp() - interval '59 minutes' where id = ${id}`;
    expect((await client.get("/ops/me", { "x-refresh": "1" })).status).toBe(200);
    const [row] = await world.sql<[{ idle: boolean }]>`
      select seen_at < clock_timestamp() - interval '58 minutes' as idle from auth.sessions where id = ${id}`;
    expect(row.idle).toBe(true);
  });

  it("is of /ops alone: one of the console, or one whose cookie was made up, opens nothing", async () => {
    const { id } = await session("ann@example.com");
    await expect(world.sql`update auth.sessions set surface = 'console' where id = ${id}`).rejects.toThrow(
      "session_is_of_its_holders_surface",
    );
    const { client: other } = await session("ann@example.com");
    const cookie = other.cookies.get(SESSION_COOKIE) ?? "";
    const [token = ""] = decodeURIComponent(cookie).split(".");
    other.cookies.set(SESSION_COOKIE, encodeURIComponent(`${token}.${Buffer.alloc(32).toString("base64")}`));
    expect(await isIn(other)).toBe(false);
    other.cookies.set(SESSION_COOKIE, cookie);
    expect(await isIn(other)).toBe(true);
  });

  it("that is being checked ends with all others", async () => {
    const id = await world.makeOperator("kay@example.com", "viewer");
    const late = await changeDuring(
      id,
      () => world.signIn("kay@example.com"),
      (tx) => endAllSessions(tx, { id }),
    );
    expect([late.response.status, await isIn(late.client)]).toEqual([401, false]);
    expect(await refusals("kay@example.com")).toEqual([STALE]);
    expect((await world.signIn("kay@example.com")).response.status).toBe(303);
  });

  it.for(["one", "all"])("that begins while %s sessions are being ended ends with them", async (which) => {
    const email = `${which}-ended@example.com`;
    const id = await world.makeOperator(email, "viewer");
    const { id: sessionId } = await session(email);
    const { late } = await world.sql.begin(async (tx) => {
      if (which === "all") await endAllSessions(tx, { id });
      else expect(await endSession(tx, id, sessionId, "ops")).toBe(true);
      const signingIn = world.signIn(email);
      await lockWaits(world.sql, 1);
      return { late: signingIn };
    });
    expect([(await late).response.status, await isIn((await late).client)]).toEqual([401, false]);
  });

  it("ends with signing out, one by one, and all others together", async () => {
    await world.makeOperator("many@example.com", "viewer");
    const [one, two, three] = [
      await session("many@example.com"),
      await session("many@example.com"),
      await session("many@example.com"),
    ];
    const out = await one.client.post("/ops/sign-out");
    expect([out.status, out.headers.get("location")]).toEqual([303, "/ops/sign-in"]);
    expect(await isIn(one.client)).toBe(false);
    expect(await audited("session.end", "many@example.com")).toBe(1);
    const { id: others } = await session("ann@example.com");
    expect((await two.client.post("/ops/me/sessions/end", { id: others })).status).toBe(422);
    expect((await two.client.post("/ops/me/sessions/end", { id: three.id })).status).toBe(303);
    expect([await isIn(two.client), await isIn(three.client)]).toEqual([true, false]);
    const { client: four } = await session("many@example.com");
    expect((await four.post("/ops/me/sessions/end-others")).status).toBe(303);
    expect([await isIn(two.client), await isIn(four)]).toEqual([false, true]);
    expect(await audited("own.end-session", "many@example.com")).toBe(2);
  });
});

describe("[V6] the reset of a password", () => {
  const sessionsOf = (id: string) => world.sql`select from auth.sessions where user_id = ${id}`;

  it("ends a sign-in whose password was checked before it", async () => {
    const id = await world.makeOperator("ida@example.com", "viewer");
    const thief = world.stranger();
    const fields = { email: "ida@example.com", password: PASSWORD };
    const refused = await resetDuring(id, () => thief.post("/ops/sign-in", fields));
    expect([refused.status, await refused.text()]).toEqual([401, expect.stringContaining(SIGNED_OUT)]);
    expect([await isIn(thief), await sessionsOf(id)]).toEqual([false, []]);
    expect(await audited("session.begin", "ida@example.com")).toBe(0);
    expect(await refusals("ida@example.com")).toEqual([STALE]);
    expect((await world.signIn("ida@example.com", RESET_TO)).response.status).toBe(303);
  });

  it.for(["pending second step", "session whose second factor is turned off"])(
    "ends a %s of before it",
    async (what, { task }) => {
      const email = `${task.id}@example.com`;
      const id = await world.makeOperator(email, "viewer");
      const { client } = await world.signIn(email);
      const page = await (await client.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
      const secret = /secret: <code>([A-Z2-7]+)<\/code>/.exec(page)![1]!;
      const code = /<li><code>(\w{5}-\w{5})<\/code>/.exec(page)![1]!;
      await client.post("/ops/me/two-factor/verify", { code: totp(secret) });
      const isPending = what === "pending second step";
      const thief = isPending ? (await world.signIn(email)).client : client;
      const sent = isPending
        ? () => thief.post("/ops/sign-in/code", { code })
        : () => thief.post("/ops/me/two-factor/disable", { password: PASSWORD, code });
      const ended = await resetDuring(id, sent);
      expect(ended.status).toBe(isPending ? 401 : 409);
      expect([await isIn(thief), await sessionsOf(id)]).toEqual([false, []]);
      expect(await refusals(email)).toEqual(isPending ? [STALE] : []);
      if (isPending) expect(await ended.text()).toContain('name="password"'); // no code is awaited any more
    },
  );
});

describe("a form whose end arrives late", () => {
  const VIEWER = { role: "viewer", was: null, by: "test" } as const;
  const isAdded = async (email: string) => (await world.sql`select from auth.users where email = ${email}`).length > 0;

  it.for([
    ["the sign-in ended", endAllSessions, 401],
    ["the role was taken", (tx: Transaction, who: { email: string }) => changeRole(tx, who, VIEWER), 403],
  ] as const)("does nothing if meanwhile %s", async ([, change, expected], { task }) => {
    const email = `${task.id}@example.com`;
    const userId = await world.makeOperator(email, "admin");
    const { client } = await world.signIn(email);
    const added = { email: `by-${email}`, role: "admin" };
    const held = await holdForm(world.sql, { url: world.url, client, userId }, "/ops/people", added);
    await world.sql.begin((tx) => change(tx, { email }));
    expect((await held.send()).status).toBe(expected);
    expect(await isAdded(added.email)).toBe(false);
  });
});

describe("one's own password", () => {
  it("that is reset while a second factor is turned on keeps its holder's sign-in free of that factor", async () => {
    const email = "uma@example.com";
    const id = await world.makeOperator(email, "viewer");
    const { client: thief } = await world.signIn(email);
    const page = await (await thief.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    const code = totp(/secret: <code>([A-Z2-7]+)<\/code>/.exec(page)![1]!);
    const passwordHash = await hashPassword(RESET_TO);
    const { sent } = await world.sql.begin(async (tx) => {
      await tx`select from audit_head for update`;
      const sending = thief.post("/ops/me/two-factor/verify", { code });
      await lockWaits(world.sql, 1); // the factor is on
      await resetPassword(tx, { id }, passwordHash, "test");
      return { sent: sending };
    });
    expect((await sent).status).toBe(409);
    expect((await world.signIn(email, RESET_TO)).response.headers.get("location")).toBe("/ops");
    expect(await world.sql`select from auth.two_factors where user_id = ${id}`).toEqual([]);
    expect(await audited("own.two-factor", email)).toBe(2);
  });

  it.for([true, false])(
    "is not changed by a request that was proven before a reset (with a password: %s)",
    async (has) => {
      const email = `quin-${has}@example.com`;
      const id = await world.makeOperator(email, "viewer");
      const { client: thief } = await world.signIn(email);
      if (!has) await world.sql`delete from auth.accounts where user_id = ${id}`; // signed in by a link
      const next = "six odd blue kettles";
      const passwordHash = await hashPassword(RESET_TO);
      const { sent } = await world.sql.begin(async (tx) => {
        await resetPassword(tx, { id }, passwordHash, "test");
        const sending = thief.post("/ops/me/password", { current: PASSWORD, next, again: next });
        await lockWaits(world.sql, 1);
        return { sent: sending };
      });
      expect((await sent).status).toBe(409);
      expect((await world.signIn(email, next)).response.status).toBe(401);
      expect((await world.signIn(email, RESET_TO)).response.status).toBe(303);
      expect(await audited("own.password", email)).toBe(0);
    },
  );

  it.for([true, false])("is estimated a few times for a person (with a password: %s)", async (has) => {
    const email = `flo-${has}@example.com`;
    const id = await world.makeOperator(email, "viewer");
    const { client } = await world.signIn(email);
    if (!has) await world.sql`delete from auth.accounts where user_id = ${id}`; // signed in by a link
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) {
      const form = { current: "wrong", next: "password123", again: "password123" };
      statuses.push((await client.post("/ops/me/password", form)).status);
    }
    expect(statuses).toEqual([422, 422, 422, 422, 422, 429]);
  });

  it("requires a code of the second factor, and its holder gets a mail", async () => {
    const email = "fay@example.com";
    await world.makeOperator(email, "viewer");
    const { client: fay } = await world.signIn(email);
    const enroll = await (await fay.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    await fay.post("/ops/me/two-factor/verify", { code: totp(/secret: <code>([A-Z2-7]+)<\/code>/.exec(enroll)![1]!) });
    expect(await (await fay.get("/ops/me")).text()).toContain('id="password-code"');
    const form = { current: PASSWORD, next: RESET_TO, again: RESET_TO };
    expect((await fay.post("/ops/me/password", form)).status).toBe(422);
    const code = /<li><code>(\w{5}-\w{5})<\/code>/.exec(enroll)![1]!;
    expect((await fay.post("/ops/me/password", { ...form, code })).status).toBe(303);
    expect(await world.sql`select from mails where recipient = ${email} and kind = 'password-changed'`).toHaveLength(1);
  });

  it("is changed with the one of now, not to a common one, and ends all other sign-ins", async () => {
    await world.makeOperator("pat@example.com", "viewer");
    const { client: pat } = await world.signIn("pat@example.com");
    const { client: elsewhere } = await world.signIn("pat@example.com");
    const next = "six odd blue kettles";
    const change = (fields: object) =>
      pat.post("/ops/me/password", { current: PASSWORD, next, again: next, ...fields });
    expect((await change({ current: "not it at all" })).status).toBe(422);
    expect((await change({ again: "another one here" })).status).toBe(422);
    const common = await change({ next: "password2026", again: "password2026" });
    expect([common.status, await common.text()]).toEqual([422, expect.stringContaining("easy to guess")]);
    expect((await change({})).status).toBe(303);
    expect([await isIn(pat), await isIn(elsewhere)]).toEqual([true, false]);
    expect((await world.signIn("pat@example.com")).response.status).toBe(401);
    expect((await world.signIn("pat@example.com", next)).response.status).toBe(303);
    expect(await audited("own.password", "pat@example.com")).toBe(1);
  });
});

describe("[V7] one's own sign-ins", () => {
  it("are ended thirty times in ten minutes at most, or a stolen session would keep its holder out", async () => {
    await world.makeOperator("ned@example.com", "viewer");
    const { client: ned } = await world.signIn("ned@example.com");
    const statuses: number[] = [];
    for (let n = 0; n < 30; n += 1) statuses.push((await ned.post("/ops/me/sessions/end", { id: "none" })).status);
    const refused = await ned.post("/ops/me/sessions/end-others");
    expect([new Set(statuses), refused.status]).toEqual([new Set([422]), 429]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  it("last no longer because of a cookie of the library that is not ours", async () => {
    await world.makeOperator("leo@example.com", "viewer");
    const { client: first } = await world.signIn("leo@example.com");
    const enroll = await (await first.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    await first.post("/ops/me/two-factor/verify", {
      code: totp(/secret: <code>([A-Z2-7]+)<\/code>/.exec(enroll)![1]!),
    });
    const { client: leo } = await world.signIn("leo@example.com");
    leo.cookies.set("rh_ops.dont_remember", leo.cookies.get("rh_ops.two_factor")!); // a value of the same signature
    const [, code] = /<li><code>(\w{5}-\w{5})<\/code>/.exec(enroll)!;
    expect((await leo.post("/ops/sign-in/code", { code: code! })).status).toBe(303);
    const long = await world.sql`
      select from auth.sessions s join auth.users u on u.id = s.user_id
      where u.email = 'leo@example.com' and s.expires_at > clock_timestamp() + interval '12 hours'`;
    expect(long).toEqual([]);
  });

  it("that ended while the password was confirmed do nothing more", async () => {
    const email = "max@example.com";
    const id = await world.makeOperator(email, "admin");
    const { client: max } = await world.signIn(email);
    const { sent } = await world.sql.begin(async (tx) => {
      await tx`select from auth.sessions where user_id = ${id} for update`;
      const form = { email: "by-max@example.com", role: "admin", _password: PASSWORD };
      const sending = max.post("/ops/people", form);
      await lockWaits(world.sql, 1);
      await endAllSessions(tx, { id });
      return { sent: sending };
    });
    const response = await sent;
    expect([response.status, await response.text()]).toEqual([403, expect.stringContaining(SIGNED_OUT)]);
    expect(await world.sql`select from auth.users where email = 'by-max@example.com'`).toEqual([]);
  });
});

describe("[V6] a second factor", () => {
  it("is one, however many forms that turn it on are sent at the same time", async () => {
    const id = await world.makeOperator("twin@example.com", "viewer");
    const { client } = await world.signIn("twin@example.com");
    const { sent } = await world.sql.begin(async (tx) => {
      await tx`lock table auth.two_factors in share mode`;
      const sending = [1, 2].map(() => client.post("/ops/me/two-factor/enable", { password: PASSWORD }));
      await lockWaits(world.sql, 2);
      return { sent: sending };
    });
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200, 422]));
    expect(await world.sql`select from auth.two_factors where user_id = ${id}`).toHaveLength(1);
  });

  /** A member of staff who was shown an authenticator; `verify` and `enable` confirm it and begin another one. */
  async function enrolling(email: string) {
    const id = await world.makeOperator(email, "viewer");
    const { client } = await world.signIn(email);
    const enable = () => client.post("/ops/me/two-factor/enable", { password: PASSWORD });
    const secret = /secret: <code>([A-Z2-7]+)<\/code>/.exec(await (await enable()).text())![1]!;
    const verify = () => client.post("/ops/me/two-factor/verify", { code: totp(secret) });
    return { id, client, secret, enable, verify };
  }

  it("is the confirmed one if another one that was begun before is stored after it", async () => {
    const email = "late@example.com";
    const { secret, enable, verify } = await enrolling(email);
    await world.sql.unsafe(`
      create function wait_to_begin() returns trigger language plpgsql as $$
      begin
        perform pg_advisory_xact_lock(1);
        return null;
      end $$;
      create trigger wait_to_begin before update of secret on auth.two_factors
        for each statement execute function wait_to_begin()`);
    const { enabling } = await world.sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(1)`;
      const sending = enable();
      await lockWaits(world.sql, 1);
      expect((await verify()).status).toBe(303);
      return { enabling: sending };
    });
    expect((await enabling).status).toBe(422);
    await world.sql`drop function wait_to_begin cascade`;
    await forgetUsedCodes(world.sql);
    const { client } = await world.signIn(email);
    expect((await client.post("/ops/sign-in/code", { code: totp(secret) })).status).toBe(303);
  });

  it("is off, and its holder signed in, if another one was begun while it was confirmed", async () => {
    const email = "early@example.com";
    const { id, client, enable, verify } = await enrolling(email);
    const { sent } = await world.sql.begin(async (tx) => {
      await tx`select from auth.two_factors where user_id = ${id} for update`; // both read it, then write in their order
      const enabling = enable();
      await lockWaits(world.sql, 1);
      const verifying = verify();
      await lockWaits(world.sql, 2);
      return { sent: [enabling, verifying] };
    });
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([200, 409]);
    expect((await world.signIn(email)).response.headers.get("location")).toBe("/ops");
    expect(await isIn(client)).toBe(true);
    expect(await world.sql`select from auth.two_factors where user_id = ${id}`).toEqual([]);
    expect(await audited("own.two-factor", email)).toBe(0);
  });

  it("ends the other sign-ins when it is turned on, since they began with the password alone", async () => {
    const { id, client, verify } = await enrolling("solo@example.com");
    const { client: thief } = await world.signIn("solo@example.com");
    expect((await verify()).status).toBe(303);
    expect([await isIn(thief), await isIn(client)]).toEqual([false, true]);
    expect(await world.sql`select from auth.sessions where user_id = ${id}`).toHaveLength(1);
  });

  it("is mailed to its holder and every admin when it is on or off, and new backup codes to its holder", async () => {
    const [email, admin] = ["mailed@example.com", "reader@example.com"];
    const id = await world.makeOperator(email, "operator");
    await world.makeOperator(admin, "admin");
    const subjects = async (recipient: string) => {
      const mails = await world.sql<{ subject: string; body: string }[]>`
        select subject, body from mails
        where recipient = ${recipient} and kind in ('second-factor-changed', 'operator-changed')
        order by id`;
      return mails.map(({ subject, body }) => `${subject}: ${body}`.replaceAll(/\s+/g, " "));
    };
    const { client } = await world.signIn(email);
    const enroll = await (await client.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    const secret = /secret: <code>([A-Z2-7]+)<\/code>/.exec(enroll)![1]!;
    const [one, two] = [...enroll.matchAll(/<li><code>(\w{5}-\w{5})<\/code>/g)].map(([, code]) => code!);
    expect([await subjects(email), await subjects(admin)]).toEqual([[], []]); // it is not on yet
    expect((await client.post("/ops/me/two-factor/verify", { code: totp(secret) })).status).toBe(303);
    const on = expect.stringMatching(
      /Your second factor is on: .*have an admin reset your password and second factor now/s,
    );
    const admins = expect.stringMatching(
      /Two-factor authentication of mailed@example\.com was turned on by mailed@example\.com/,
    );
    expect([await subjects(email), await subjects(admin)]).toEqual([[on], [admins]]);
    expect((await subjects(admin))[0]).not.toContain("24 hours");
    // enrolling is the normal way to approve, so it adds no wait
    expect(await world.sql`select from operator_changes where user_id = ${id}`).toHaveLength(0);

    const proof = { password: PASSWORD, code: one! };
    const codes = await client.post("/ops/me/two-factor/codes", proof);
    expect(codes.status).toBe(200);
    expect(await subjects(email)).toEqual([on, expect.stringMatching(/^You have new backup codes: .*have an admin/s)]);
    expect(await subjects(admin)).toHaveLength(1);

    const [fresh] = [...(await codes.text()).matchAll(/<li><code>(\w{5}-\w{5})<\/code>/g)].map(([, code]) => code!);
    expect((await client.post("/ops/me/two-factor/disable", { password: PASSWORD, code: two! })).status).toBe(422);
    expect((await client.post("/ops/me/two-factor/disable", { password: PASSWORD, code: fresh! })).status).toBe(303);
    expect((await subjects(email)).at(-1)).toMatch(/^Your second factor was turned off: .*have an admin/s);
    expect((await subjects(admin)).at(-1)).toMatch(/was turned off by mailed@example\.com\. For 24 hours/);
    expect(await world.sql`select from operator_changes where user_id = ${id}`).toHaveLength(1);
  });

  it("is turned on with a code, asked for at each sign-in, replaced by a backup code once, and turned off", async () => {
    await world.makeOperator("two@example.com", "admin");
    const { client: two } = await world.signIn("two@example.com");
    expect((await two.post("/ops/me/two-factor/enable", { password: "not it at all" })).status).toBe(422);
    const page = await (await two.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    expect(page).toMatch(/<img src="data:image\/svg\+xml;base64,/);
    const secret = /secret: <code>([A-Z2-7]+)<\/code>/.exec(page)![1]!;
    const backup = [...page.matchAll(/<li><code>(\w{5}-\w{5})<\/code>/g)].map(([, code]) => code!);
    expect(backup).toHaveLength(10);
    expect((await two.post("/ops/me/two-factor/verify", { code: "000000" })).status).toBe(422);
    expect((await two.post("/ops/me/two-factor/verify", { code: backup[0]! })).status).toBe(400);
    expect((await two.post("/ops/me/two-factor/verify", { code: totp(secret) })).status).toBe(303);
    await forgetUsedCodes(world.sql);
    expect(await isIn(two)).toBe(true);

    const { client: again, response } = await world.signIn("two@example.com");
    expect(response.headers.get("location")).toBe("/ops/sign-in/code");
    expect(await isIn(again)).toBe(false);
    expect((await again.post("/ops/sign-in/code", { code: "123123" })).status).toBe(401);
    const code = totp(secret);
    expect((await again.post("/ops/sign-in/code", { code, to: "/ops/people" })).headers.get("location")).toBe(
      "/ops/people",
    );
    expect(await isIn(again)).toBe(true);
    const { client: watcher } = await world.signIn("two@example.com");
    expect((await watcher.post("/ops/sign-in/code", { code })).status).toBe(401); // seen over a shoulder
    expect(await isIn(watcher)).toBe(false);
    expect((await again.post("/ops/me/two-factor/enable", { password: PASSWORD })).status).toBe(422);

    const { client: lost } = await world.signIn("two@example.com");
    expect((await lost.post("/ops/sign-in/code", { code: backup[0]! })).status).toBe(303);
    const { client: thief } = await world.signIn("two@example.com");
    expect((await thief.post("/ops/sign-in/code", { code: backup[0]! })).status).toBe(401);

    const off = (fields: Record<string, string>) =>
      again.post("/ops/me/two-factor/disable", { password: PASSWORD, ...fields });
    expect((await off({ code: "000000" })).status).toBe(422);
    expect((await off({ code })).status).toBe(422);
    expect((await off({ code: totp(secret, 1) })).status).toBe(303);
    expect((await world.signIn("two@example.com")).response.headers.get("location")).toBe("/ops");
    expect(await audited("own.two-factor", "two@example.com")).toBe(2);
    // the password once, and the code once while turning on, three times at the second step, twice while turning off
    expect(await audited("session.refused", "two@example.com")).toBe(7);
  });

  it("is recorded as on and off also if the database fails right after the change", async () => {
    const email = "cut@example.com";
    const id = await world.makeOperator(email, "viewer");
    const enter = async () => (await world.signIn(email)).client;
    let recorded = 0;
    const cut = async (send: () => Promise<Response>) => {
      const { sent } = await world.sql.begin(async (tx) => {
        const { sending } = await world.sql.begin(async (audit) => {
          await audit`select from audit_head for update`;
          const begun = send();
          await lockWaits(world.sql, 1); // it is changed
          await tx`select from auth.users where id = ${id} for no key update`;
          return { sending: begun };
        });
        recorded += 1;
        await eventually(async () => (await audited("own.two-factor", email)) === recorded);
        await lockWaits(world.sql, 1);
        await tx`
          select pg_cancel_backend(pid) from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`;
        return { sent: sending };
      });
      return (await sent).status;
    };
    const client = await enter();
    const page = await (await client.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    const secret = /secret: <code>([A-Z2-7]+)<\/code>/.exec(page)![1]!;
    const [one, two] = [...page.matchAll(/<li><code>(\w{5}-\w{5})<\/code>/g)].map(([, code]) => code!);
    expect(await cut(() => client.post("/ops/me/two-factor/verify", { code: totp(secret) }))).toBe(504);
    expect(await audited("own.two-factor", email)).toBe(1);
    const again = await enter();
    expect((await again.post("/ops/sign-in/code", { code: one! })).status).toBe(303);
    const off = { password: PASSWORD, code: two! };
    expect(await cut(() => again.post("/ops/me/two-factor/disable", off))).toBe(504);
    expect(await audited("own.two-factor", email)).toBe(2);
    expect(await world.sql`select what from operator_changes where user_id = ${id}`).toEqual([
      { what: "second-factor" },
    ]);
  });

  it("codes are not guessed: after a few wrong ones the address waits, and elsewhere the account does", async () => {
    await world.makeOperator("guess@example.com", "viewer");
    const { client } = await world.signIn("guess@example.com");
    const page = await (await client.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    const secret = /secret: <code>([A-Z2-7]+)<\/code>/.exec(page)![1]!;
    await client.post("/ops/me/two-factor/verify", { code: totp(secret) });
    await forgetUsedCodes(world.sql);
    const statuses: number[] = [];
    const { client: guesser } = await world.signIn("guess@example.com");
    const guess = (one: CookieClient, n: number) => one.post("/ops/sign-in/code", { code: String(n).padStart(6, "0") });
    for (let n = 0; n < 6; n += 1) statuses.push((await guess(guesser, n)).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
    const { client: other } = await world.signIn("guess@example.com");
    for (let n = 10; n < 15; n += 1) await guess(other, n);
    const { client: third } = await world.signIn("guess@example.com");
    expect((await third.post("/ops/sign-in/code", { code: totp(secret) })).status).toBe(429);
    expect(await audited("session.refused", "guess@example.com")).toBe(10);
  });

  it("codes are not guessed by many at the same time either", async () => {
    const email = "guessed@example.com";
    await world.makeOperator(email, "viewer");
    const { client } = await world.signIn(email);
    const page = await (await client.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    await client.post("/ops/me/two-factor/verify", { code: totp(/secret: <code>([A-Z2-7]+)<\/code>/.exec(page)![1]!) });
    const many: CookieClient[] = [];
    while (many.length < 15) many.push((await world.signIn(email)).client);
    const sent = many.map((one) => one.post("/ops/sign-in/code", { code: "not-a-code" }));
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(statuses.filter((status) => status !== 429)).toEqual(Array(10).fill(401));
  });

  it("code is requested of the user who gave the password, not of another one who is signed in there already", async () => {
    await world.makeOperator("mal@example.com", "viewer");
    await world.makeOperator("vic@example.com", "admin");
    const secrets: string[] = [];
    for (const email of ["mal@example.com", "vic@example.com"]) {
      const { client } = await world.signIn(email);
      const page = await (await client.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
      secrets.push(/secret: <code>([A-Z2-7]+)<\/code>/.exec(page)![1]!);
      await client.post("/ops/me/two-factor/verify", { code: totp(secrets.at(-1)!) });
    }
    await forgetUsedCodes(world.sql);
    const { client: mal } = await world.signIn("mal@example.com");
    await mal.post("/ops/sign-in/code", { code: totp(secrets[0]!) });
    const own = mal.cookies.get(SESSION_COOKIE)!;
    await mal.post("/ops/sign-in", { email: "vic@example.com", password: PASSWORD });
    mal.cookies.set(SESSION_COOKIE, own);
    expect((await mal.post("/ops/sign-in/code", { code: totp(secrets[0]!, 1) })).status).toBe(401);
    expect(await audited("session.refused", "vic@example.com")).toBe(1);
  });

  it("is waited for no longer once the password was reset or the sign-ins were ended", async () => {
    const id = await world.makeOperator("reset@example.com", "viewer");
    const { client } = await world.signIn("reset@example.com");
    const page = await (await client.post("/ops/me/two-factor/enable", { password: PASSWORD })).text();
    const secret = /secret: <code>([A-Z2-7]+)<\/code>/.exec(page)![1]!;
    await client.post("/ops/me/two-factor/verify", { code: totp(secret) });
    await forgetUsedCodes(world.sql);
    const { client: thief } = await world.signIn("reset@example.com");
    const passwordHash = await hashPassword("seven new grey kettles");
    await world.sql.begin((tx) => resetPassword(tx, { id }, passwordHash, "test"));
    expect((await thief.post("/ops/sign-in/code", { code: totp(secret) })).status).toBe(401);
    expect(await isIn(thief)).toBe(false);
  });
});

describe("the one-time link", () => {
  const open = async (token: string) => {
    const client = world.stranger();
    return { client, response: await client.get(`/ops/link?token=${token}`) };
  };

  it("signs the local operator in as admin, once, and HEAD does not use it up", async () => {
    const token = await makeLocalLink(world.sql, 60);
    expect(Buffer.from(token, "base64url")).toHaveLength(32);
    const head = await fetch(`${world.url}/ops/link?token=${token}`, { method: "HEAD" });
    expect(head.status).toBe(405);
    const { client, response } = await open(token);
    expect([response.status, response.headers.get("location")]).toEqual([303, "/ops"]);
    expect(await (await client.get("/ops/me")).text()).toContain("operator@roundhouse.localhost");
    const { client: second, response: refused } = await open(token);
    expect([refused.status, await isIn(second)]).toEqual([401, false]);
    const [kept] = await world.sql<[{ n: number }]>`
      select count(*)::integer as n from sign_in_links where position(${token} in encode(sha256, 'escape')) > 0`;
    expect(kept.n).toBe(0);
    expect(world.lines.filter((line) => line.includes(token))).toEqual([]);
  });

  it("no longer works after its time, after a newer one, or with another token", async () => {
    const late = await makeLocalLink(world.sql, 0);
    expect((await open(late)).response.status).toBe(401);
    const [older, newer] = [await makeLocalLink(world.sql, 60), await makeLocalLink(world.sql, 60)];
    expect((await open(older)).response.status).toBe(401);
    expect((await open(newer)).response.status).toBe(303);
    expect((await open("")).response.status).toBe(401);
    const printed = await makeLocalLink(world.sql, 60);
    await world.sql.begin((tx) => endAllSessions(tx, { email: "operator@roundhouse.localhost" }));
    expect((await open(printed)).response.status).toBe(401);
    expect((await open("x".repeat(300))).response.status).toBe(400);
  });

  it("signs nobody in if all sign-ins are ended meanwhile", async () => {
    const token = await makeLocalLink(world.sql, 60);
    const [local] = await world.sql<{ id: string }[]>`select id from auth.users where email = ${LOCAL_OPERATOR}`;
    const { id } = local!;
    const { response, client } = await changeDuring(
      id,
      () => open(token),
      (tx) => endAllSessions(tx, { id }),
    );
    expect([response.status, await isIn(client)]).toEqual([401, false]);
    expect(await refusals(LOCAL_OPERATOR)).toEqual([STALE]);
  });

  it("is printed again on request, a few times, and of two concurrent uses only one signs in", async () => {
    const before = world.links;
    const asking = world.stranger();
    const statuses = [];
    for (let n = 0; n < 6; n += 1) statuses.push((await asking.post("/ops/link/new")).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    expect(world.links - before).toBe(5);
    const token = await makeLocalLink(world.sql, 60);
    const both = await Promise.all([open(token), open(token), open(token)]);
    expect(both.map(({ response }) => response.status).toSorted((a, b) => a - b)).toEqual([303, 401, 401]);
  });
});

describe("behind https, with required two-factor authentication", () => {
  it("cookies are of this very host and for https, and only one's own page opens before a factor is on", async () => {
    const strict = await openOpsWorld({ settings: { PUBLIC_URL: "https://ops.example" }, requireTwoFactor: true });
    try {
      await strict.makeOperator("ann@example.com", "admin");
      const { client: ann, response } = await strict.signIn("ann@example.com");
      const [cookie = ""] = response.headers.getSetCookie();
      expect(cookie).toMatch(/^__Host-rh_ops\.session_token=.*; Secure/);
      expect((await ann.get("/ops/people")).headers.get("location")).toBe("/ops/me");
      expect((await ann.post("/ops/people", { email: "eve@example.com", role: "admin" })).status).toBe(403);
      expect((await ann.get("/ops/me")).status).toBe(200);
      const post = (headers: Record<string, string>) =>
        fetch(`${strict.url}/ops/sign-in`, {
          method: "POST",
          redirect: "manual",
          body: new URLSearchParams(),
          headers,
        });
      expect((await post({ origin: "https://ops.example" })).status).toBe(401);
      expect((await post({ origin: "https://ops.example.evil" })).status).toBe(403);
    } finally {
      await strict.close();
    }
  });
});
