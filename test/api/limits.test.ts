import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mintKey } from "../../src/callers/key.ts";
import { setPlan } from "../../src/callers/plan-store.ts";
import { Redis } from "ioredis";
import { createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { ANNOUNCED, FAST, makeKey, makeWorld, type World } from "./world.ts";

const PATH = "/api/v1/games";
let redisUrl: string;
let world: World;

beforeAll(async () => {
  const redis = await createRedis();
  // on a busy machine a response may take longer than the usual 100 ms, after which a process would count alone
  redisUrl = `${redis.url}?commandTimeout=20000&socketTimeout=20000`;
  world = await makeWorld({ TRUSTED_PROXIES: ["127.0.0.0/8"] }, { redisUrl });
  await shared(world);
});
afterAll(() => world.close());

const shared = ({ lines }: World) => eventually(() => lines.some((line) => line.includes("limits are shared")));

interface Limits {
  perSecond?: number;
  burst?: number;
  day?: number;
  month?: number;
  ceiling?: number;
}

/** A caller of a new account with a plan of these limits. */
async function makeCaller({ perSecond = 1, burst = FAST, ...limits }: Limits = {}) {
  const plan = `plan ${crypto.randomUUID()}`;
  const email = `${crypto.randomUUID()}@example.com`;
  await world.sql`
    insert into plans (name, position, day_limit, month_limit, day_ceiling, burst_per_second, burst, price_micros, days)
    values (
      ${plan}, 9, ${limits.day ?? null}, ${limits.month ?? null}, ${limits.ceiling ?? null}, ${perSecond}, ${burst}, 0,
      30
    )`;
  const key = await makeKey(world.sql, email, plan);
  const ask = (path = PATH, headers: Record<string, string> = {}, of = world) =>
    of.get(path, { headers: { "X-Api-Key": key, ...headers } });
  const used = async () => {
    const [row] = await world.sql<{ used: number }[]>`
      select coalesce(max(used), 0)::integer as used
      from quotas
      where account_id = (select id from accounts where email = ${email})`;
    return row?.used ?? 0;
  };
  return { plan, email, key, ask, used };
}

const limitsOf = ({ headers }: Response) =>
  ["ratelimit-policy", "ratelimit", "x-quota-day-remaining", "x-quota-month-remaining"].map((name) =>
    headers.get(name),
  );

type Caller = Awaited<ReturnType<typeof makeCaller>>;

/**
 * The statuses of calls that a new caller sends. Repeats it with another caller, at most ten times, while the machine is too
 * busy: it takes a second, after which the burst allows one more.
 */
async function send(limits: Limits, calls: (caller: Caller) => Promise<Response[]>) {
  for (let run = 1; ; run++) {
    const caller = await makeCaller(limits);
    const begun = performance.now();
    const responses = await calls(caller);
    const isSlow = performance.now() - begun >= 1_000;
    const statuses = responses.map(({ status }) => status);
    if (run === 10 || !isSlow) return { ...caller, responses, statuses };
  }
}

const sorted = (statuses: readonly number[]) => statuses.toSorted((one, other) => one - other);

/** Sorted statuses of calls that were sent together: as many 200s as the burst has, and 429 for the others. */
const statusesOfBurst = (burst: number, calls: number) => [
  ...Array(burst).fill(200),
  ...Array(calls - burst).fill(429),
];

describe("[API4] the burst of a plan", () => {
  it("passes immediately, what exceeds it is 429 rate_limited with Retry-After, and costs no quota", async () => {
    const { ask, responses, statuses, used } = await send({ burst: 6 }, (caller) =>
      Promise.all(Array.from({ length: 10 }, () => caller.ask())),
    );
    expect(sorted(statuses)).toEqual(statusesOfBurst(6, 10));
    for (const response of responses.filter(({ status }) => status === 429)) {
      expect(await response.json()).toMatchObject({ ok: false, error: { code: "rate_limited" } });
      expect(response.headers.get("retry-after")).toBe("1");
      expect(response.headers.get("ratelimit")).toBe('"burst";r=0;t=1');
    }
    expect(await used()).toBe(6);
    await eventually(async () => expect((await ask()).status).toBe(200));
  });

  it("is spent by a 400, a 404 of a table, a 304 and /usage too, and by all keys of the account", async () => {
    const { statuses, used } = await send({ burst: 6 }, async ({ ask, email, plan }) => {
      const other = { "X-Api-Key": await makeKey(world.sql, email, plan) };
      const first = await ask();
      return [
        first,
        await ask(`${PATH}?limit=1`),
        await ask(`${PATH}?house=nowhere`),
        await ask(PATH, { "If-None-Match": first.headers.get("etag") ?? "" }),
        await ask("/api/v1/usage"),
        await ask(PATH, other),
        await ask("/api/v1/usage"),
        await ask(PATH, other),
      ];
    });
    expect(statuses).toEqual([200, 400, 404, 304, 200, 200, 429, 429]);
    expect(await used()).toBe(2);
  });

  it("is one for all processes on one Redis, and forgetting it there changes no quota", async () => {
    const other = await makeWorld({}, { on: world, redisUrl });
    try {
      await shared(other);
      const { ask, statuses, used } = await send({ burst: 20, day: 30 }, (caller) =>
        Promise.all(Array.from({ length: 40 }, (_, n) => caller.ask(PATH, {}, n % 2 === 0 ? world : other))),
      );
      expect(sorted(statuses)).toEqual(statusesOfBurst(20, 40));
      expect(await used()).toBe(20);
      const redis = new Redis(redisUrl);
      await redis.flushdb();
      redis.disconnect();
      await eventually(async () => (await ask()).status === 429 && (await used()) === 30);
      await eventually(async () => expect((await ask("/api/v1/usage")).status).toBe(200));
      expect(await used()).toBe(30);
    } finally {
      await other.close();
    }
  });

  it("is enforced by each process alone if Redis is unreachable, and no call waits for it", async () => {
    const alone = await makeWorld({}, { on: world, redisUrl: "redis://127.0.0.1:1" });
    try {
      const { statuses, used } = await send({ burst: 3 }, (caller) =>
        Promise.all(Array.from({ length: 5 }, () => caller.ask(PATH, {}, alone))),
      );
      expect(sorted(statuses)).toEqual(statusesOfBurst(3, 5));
      expect(await used()).toBe(3);
    } finally {
      await alone.close();
    }
  });
});

describe("the headers about limits", () => {
  const DAY = 86_400;

  it("say with a 200 what the plan has and what is left after this very call", async () => {
    const { ask } = await makeCaller({ perSecond: 10, burst: 20, day: 100, month: 2_000 });
    await ask();
    const response = await ask();
    const [policy, state, day, month] = limitsOf(response);
    expect(policy).toBe('"burst";q=10;w=1, "day";q=100;w=86400, "month";q=2000;w=2592000');
    const found = /^"burst";r=10;t=1, "day";r=98;t=(\d+), "month";r=1998;t=(\d+)$/.exec(state ?? "");
    expect(found).not.toBeNull();
    const [, dayReset, monthReset] = found?.map(Number) ?? [];
    expect(dayReset).toBeLessThanOrEqual(DAY);
    expect(monthReset).toBeLessThanOrEqual(31 * DAY);
    expect([day, month]).toEqual(["98", "1998"]);
  });

  it("are as exact of calls that are counted together", async () => {
    const { ask } = await makeCaller({ day: 100 });
    const responses = await Promise.all(Array.from({ length: 20 }, () => ask()));
    const left = responses.map(({ headers }) => Number(headers.get("x-quota-day-remaining")));
    expect(left.toSorted((a, b) => b - a)).toEqual(Array.from({ length: 20 }, (_, n) => 99 - n));
  });

  it("omit the quota with a 304 or a 400, which query nothing, and include it with /usage", async () => {
    const { ask } = await makeCaller({ perSecond: 10, burst: 20, day: 100 });
    const policy = '"burst";q=10;w=1, "day";q=100;w=86400';
    const etag = (await ask()).headers.get("etag") ?? "";
    const unchanged = await ask(PATH, { "If-None-Match": etag });
    expect(unchanged.status).toBe(304);
    expect(limitsOf(unchanged)).toEqual([policy, '"burst";r=10;t=1', null, null]);
    expect(limitsOf(await ask(`${PATH}?x=1`))).toEqual([policy, '"burst";r=10;t=1', null, null]);
    const usage = await ask("/api/v1/usage");
    expect(usage.headers.get("ratelimit")).toMatch(/^"burst";r=10;t=1, "day";r=99;t=\d+$/);
    expect(usage.headers.get("x-quota-day-remaining")).toBe("99");
  });

  it("say with the 429 of a quota that nothing is left, until the time in Retry-After", async () => {
    const { ask } = await makeCaller({ perSecond: 10, burst: 20, day: 1, month: 9 });
    await ask();
    for (let n = 0; n < 2; n++) {
      const response = await ask();
      expect(response.status).toBe(429);
      const [, state, day, month] = limitsOf(response);
      expect(state).toContain(`"day";r=0;t=${response.headers.get("retry-after")}, "month";r=8;t=`);
      expect([day, month]).toEqual(["0", "8"]);
    }
  });

  it("name only the burst on a plan without numbers, whose ceiling is never shown", async () => {
    const { ask, key } = await makeCaller({ perSecond: 25, burst: 50, ceiling: 2 });
    const responses = [await ask(), await ask("/api/v1/usage"), await ask()];
    for (const response of responses) {
      expect(limitsOf(response)).toEqual(['"burst";q=25;w=1', '"burst";r=25;t=1', null, null]);
    }
    const refusal = await world.refused(PATH, { headers: { "X-Api-Key": key } });
    expect(refusal.code).toBe("service_ceiling_reached");
    expect(refusal.headers.get("ratelimit")).toBe('"burst";r=25;t=1');
    expect(refusal.message + JSON.stringify(refusal.details ?? "")).not.toMatch(/\d/);
  });

  it("are missing in responses to unknown callers", async () => {
    expect(limitsOf(await world.get(PATH, { headers: { "X-Api-Key": "" } }))).toEqual([null, null, null, null]);
  });

  it("show the new limits as soon as the change of a plan is announced", async () => {
    const { ask, plan } = await makeCaller({ perSecond: 10, burst: 20, day: 100 });
    const own = await makeWorld({}, { on: world, times: ANNOUNCED });
    try {
      const policy = async () => limitsOf(await ask(PATH, {}, own))[0];
      expect(await policy()).toBe('"burst";q=10;w=1, "day";q=100;w=86400');
      await setPlan(world.sql, plan, { day: 50, rps: 7 });
      await eventually(async () => expect(await policy()).toBe('"burst";q=7;w=1, "day";q=50;w=86400'));
    } finally {
      await own.close();
    }
  });
});

describe("[API2] bad keys of one address", () => {
  /** Asks as if from another place, by way of the proxy that this world trusts. */
  const from = (address: string, key: string) =>
    world.refused(PATH, { headers: { "X-Api-Key": key, "X-Forwarded-For": address } });
  const askFrom = (address: string, key: string) =>
    world.get(PATH, { headers: { "X-Api-Key": key, "X-Forwarded-For": address } });

  it("are 401 twenty times and then 429, while good keys work, even a new one", async () => {
    const codes: string[] = [];
    for (let n = 0; n < 22; n++) codes.push((await from("192.0.2.1", `rh_live_${n}`)).code);
    expect(codes).toEqual([...Array(20).fill("invalid_api_key"), "rate_limited", "rate_limited"]);
    const refusal = await from("192.0.2.1", "wrong");
    expect(refusal).toMatchObject({
      status: 429,
      message: expect.stringContaining("wrong keys came from this address"),
    });
    expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await askFrom("192.0.2.1", world.key)).status).toBe(200);
    expect((await askFrom("192.0.2.1", (await makeCaller()).key)).status).toBe(200);
    expect((await from("192.0.2.2", "wrong")).status).toBe(401);
  });

  it("with a valid form are not looked up any more, known callers are served, and other addresses are unaffected", async () => {
    await askFrom("2001:db8::1", world.key);
    // each of another interface of the same network
    for (let n = 0; n < 20; n++) {
      expect((await from(`2001:db8::${n}`, mintKey(randomBytes))).code).toBe("invalid_api_key");
    }
    expect(await from("2001:db8::ff", mintKey(randomBytes))).toMatchObject({
      status: 429,
      code: "rate_limited",
      message: expect.stringContaining("a key that was not used here recently is refused too"),
    });
    // not even where the key is a good one that this process has not seen yet: it would have to be looked up
    expect((await from("2001:db8::1", (await makeCaller()).key)).code).toBe("rate_limited");
    expect((await askFrom("2001:db8::1", world.key)).status).toBe(200);
    expect((await from("2001:db8:0:1::1", mintKey(randomBytes))).status).toBe(401);
    expect((await from("2001:db8::1", "")).code).toBe("missing_api_key");
  });

  it("are distinguished by a proxy's header only if the proxy is trusted", async () => {
    const open = await makeWorld({}, { on: world });
    try {
      const codes: string[] = [];
      for (let n = 0; n < 21; n++) {
        const headers = { "X-Api-Key": "wrong", "X-Forwarded-For": `192.0.2.${n}` };
        codes.push((await open.refused(PATH, { headers })).code);
      }
      expect(codes.at(-1)).toBe("rate_limited");
    } finally {
      await open.close();
    }
  });
});

describe("calls of a suspended account", () => {
  it("are 403 twenty times and then 429, and are served again with the first call after the suspension", async () => {
    const { email, key, ask } = await makeCaller();
    const suspend = (reason: string | null) => world.sql`
      update accounts
      set suspended_at = case when ${reason}::text is not null then now() end, suspend_reason = ${reason}
      where email = ${email}`;
    await suspend("a chargeback");
    const codes: string[] = [];
    // one passes each second, and the first is not limited: the account is not known yet
    while (codes.at(-1) !== "rate_limited") {
      const { code, message } = await world.refused(PATH, { headers: { "X-Api-Key": key } });
      codes.push(code);
      if (code === "rate_limited") expect(message).toContain("calls with this key were refused");
      expect(codes.length).toBeLessThan(200);
    }
    expect(codes.length).toBeGreaterThan(21);
    expect(new Set(codes.slice(0, -1))).toEqual(new Set(["account_suspended"]));
    await suspend(null);
    const served = await eventually(async () => {
      const { status } = await ask();
      return status !== 429 && status;
    });
    expect(served).toBe(200);
  });
});
