import { getMigrations } from "better-auth/db/migration";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identityOptions, openIdentity } from "../../src/accounts/identity/identity.ts";
import * as passwords from "../../src/accounts/identity/password.ts";
import { openPgPool } from "../../src/db/connections/pg-pool.ts";
import { createDatabase } from "../support/database.ts";
import { hashForTests } from "../support/password-hash.ts";

const PARTS = {
  secret: "a secret of a test, 32 characters at least",
  surface: "console",
  isSecure: false,
  lastsSeconds: 60,
  mayBegin: () => Promise.resolve(true),
  redeemLink: () => Promise.resolve(null),
  log: pino({ level: "silent" }),
} as const;

let database: { url: string; drop(): Promise<void> };
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

describe("the tables of identity", () => {
  it.each(["ops", "console"] as const)("are what the library expects of them for the %s", async (surface) => {
    const pool = openPgPool(database.url, { name: "test", schema: "auth", max: 2 });
    try {
      const options = identityOptions({ ...PARTS, surface }, "http://here");
      const { toBeCreated, toBeAdded } = await getMigrations({ ...options, database: pool });
      expect({ toBeCreated, toBeAdded }).toEqual({ toBeCreated: [], toBeAdded: [] });
    } finally {
      await pool.end();
    }
  });
});

describe("[V6] a password", () => {
  it("is kept as argon2id with the parameters of OWASP, salted", async () => {
    const [one, two] = await Promise.all([
      passwords.hashPassword("five rare kettles"),
      passwords.hashPassword("five rare kettles"),
    ]);
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(one).not.toBe(two);
    expect(await passwords.isPassword("five rare kettles", one)).toBe(true);
    expect(await passwords.isPassword("five rare kettlez", one)).toBe(false);
  });

  it("[API4] that cannot be checked delays no one, however many arrive at the same time", async () => {
    const broken = Array.from({ length: 20 }, () => passwords.isPassword("anything at all", "not a hash"));
    const settled = await Promise.allSettled(broken);
    expect(new Set(settled.map(({ status }) => status))).toEqual(new Set(["rejected"]));
    const kept = await passwords.hashPassword("five rare kettles");
    const good = await Promise.all(Array.from({ length: 12 }, () => passwords.isPassword("five rare kettles", kept)));
    expect(good).toEqual(Array.from({ length: 12 }, () => true));
  });

  it("[API4] is refused while two hundred others wait, and the library is not asked", async () => {
    const kept = await hashForTests("five rare kettles");
    const identity = openIdentity({ databaseUrl: database.url, ...PARTS });
    try {
      const many = Array.from({ length: 204 }, () => passwords.isPassword("five rare kettles", kept));
      await expect(passwords.isPassword("five rare kettles", kept)).rejects.toThrow(passwords.TooManyPasswordsError);
      const requester = { cookie: "", address: "192.0.2.1", userAgent: "" };
      const asked = identity.ask("/sign-in/email", {}, requester);
      await expect(asked).rejects.toThrow(passwords.TooManyPasswordsError);
      expect(await identity.ask("/sign-out", {}, requester)).toMatchObject({ status: 200 });
      expect(new Set(await Promise.all(many))).toEqual(new Set([true]));
      expect(await passwords.isPassword("five rare kettles", kept)).toBe(true);
    } finally {
      await identity.close();
    }
  });

  it("is the same password if its characters were composed in another way", async () => {
    const kept = await passwords.hashPassword("a caf\u00E9 by the sea");
    expect(await passwords.isPassword("a cafe\u0301 by the sea", kept)).toBe(true);
  });

  it.each([
    "password123",
    "Passw0rd!2027",
    "Qwertyuiop",
    "1234567890",
    "iloveyou12",
    "iloveyou4ever",
    "letmein2026",
    "letmeinletmein",
    "zaq12wsxcde3",
    "1q2w3e4r5t6y",
    "Welcome2027!",
    "abcabcabcabc",
    "hallo12345",
    "christopher",
    "7894561230",
    "password".repeat(16),
    "Roundhouse2027",
    "ExampleAnnie1",
  ])("is refused when it is easy to guess: %s", async (password) =>
    expect(await passwords.passwordProblem(password, "annie@example.com")).toMatch("easy to guess"),
  );

  it.each([
    "a phrase of my own",
    "five rare green kettles",
    "7uGd5HIq2Kxw",
    "correct horse battery staple",
    "kettle-orbit-lamp",
    "xkcd936kettle",
  ])("is accepted when it is not: %s", async (password) =>
    expect(await passwords.passwordProblem(password, "ann@example.com")).toBeNull(),
  );

  it.each([
    ["short", "expected a password of at least 10 characters, got 5"],
    ["x".repeat(129), "expected a password of at most 128 characters"],
    ["Annie@Example.com", "expected a password that is not the e-mail address; choose another"],
    ["annieannie12", "expected a password that is not the e-mail address; choose another"],
  ])("is refused when it is too short, too long or the address: %s", async (password, problem) =>
    expect(await passwords.passwordProblem(password, "annie@example.com")).toBe(problem),
  );
});
