import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createOperator } from "../../src/accounts/operators/manage.ts";
import { insertOperator } from "../../src/accounts/operators/operator-store.ts";
import { admitted } from "../../src/accounts/identity/password.ts";
import { hashForTests } from "../support/password-hash.ts";
import { saveAddress } from "../../src/accounts/holders/person-store.ts";
import { eventually } from "../support/eventually.ts";
import type { CookieClient } from "../support/cookie-client.ts";
import { openCookieClient } from "../support/cookie-client.ts";
import { linkTo, mailsTo, plain, tokenOf } from "./mails.ts";
import { type ConsoleWorld, openConsoleWorld, PASSWORD } from "./world.ts";

const NEW = "seven blue spoons";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await openConsoleWorld({ variables: { PUBLIC_URL: "https://roundhouse.example" } });
});
afterAll(() => world.close());

const isIn = async (client: CookieClient) => (await client.get("/console/security")).status === 200;

async function makeOperator(email: string): Promise<void> {
  const passwordHash = await hashForTests(PASSWORD);
  await world.sql.begin((tx) => insertOperator(tx, { email, role: "admin", passwordHash, by: "test" }));
}

/** Asks for a new password and gives the link's token. */
async function forget(email: string): Promise<string> {
  const before = (await mailsTo(world.sql, email)).length;
  expect((await world.stranger().post("/console/forgot", { email })).status).toBe(200);
  await eventually(async () => (await mailsTo(world.sql, email)).length > before);
  return tokenOf(await linkTo(world.sql, email, "reset"));
}

const reset = (token: string, next = NEW, again = next) =>
  world.stranger().post("/console/reset", { token, next, again });

describe("[API2][V6] signing in at the console", () => {
  it("continues to the requested page, below /console only", async () => {
    const { userId } = await world.makeHolder("ann@example.com");
    const wanted = await world.stranger().get("/console/security?x=1");
    expect(wanted.headers.get("location")).toBe("/console/sign-in?to=%2Fconsole%2Fsecurity%3Fx%3D1");
    for (const [to, location] of [
      ["/console/security?x=1", "/console/security?x=1"],
      ["https://evil.example/console", "/console"],
      ["//evil.example", "/console"],
      ["/consoles", "/console"],
    ] as const) {
      const ann = world.stranger();
      const { status, headers } = await ann.post("/console/sign-in", {
        email: "Ann@Example.com",
        password: PASSWORD,
        to,
      });
      expect([status, headers.get("location")]).toEqual([303, location]);
      expect(await isIn(ann)).toBe(true);
    }
    const noted = world.lines.filter((line) => line.includes("a sign-in at /console began"));
    expect([noted.length, noted.every((line) => line.includes(userId))]).toEqual([4, true]);
  });

  it("sets only cookies that no other host can set", async () => {
    const fields = { email: "host@example.com", password: PASSWORD, terms: "on", adult: "on" };
    const signedUp = await world.stranger().post("/console/sign-up", fields);
    const { client, response } = await world.signIn((await world.makeHolder("hosted@example.com")).email);
    const signedOut = await client.post("/console/sign-out");
    const lines = [signedUp, response, signedOut].flatMap(({ headers }) => headers.getSetCookie());
    const names = lines.map((line) => /^[^=]+/.exec(line)?.[0]);
    for (const name of ["sign_up", "device", "flash"]) expect(names).toContain(`__Host-rh_console_${name}`);
    expect(lines.filter((line) => !/^__Host-.*; Path=\/;.*; Secure/.test(line))).toEqual([]);
  });

  it("gives a cookie for two weeks, for https and this host, that scripts do not see and other sites do not send", async () => {
    const { response } = await world.signIn("ann@example.com");
    const [cookie = ""] = response.headers.getSetCookie();
    expect(cookie).toMatch(/^__Host-rh_console\.session_token=/);
    for (const part of ["HttpOnly", "SameSite=Lax", "Path=/", "Secure", "Max-Age=1209600"])
      expect(cookie).toContain(part);
    expect(cookie).not.toContain("Domain");
  });

  it("does not reveal who is known: unknown, wrong, unproven and no address get the same response", async () => {
    await world.makeHolder("unproven@example.com");
    await world.sql`update auth.users set email_verified = false where email = 'unproven@example.com'`;
    const responses = await Promise.all(
      [
        ["nobody@example.com", PASSWORD],
        ["ann@example.com", "not the password"],
        ["unproven@example.com", PASSWORD],
        ["not an address", PASSWORD],
        ["", ""],
      ].map(async ([email = "", password = ""]) => {
        const { response, client } = await world.signIn(email, password);
        const text = (await plain(response)).replaceAll(/value="[^"]*"/g, "");
        return { status: response.status, text, cookies: client.cookies.size };
      }),
    );
    for (const each of responses) expect(each).toEqual(responses[0]);
    expect(responses[0]).toMatchObject({ status: 401, cookies: 0 });
  });

  it("is refused for a while after a few wrong tries, from there", async () => {
    await world.makeHolder("forced@example.com");
    const forced = world.stranger();
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) {
      const response = await forced.post("/console/sign-in", {
        email: "forced@example.com",
        password: `wrong try ${n}`,
      });
      statuses.push(response.status);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
    expect((await forced.post("/console/sign-in", { email: "FORCED@example.com", password: PASSWORD })).status).toBe(
      429,
    );
    expect((await world.signIn("forced@example.com")).response.status).toBe(303);
  });

  it("[API4] responds with a page that says when to try again while too many passwords wait to be hashed", async () => {
    const { email } = await world.makeHolder("flooded@example.com");
    const kept = await hashForTests(PASSWORD);
    let isOver = false;
    const flood = Array.from({ length: 250 }, async () => {
      while (!isOver) await admitted.verify({ password: PASSWORD, hash: kept });
    });
    const { response } = await world.signIn(email).finally(() => (isOver = true));
    await Promise.all(flood);
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("5");
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const text = await response.text();
    expect(text).toContain("Not available right now</h1>");
    expect(text).toContain("Too many passwords are being checked. Try again in a few seconds.");
    expect(text).not.toContain(PASSWORD);
    expect((await world.signIn(email)).response.status).toBe(303);
  });

  it("[API5] opens nothing at /ops, nor a sign-in of /ops anything here", async () => {
    await world.makeHolder("opal@example.com");
    const { client } = await world.signIn("opal@example.com");
    const cookie = [...client.cookies].find(([name]) => name.includes("session_token"))!;
    await expect(world.sql`update auth.sessions set surface = 'ops'`).rejects.toThrow(
      "session_is_of_its_holders_surface",
    );
    expect(cookie[0]).toBe("__Host-rh_console.session_token");
  });

  it("[V7] ends after two weeks, after three days without use, and with signing out", async () => {
    await world.makeHolder("ends@example.com");
    const begin = async () => {
      const { client } = await world.signIn("ends@example.com");
      const [row] = await world.sql<{ id: string }[]>`
        select s.id from auth.sessions s join auth.users u on u.id = s.user_id
        where u.email = 'ends@example.com' order by s.created_at desc limit 1`;
      return { client, id: row!.id };
    };
    const [old, idle, used, left] = [await begin(), await begin(), await begin(), await begin()];
    await world.sql`update auth.sessions set expires_at = now() where id = ${old.id}`;
    await world.sql`update auth.sessions set seen_at = now() - interval '3 days' where id = ${idle.id}`;
    await world.sql`update auth.sessions set seen_at = now() - interval '2 days' where id = ${used.id}`;
    const isSeen = async () =>
      (
        await world.sql`select seen_at > now() - interval '1 minute' as seen from auth.sessions where id = ${used.id}`
      )[0];
    expect((await used.client.get("/console", { "x-refresh": "1" })).status).toBe(200); // a page that refreshes itself
    expect(await isSeen()).toEqual({ seen: false });
    expect([await isIn(old.client), await isIn(idle.client), await isIn(used.client)]).toEqual([false, false, true]);
    expect(await isSeen()).toEqual({ seen: true });
    const kept = new Map(left.client.cookies);
    expect((await left.client.post("/console/sign-out")).headers.get("location")).toBe("/console/sign-in");
    for (const [name, value] of kept) left.client.cookies.set(name, value);
    expect(await isIn(left.client)).toBe(false); // it ended here, not only in the browser
  });
});

describe("[V6] a forgotten password", () => {
  it("is set with the newest link, once, and every sign-in ends with it", async () => {
    await world.makeHolder("fay@example.com");
    const { client } = await world.signIn("fay@example.com");
    const first = await forget("fay@example.com");
    const token = await forget("fay@example.com");
    expect((await world.stranger().get(`/console/reset?token=${first}`)).status).toBe(410);
    expect((await reset(first)).status).toBe(410);
    expect((await world.stranger().get(`/console/reset?token=${token}`)).status).toBe(200);
    expect((await reset(token, NEW, "another")).status).toBe(422);
    expect((await reset(token, "password123")).status).toBe(422);
    expect((await reset(token, "fay@example.com")).status).toBe(422);
    expect(await isIn(client)).toBe(true);
    expect((await reset(token)).headers.get("location")).toBe("/console/sign-in");
    expect(await isIn(client)).toBe(false);
    expect((await reset(token)).status).toBe(410);
    expect((await world.signIn("fay@example.com")).response.status).toBe(401);
    expect((await world.signIn("fay@example.com", NEW)).response.status).toBe(303);
    expect((await mailsTo(world.sql, "fay@example.com")).at(-1)!.kind).toBe("password-changed");
    const [entry] = await world.sql`select actor, after from audit_log where action = 'own.reset-password'`;
    expect(entry).toMatchObject({
      actor: expect.stringMatching(/^account \d+$/) as string,
      after: { sessions_ended: 1 },
    });
  });

  it("is not set by two concurrent requests with one link", async () => {
    await world.makeHolder("twice@example.com");
    const token = await forget("twice@example.com");
    const both = await Promise.all([reset(token, "seven blue spoons"), reset(token, "eight blue spoons")]);
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 410]);
  });

  it("has a link that works for an hour, and as nothing else", async () => {
    await world.makeHolder("slow@example.com");
    const token = await forget("slow@example.com");
    expect((await world.stranger().get(`/console/new-email?token=${token}`)).status).toBe(410);
    expect((await world.stranger().post("/console/new-email", { token, password: PASSWORD })).status).toBe(410);
    await world.sql`update mail_tokens set expires_at = clock_timestamp() where used_at is null`;
    expect((await reset(token)).status).toBe(410);
    const rows = JSON.stringify([...(await world.sql`select * from mail_tokens`)]);
    expect(rows).not.toContain(token);
  });

  it("gets the same response whether the address is known, unknown or an operator's, who gets no link", async () => {
    await world.makeHolder("known@example.com");
    await makeOperator("boss@example.com");
    const responses: unknown[] = [];
    for (const email of ["known@example.com", "unknown@example.com", "boss@example.com"]) {
      const client = world.stranger();
      const response = await client.post("/console/forgot", { email });
      responses.push({ status: response.status, text: await plain(response), cookies: client.cookies.size });
    }
    expect(responses[1]).toEqual(responses[0]);
    expect(responses[2]).toEqual(responses[0]);
    await eventually(async () => (await mailsTo(world.sql, "known@example.com")).length === 1);
    expect(await mailsTo(world.sql, "boss@example.com")).toEqual([]); // an admin resets an operator's password
    expect(await mailsTo(world.sql, "unknown@example.com")).toEqual([]);
  });

  it("[DATABASE-ROLES] is of holders alone: an operator has another address and does not sign in here", async () => {
    await makeOperator("watcher@example.com");
    expect((await world.signIn("watcher@example.com")).response.status).toBe(401);
    await world.makeHolder("caller@example.com");
    const made = await world.sql.begin((tx) =>
      createOperator(tx, { email: "caller@example.com", role: "viewer", passwordHash: "x", by: "test" }),
    );
    expect(made).toMatchObject({ ok: false, problem: expect.stringContaining("holds no account") as string });
  });

  it("is chosen with no link that went to an address that is theirs no more", async () => {
    const { userId } = await world.makeHolder("left@example.com");
    const token = await forget("left@example.com");
    await world.sql.begin((tx) => saveAddress(tx, userId, "moved@example.com")); // the link was written a moment later
    expect((await reset(token)).status).toBe(410);
    expect((await world.signIn("moved@example.com")).response.status).toBe(303);
  });

  it("is asked for though others have had us write to the address for something else", async () => {
    await world.makeHolder("kept-out@example.com");
    for (let n = 0; n < 6; n += 1) {
      const others = openCookieClient(world.url, `203.0.113.${100 + n}`);
      const fields = { email: "kept-out@example.com", password: NEW, terms: "on", adult: "on" };
      expect((await others.post("/console/sign-up", fields)).status).toBe(n < 5 ? 200 : 429);
    }
    expect(await forget("kept-out@example.com")).not.toBe("");
  });

  it("is asked for a few times an hour at most", async () => {
    await world.makeHolder("often@example.com");
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) {
      const client = openCookieClient(world.url, `203.0.113.${n}`);
      const email = n % 2 === 0 ? "Often@example.com" : `often+${n}@example.com`; // one mailbox
      statuses.push((await client.post("/console/forgot", { email })).status);
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  });
});
