import { Redis } from "ioredis";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeMail } from "../../src/accounts/holders/mail-limits.ts";
import { noteFailure, takeTry } from "../../src/accounts/identity/tries.ts";
import { type Buckets, openBuckets } from "../../src/limits/buckets.ts";
import { type ConsoleWorld, openConsoleWorld } from "../console/world.ts";
import { forgetUsedCodes, totp } from "../ops/totp.ts";
import { openOpsWorld, type OpsWorld, PASSWORD } from "../ops/world.ts";
import { createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import type { CookieClient } from "../support/cookie-client.ts";

let holders: ConsoleWorld;
let operators: OpsWorld;
beforeAll(async () => {
  holders = await openConsoleWorld();
  operators = await openOpsWorld();
});
afterAll(async () => {
  await holders.close();
  await operators.close();
});

/** A surface, a person of it, and where their second factor is turned on. */
const SURFACES = [
  {
    surface: "console",
    own: "/console/security",
    world: () => holders,
    make: (email: string) => holders.makeHolder(email),
  },
  {
    surface: "ops",
    own: "/ops/me",
    world: () => operators,
    make: (email: string) => operators.makeOperator(email, "admin"),
  },
] as const;

const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Another character that, at the end of 32 encoded bytes, decodes to the same bytes. */
const lastBitChanged = (character: string): string => BASE64URL[BASE64URL.indexOf(character) ^ 1]!;

describe.each(SURFACES)("an account of $surface", ({ surface, own, world, make }) => {
  const signIn = (client: CookieClient, email: string, password = PASSWORD) =>
    client.post(`/${surface}/sign-in`, { email, password });

  /** Wrong passwords from a dozen addresses, as many as an account takes in an hour. */
  async function lockFromElsewhere(email: string): Promise<void> {
    for (let n = 0; n < 12; n += 1) {
      const machine = world().stranger();
      await Promise.all(Array.from({ length: 5 }, (_, m) => signIn(machine, email, `wrong ${n} ${m}`)));
    }
    expect((await signIn(world().stranger(), email)).status).toBe(429);
  }

  /** Turns a second factor on; gives its secret. */
  async function enroll(client: CookieClient): Promise<string> {
    const page = await (await client.post(`${own}/two-factor/enable`, { password: PASSWORD })).text();
    const secret = /secret: <code>([A-Z2-7]+)</.exec(page)![1]!;
    await client.post(`${own}/two-factor/verify`, { code: totp(secret) });
    await forgetUsedCodes(world().sql);
    return secret;
  }

  const guess = async (email: string, codes: number) => {
    const { client } = await world().signIn(email);
    for (let n = 0; n < codes; n += 1) await client.post(`/${surface}/sign-in/code`, { code: `00000${n}` });
  };

  const warnings = async (email: string) => {
    const mails = await world().sql<{ body: string }[]>`
      select body from mails where kind = 'second-factor-guessed' and recipient = ${email}`;
    return mails.map(({ body }) => body);
  };

  it("[LOCKOUT] is locked by wrong passwords from elsewhere, but not for a device that signed in before", async () => {
    for (const name of ["ann", "bob"]) await make(`${name}@example.com`);
    const { client: known } = await world().signIn("ann@example.com");
    const { client: other } = await world().signIn("bob@example.com");
    await known.post(`/${surface}/sign-out`);
    await lockFromElsewhere("ann@example.com");
    expect((await signIn(other, "ann@example.com")).status).toBe(429); // known, but for another person
    const forged = world().stranger();
    for (const [name, value] of known.cookies) forged.cookies.set(name, value.replace(/.$/, lastBitChanged));
    expect((await signIn(forged, "ann@example.com")).status).toBe(429);
    expect((await signIn(known, "ann@example.com")).status).toBe(303);
  });

  it("[LOCKOUT] is not guessed through a known device: it has its own few attempts", async () => {
    await make("eve@example.com");
    const { client: known } = await world().signIn("eve@example.com");
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) statuses.push((await signIn(known, "eve@example.com", `wrong ${n}`)).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
  });

  it("[LOCKOUT] has its holder mailed, once, when codes of the second factor are guessed", async () => {
    await make("zoe@example.com");
    await enroll((await world().signIn("zoe@example.com")).client);
    await guess("zoe@example.com", 2); // mistyped
    expect(await warnings("zoe@example.com")).toEqual([]);
    await guess("zoe@example.com", 3);
    expect(await warnings("zoe@example.com")).toEqual([expect.stringContaining(own)]);
  });

  it("[LOCKOUT] whose codes are guessed takes none from elsewhere, and still one from a device that is known", async () => {
    await make("uma@example.com");
    const { client: known } = await world().signIn("uma@example.com");
    const secret = await enroll(known);
    for (let n = 0; n < 2; n += 1) await guess("uma@example.com", 5);
    const { client: unknown } = await world().signIn("uma@example.com");
    expect((await unknown.post(`/${surface}/sign-in/code`, { code: totp(secret) })).status).toBe(429);
    await signIn(known, "uma@example.com");
    expect((await known.post(`/${surface}/sign-in/code`, { code: totp(secret) })).status).toBe(303);
  });
});

const SITE = "2001:db8:7";

/** Runs with limits in memory, as without Redis. */
async function withBuckets(run: (buckets: Buckets) => Promise<void>): Promise<void> {
  const buckets = openBuckets(undefined, pino({ level: "silent" }));
  await run(buckets);
  buckets.close();
}

describe("a lock", () => {
  it("[LOCKOUT] is not earned for an account by one holder of IPv6 addresses, who has many networks", () =>
    withBuckets(async (buckets) => {
      const attempt = { what: "ops", who: "ann@example.com" };
      let tries = 0;
      for (let n = 1; n <= 20; n += 1) {
        const own = { ...attempt, address: `${SITE}:${n}::1` };
        while ((await takeTry(buckets, own)) === 0) {
          await noteFailure(buckets, own);
          tries += 1;
        }
      }
      expect(tries).toBe(20);
      expect(await takeTry(buckets, { ...attempt, address: `${SITE}:ffff::1` })).toBeGreaterThan(0);
      expect(await takeTry(buckets, { ...attempt, address: "2001:db8:8::1" })).toBe(0);
      expect(await takeTry(buckets, { ...attempt, address: "203.0.113.9" })).toBe(0);
    }));

  it("[LOCKOUT] of a list of accounts is for all networks of a holder of IPv6 addresses", () =>
    withBuckets(async (buckets) => {
      let tries = 0;
      for (let n = 0; n < 200; n += 1) {
        const attempt = { what: "ops", who: `user-${n}@example.com`, address: `${SITE}:${n}::1` };
        if ((await takeTry(buckets, attempt)) === 0) tries += 1;
      }
      expect(tries).toBe(120);
    }));

  it("[LOCKOUT] of mails is for all networks of a holder of IPv6 addresses", () =>
    withBuckets(async (buckets) => {
      let mails = 0;
      for (let n = 0; n < 60; n += 1) {
        const mail = { purpose: "sign-up", recipient: `user-${n}@example.com` } as const;
        if ((await takeMail(buckets, `${SITE}:${n}::1`, mail)) === 0) mails += 1;
      }
      expect(mails).toBe(40);
      const mail = { purpose: "sign-up", recipient: "user-0@example.com" } as const;
      expect(await takeMail(buckets, "203.0.113.9", mail)).toBe(0);
    }));

  it("[LOCKOUT] of an address stores nothing more about the accounts that it names", () =>
    withBuckets(async (buckets) => {
      const names: string[] = [];
      const counted: Buckets = {
        ...buckets,
        draw: (name, size) => (names.push(name), buckets.draw(name, size)),
        look: (name, size) => (names.push(name), buckets.look(name, size)),
      };
      const attempt = (n: number) => ({ what: "console", address: "203.0.113.9", who: `user-${n}@example.com` });
      for (let n = 0; n < 30; n += 1) expect(await takeTry(counted, attempt(n))).toBe(0);
      names.length = 0;
      for (let n = 30; n < 40; n += 1) expect(await takeTry(counted, attempt(n))).toBeGreaterThan(0);
      expect(new Set(names).size).toBe(1);
    }));

  it("[LOCKOUT] grows when it is earned again", async () => {
    const { url } = await createRedis();
    const redis = new Redis(url);
    const attempt = { what: "console", address: "198.51.100.7", who: "ann@example.com" };
    const waits: number[] = [];
    /** Tries until there is none left, as if the time of some limits, in seconds, had passed before. */
    async function earn(passed: number[]): Promise<void> {
      const keys = (await redis.keys("*")).filter((key) => passed.some((seconds) => key.endsWith(`/${seconds}`)));
      if (keys.length > 0) await redis.del(keys);
      const lines: string[] = [];
      const buckets = openBuckets(url, pino({ level: "debug" }, { write: (line) => void lines.push(line) }));
      await eventually(() => lines.some((line) => line.includes("limits are shared")));
      while ((await takeTry(buckets, attempt)) === 0) await noteFailure(buckets, attempt);
      waits.push(await takeTry(buckets, attempt));
      buckets.close();
    }
    for (const passed of [[], [300], [300, 3_600], [300]]) await earn(passed);
    redis.disconnect();
    const [first = 0, second = 0, afterAnHour = 0, fourth = 0] = waits;
    expect([first <= 60, second > 300, afterAnHour <= 60, fourth > 3_600], waits.join(" ")).toEqual(
      Array(4).fill(true),
    );
  });
});
