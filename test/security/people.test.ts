import pino from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Identity, openIdentity } from "../../src/accounts/identity/identity.ts";
import { carryOverFactors } from "../../src/accounts/identity/secret-change-store.ts";
import { type ConsoleWorld, openConsoleWorld, PASSWORD } from "../console/world.ts";
import { linkTo, tokenOf } from "../console/mails.ts";
import { totp } from "../ops/totp.ts";

const OLD = "the secret that was stolen";
const NEW = "the secret that only we have";
const EMAIL = "zoe@example.com";

let world: ConsoleWorld;
const opened: Identity[] = [];
beforeAll(async () => {
  world = await openConsoleWorld();
  await world.makeHolder(EMAIL);
});
afterAll(async () => {
  await Promise.all(opened.map((identity) => identity.close()));
  await world.close();
});

/** Knows people by a secret, as a process that was started with it does. */
function startedWith(secret: string): Identity {
  const identity = openIdentity({
    databaseUrl: world.databaseUrl,
    secret,
    surface: "console",
    isSecure: false,
    lastsSeconds: 1_000,
    mayBegin: () => Promise.resolve(true),
    redeemLink: () => Promise.resolve(null),
    log: pino({ level: "silent" }),
  });
  opened.push(identity);
  return identity;
}

async function signIn(identity: Identity): Promise<{ cookie: string; body: unknown }> {
  const requester = { cookie: "", address: "198.51.100.1", userAgent: "" };
  const { body, cookies } = await identity.ask("/sign-in/email", { email: EMAIL, password: PASSWORD }, requester);
  return { body, cookie: cookies.map((line) => line.split(";")[0]).join("; ") };
}

/** Signs in with password and code. */
async function secondStep(identity: Identity, kind: "totp" | "backup-code", code: string) {
  const { body, cookie } = await signIn(identity);
  expect(body).toMatchObject({ twoFactorRedirect: true });
  const requester = { cookie, address: "198.51.100.1", userAgent: "" };
  const response = await identity.ask(`/two-factor/verify-${kind}`, { code }, requester);
  return { isPassed: response.status === 200, cookie: response.cookies.map((line) => line.split(";")[0]).join("; ") };
}

it("[ROTATION] another AUTH_SECRET ends every sign-in and, with the previous one given, no second factor", async () => {
  const before = startedWith(OLD);
  const { cookie } = await signIn(before);
  const requester = { cookie, address: "198.51.100.1", userAgent: "" };
  const { body } = await before.ask("/two-factor/enable", { password: PASSWORD }, requester);
  const { totpURI, backupCodes } = body as { totpURI: string; backupCodes: string[] };
  const secret = new URL(totpURI).searchParams.get("secret") ?? "";
  expect((await before.ask("/two-factor/verify-totp", { code: totp(secret) }, requester)).status).toBe(200);
  const signedIn = await secondStep(before, "totp", totp(secret));
  expect(await before.findSession(signedIn.cookie)).not.toBeNull();

  const after = startedWith(NEW);
  expect(await after.findSession(signedIn.cookie)).toBeNull();
  expect(await secondStep(after, "totp", totp(secret))).toMatchObject({ isPassed: false });

  expect(await carryOverFactors(world.sql, NEW, OLD)).toEqual({ carried: 1, unreadable: 0 });
  expect(await carryOverFactors(world.sql, NEW, OLD)).toEqual({ carried: 0, unreadable: 0 }); // twice is once
  expect(await secondStep(after, "totp", totp(secret))).toMatchObject({ isPassed: true });
  expect(await secondStep(after, "backup-code", backupCodes[0] ?? "")).toMatchObject({ isPassed: true });
  expect(await secondStep(after, "backup-code", backupCodes[0] ?? "")).toMatchObject({ isPassed: false });
  // the old secret decrypts nothing any more
  expect(await secondStep(before, "totp", totp(secret))).toMatchObject({ isPassed: false });
  const stranger = "a secret that was never any of theirs";
  expect(await carryOverFactors(world.sql, stranger, OLD)).toEqual({ carried: 0, unreadable: 1 });
  expect(await secondStep(after, "totp", totp(secret))).toMatchObject({ isPassed: true });
});

it("[API3] a form changes what it is for, whatever else is sent with it", async () => {
  const everything = {
    role: "admin",
    id: "1",
    user_id: "1",
    accountId: "1",
    account_id: "1",
    verified: "1",
    email_verified: "true",
    emailVerified: "true",
    verified_at: "2020-01-01",
    terms_version: "1",
    termsVersion: "1",
    balance: "1000000",
    plan: "Max",
    suspended: "",
    twoFactorEnabled: "false",
    surface: "ops",
    __proto__x: "1",
    "constructor[prototype][role]": "admin",
  };
  const email = "eager@example.com";
  const client = world.stranger();
  const asked = { ...everything, email, password: PASSWORD, terms: "on", adult: "on" };
  expect((await client.post("/console/sign-up", asked)).status).toBeLessThan(500);
  const link = await linkTo(world.sql, email, "confirm");
  const confirmed = { ...everything, token: tokenOf(link), password: PASSWORD };
  expect((await client.post("/console/confirm", confirmed)).status).toBe(303);
  const { client: again } = await world.signIn(email);
  expect((await again.post("/console/keys", { ...everything, name: "server" })).status).toBe(200);
  const [row] = await world.sql`
    select
      (select count(*)::integer from operators) as operators,
      (select count(*)::integer from entitlements) as entitlements,
      (select count(*)::integer from ledger_entries) as entries,
      (select count(*)::integer from keys k where k.account_id = a.id) as keys,
      (select count(*)::integer from consents c where c.account_id = a.id and c.version = '1') as versions,
      a.id <> 1 as "ownId",
      a.verified_at > '2026-01-01' as "verifiedNow"
    from accounts a
    where a.email = ${email}`;
  expect(row).toEqual({
    operators: 0,
    entitlements: 0,
    entries: 0,
    keys: 1,
    versions: 0,
    ownId: true,
    verifiedNow: true,
  });
  const sessions = await world.sql`
    select distinct s.surface from auth.sessions s join auth.users u on u.id = s.user_id where u.email = ${email}`;
  expect([...sessions]).toEqual([{ surface: "console" }]);
});
