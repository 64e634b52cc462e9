import { getMigrations } from "better-auth/db/migration";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as common from "../../src/accounts/common-passwords.ts";
import { identityOptions } from "../../src/accounts/identity.ts";
import * as passwords from "../../src/accounts/password.ts";
import { openPgPool } from "../../src/db/pg-pool.ts";
import { createDatabase } from "../support/database.ts";
import { listExamples, runExample } from "../support/examples.ts";

let database: { url: string; drop(): Promise<void> };
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

describe("the tables of identity", () => {
  it.each(["ops", "console"] as const)("are what the library expects of them for the %s", async (surface) => {
    const pool = openPgPool(database.url, { name: "test", schema: "auth", max: 2 });
    try {
      const options = identityOptions(
        {
          secret: "a secret of a test, 32 characters at least",
          surface,
          isSecure: false,
          lastsSeconds: 60,
          mayBegin: () => Promise.resolve(true),
          redeemLink: () => Promise.resolve(null),
          log: pino({ level: "silent" }),
        },
        "http://here",
      );
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

  it("[API4] that cannot be checked holds nobody up, however many come at once", async () => {
    const broken = Array.from({ length: 20 }, () => passwords.isPassword("anything at all", "not a hash"));
    const settled = await Promise.allSettled(broken);
    expect(new Set(settled.map(({ status }) => status))).toEqual(new Set(["rejected"]));
    const kept = await passwords.hashPassword("five rare kettles");
    const good = await Promise.all(Array.from({ length: 12 }, () => passwords.isPassword("five rare kettles", kept)));
    expect(good).toEqual(Array.from({ length: 12 }, () => true));
  });

  it("is the same password where its characters were composed in another way", async () => {
    const kept = await passwords.hashPassword("a caf\u00E9 by the sea");
    expect(await passwords.isPassword("a cafe\u0301 by the sea", kept)).toBe(true);
  });

  it.each([
    "password123",
    "Qwertyuiop",
    "1234567890",
    "iloveyou12",
    "letmein2026",
    "zaq12wsxcde3",
    "1q2w3e4r5t6y",
    "Welcome2027!",
  ])("is not one of those everybody tries: %s", (password) =>
    expect(passwords.passwordProblem(password, "ann@example.com")).toMatch("everybody tries"),
  );

  it.each(["a phrase of my own", "7uGd5HIp2Jxx", "correct horse battery staple", "kettle-orbit-lamp", "xkcd936kettle"])(
    "may be any other: %s",
    (password) => expect(passwords.passwordProblem(password, "ann@example.com")).toBeNull(),
  );

  const sources: [path: string, exports: Record<string, unknown>][] = [
    ["src/accounts/password.ts", passwords],
    ["src/accounts/common-passwords.ts", common],
  ];
  it.each(sources)("has examples that hold: %s", (path, exports) => {
    const claims = listExamples(path).flatMap((example) => runExample(example, exports));
    expect(claims.length).toBeGreaterThan(3);
    for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
  });
});
