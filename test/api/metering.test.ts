import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TIMES } from "../../src/api/times.ts";
import { setPlan } from "../../src/callers/plan-store.ts";
import { revokeKey } from "../../src/callers/key-store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { eventually } from "../support/eventually.ts";
import { exchange } from "./raw.ts";
import { ANNOUNCED, FAST, makeKey, makeWorld, type World } from "./world.ts";

const PATH = "/api/v1/games";
const DAY_SECONDS = 86_400;

let world: World;

beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** A plan with these limits, for all houses. */
async function makePlan(limits: { day?: number; month?: number; ceiling?: number }, { sql }: World): Promise<string> {
  const name = `plan ${crypto.randomUUID()}`;
  await sql`
    insert into plans (name, position, day_limit, month_limit, day_ceiling, burst_per_second, burst, price_micros, days)
    values (
      ${name}, 9, ${limits.day ?? null}, ${limits.month ?? null}, ${limits.ceiling ?? null}, ${FAST}, ${FAST}, 0, 30
    )`;
  return name;
}

/** A caller of a new account with a plan of these limits. */
async function makeCaller(limits: { day?: number; month?: number; ceiling?: number } = {}, on = world) {
  const email = `${crypto.randomUUID()}@example.com`;
  const plan = await makePlan(limits, on);
  const key = await makeKey(on.sql, email, plan);
  const ask = (path = PATH, options: { of?: World; method?: string; headers?: Record<string, string> } = {}) => {
    const { of = on, method = "GET", headers = {} } = options;
    return of.get(path, { method, headers: { "X-Api-Key": key, ...headers } });
  };
  return {
    email,
    plan,
    key,
    ask,
    refused: (path = PATH, of = on) => of.refused(path, { headers: { "X-Api-Key": key } }),
    async status(path?: string, options?: Parameters<typeof ask>[1]) {
      const response = await ask(path, options);
      await response.arrayBuffer();
      return response.status;
    },
    counted: () => counted(on.sql, email),
  };
}

/** What an account has used today by its quotas and by the facts, which must agree. */
async function counted(sql: Sql, email: string): Promise<number> {
  const [row] = await sql<{ day: number; month: number; facts: number }[]>`
    select
      coalesce((select used from quotas where account_id = a.id and length(period) = 10), 0)::integer as day,
      coalesce((select used from quotas where account_id = a.id and length(period) = 7), 0)::integer as month,
      coalesce((select sum(n) from usage_facts where account_id = a.id), 0)::integer as facts
    from accounts a
    where email = ${email}`;
  expect(row).toEqual({ day: row?.day, month: row?.day, facts: row?.day });
  return row?.day ?? 0;
}

describe("what counts", () => {
  it("is a 200 and nothing else, and HEAD counts as GET", async () => {
    const { key, ask, status, counted: used } = await makeCaller();
    await setPlan(world.sql, "Starter", { houses: ["alpha"] });
    const narrow = await makeKey(world.sql, "narrow@example.com", "Starter");
    expect(await status()).toBe(200);
    expect(await status(PATH, { method: "HEAD" })).toBe(200);
    expect(await used()).toBe(2);
    const etag = (await ask()).headers.get("etag") ?? "";
    expect(await used()).toBe(3);
    const free: [number, string, Parameters<typeof ask>[1]?][] = [
      [304, PATH, { headers: { "If-None-Match": etag } }],
      [304, PATH, { headers: { "If-None-Match": etag }, method: "HEAD" }],
      [400, `${PATH}?limit=5`],
      [400, "/api/v1/rounds?limit=0"],
      [400, `${PATH}?api_key=${key}`],
      [401, PATH, { headers: { "X-Api-Key": `${key}x` } }],
      [404, "/api/v1/bankroll"],
      [404, `${PATH}?house=nowhere`],
      [405, PATH, { method: "POST" }],
      [204, PATH, { method: "OPTIONS" }],
      [200, "/api/v1/usage"],
      [200, "/healthz"],
      [200, "/"],
    ];
    for (const [expected, path, options] of free) {
      expect([path, await status(path, options)]).toEqual([path, expected]);
    }
    expect(await status(`${PATH}?house=gamma`, { headers: { "X-Api-Key": narrow } })).toBe(403);
    expect(await used()).toBe(3);
    expect(await counted(world.sql, "narrow@example.com")).toBe(0);
  });

  it("is one call, whatever it asks for, and of every path that lists something", async () => {
    const { status, counted: used } = await makeCaller();
    for (const path of ["games", "rounds?limit=100", "forecasts", "accuracy?period=all&scope=house"]) {
      expect(await status(`/api/v1/${path}`)).toBe(200);
    }
    expect(await used()).toBe(4);
  });
});

describe("a quota that is gone", () => {
  /** Whole seconds to a moment of the calendar, asked before and after. */
  async function secondsTo(unit: "day" | "month"): Promise<number> {
    const [row] = await world.sql<{ seconds: number }[]>`
      select
        extract(epoch from date_trunc(${unit}, now(), 'UTC') + ${`1 ${unit}`}::text::interval - clock_timestamp())::float8
          as seconds`;
    return row?.seconds ?? 0;
  }

  it.each([
    [{ day: 2 }, "day_quota_exceeded", "day"],
    [{ day: 9, month: 2 }, "month_quota_exceeded", "month"],
    [{ ceiling: 2 }, "service_ceiling_reached", "day"],
  ] as const)(
    "of %j is 429 %s until the next UTC %s begins, also when the response is unchanged, while /usage is served",
    async (limits, code, unit) => {
      const { status, refused, ask, counted: used } = await makeCaller(limits);
      const etag = (await ask()).headers.get("etag") ?? "";
      expect(await status(PATH, { headers: { "If-None-Match": etag } })).toBe(304);
      expect(await status()).toBe(200);
      const most = Math.ceil(await secondsTo(unit));
      const refusal = await refused();
      const least = await secondsTo(unit);
      expect(refusal).toMatchObject({ status: 429, code });
      expect(refusal.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
      const retryAfter = Number(refusal.headers.get("retry-after"));
      // the process knows the time of the database less exactly; exhausted.test.ts has the exact seconds
      expect(retryAfter).toBeGreaterThanOrEqual(least - 1);
      expect(retryAfter).toBeLessThanOrEqual(most + 1);
      expect(retryAfter).toBeLessThanOrEqual((unit === "day" ? 1 : 31) * DAY_SECONDS);
      expect(await status("/api/v1/usage")).toBe(200);
      expect(await status(PATH, { headers: { "If-None-Match": etag } })).toBe(429);
      expect(await status(PATH, { method: "HEAD" })).toBe(429);
      expect(await used()).toBe(2);
    },
  );

  it("is there again once it is heard that the plan has more, and gone as soon as it has less", async () => {
    const own = await makeWorld({}, { on: world, times: ANNOUNCED });
    try {
      const { plan, status, counted: used } = await makeCaller({ day: 1 }, own);
      expect([await status(), await status()]).toEqual([200, 429]);
      await setPlan(world.sql, plan, { day: 3 });
      await eventually(async () => expect(await status()).toBe(200));
      expect([await status(), await status()]).toEqual([200, 429]);
      await setPlan(world.sql, plan, { day: null });
      await eventually(async () => expect(await status()).toBe(200));
      await setPlan(world.sql, plan, { month: 4 });
      expect(await status()).toBe(429);
      expect(await used()).toBe(4);
    } finally {
      await own.close();
    }
  });

  it("is of the day and the month that they are: of another day and month nothing is used yet", async () => {
    const { status, email } = await makeCaller({ day: 1, month: 1 });
    expect([await status(), await status()]).toEqual([200, 429]);
    await world.sql`
      update quotas
      set period = case length(period) when 10 then '2026-01-31' else '2026-01' end
      where account_id = (select id from accounts where email = ${email})`;
    // it was not announced, so for up to five seconds the cached plan is used
    await eventually(async () => expect(await status()).toBe(200));
    expect(await status()).toBe(429);
  });
});

describe("a key that is no longer good", () => {
  it.each([
    [401, "revoked_api_key", "update keys set revoked_at = now() where account_id = "],
    [401, "expired_api_key", "update keys set expires_at = now() where account_id = "],
    [403, "account_suspended", "update accounts set suspended_at = now(), suspend_reason = 'test' where id = "],
    [402, "no_active_plan", "delete from entitlements where account_id = "],
  ])("is %i %s at its very next counted call without a notification: %s", async (status, code, change) => {
    const { email, status: statusOf, refused, counted: used } = await makeCaller();
    // what is known of the key from here on is used for five seconds
    expect([await statusOf(), await statusOf()]).toEqual([200, 200]);
    const [account] = await world.sql`select id from accounts where email = ${email}`;
    await world.sql.unsafe(change + String(account?.["id"]));
    const refusal = await refused();
    expect(refusal).toMatchObject({ status, code });
    expect(refusal.headers.get("www-authenticate")).toBe(status === 401 ? 'ApiKey realm="api"' : null);
    expect(await used()).toBe(2);
  });

  it("is refused immediately by every process", async () => {
    const { key, status, refused } = await makeCaller();
    const other = await makeWorld({}, { on: world });
    try {
      expect([await status(), await status(PATH, { of: other })]).toEqual([200, 200]);
      await revokeKey(world.sql, key);
      for (const one of [world, other]) {
        expect(await refused(PATH, one)).toMatchObject({ status: 401, code: "revoked_api_key" });
      }
    } finally {
      await other.close();
    }
  });
});

describe("2,000 concurrent calls to two processes", () => {
  it("are served exactly as often as the quota allows", async () => {
    const { key, counted: used } = await makeCaller({ day: 500 });
    const other = await makeWorld({}, { on: world });
    try {
      const call = (...headers: string[]) =>
        ["GET /api/v1/rounds HTTP/1.1", "Host: a", `X-Api-Key: ${key}`, ...headers, "", ""].join("\r\n");
      // twenty on each connection, without waiting for responses: opening 2,000 connections would take long
      const replies = await Promise.all(
        Array.from({ length: 100 }, (_, n) =>
          exchange((n % 2 === 0 ? world : other).api.port, call().repeat(19) + call("Connection: close")),
        ),
      );
      const statuses = replies.flat().map(({ status }) => status);
      const times = (wanted: number) => statuses.filter((one) => one === wanted).length;
      expect([times(200), times(429)]).toEqual([500, 1_500]);
      expect(await used()).toBe(500);
    } finally {
      await other.close();
    }
  });
});

describe("while calls cannot be counted", () => {
  it("they are refused and not counted afterwards, known callers still get their 304, and later calls succeed", async () => {
    const own = await makeWorld();
    const url = new URL(own.databaseUrl);
    const database = url.pathname.slice(1);
    url.pathname = "postgres";
    const outside = connect(url.href, { name: "test", max: 1 });
    try {
      const { ask, status, refused, counted: used } = await makeCaller({}, own);
      const etag = (await ask()).headers.get("etag") ?? "";
      await outside`alter database ${outside(database)} allow_connections false`;
      await own.sql`
        select pg_terminate_backend(pid)
        from pg_stat_activity
        where datname = current_database() and application_name in ('roundhouse api', 'roundhouse listener')`;
      for (let n = 0; n < 5; n++) {
        const refusal = await refused();
        expect(refusal).toMatchObject({ status: 503, code: "temporarily_unavailable" });
        expect(refusal.headers.get("retry-after")).toBe("5");
        expect(await status(PATH, { headers: { "If-None-Match": etag } })).toBe(304);
      }
      expect((await refused("/api/v1/usage")).status).toBe(503);
      const together = await Promise.all(Array.from({ length: 50 }, () => status()));
      expect(new Set(together)).toEqual(new Set([503]));
      await outside`alter database ${outside(database)} allow_connections true`;
      let served = 1;
      await eventually(async () => {
        const isServed = (await status()) === 200;
        if (isServed) served++;
        return isServed;
      });
      expect(await used()).toBe(served);
      const warnings = (what: string) => own.lines.filter((line) => line.includes(what)).length;
      expect([warnings("calls cannot be counted"), warnings("calls can be counted again")]).toEqual([1, 1]);
    } finally {
      await outside`alter database ${outside(database)} allow_connections true`;
      await outside.end();
      await own.close();
    }
  });

  it("because another transaction holds the account, they are refused, and not counted after its end", async () => {
    const { email, ask, status, refused, counted: used } = await makeCaller();
    const { status: otherStatus } = await makeCaller();
    const etag = (await ask()).headers.get("etag") ?? "";
    const of = await makeWorld({}, { on: world, times: TIMES });
    try {
      // now this process knows the caller
      const free = { of, headers: { "If-None-Match": etag } };
      await eventually(async () => expect(await status(PATH, free)).toBe(304));
      await world.sql.begin(async (tx) => {
        await tx`
          select
          from quotas
          where account_id = (select id from accounts where email = ${email})
          for update`;
        expect(await refused(PATH, of)).toMatchObject({ status: 503, code: "temporarily_unavailable" });
        // its batch is still in the database, and does not block other calls
        await eventually(async () => expect(await otherStatus(PATH, { of })).toBe(200));
        expect(await Promise.all([status(PATH, { of }), status(PATH, { of })])).toEqual([503, 503]);
      });
      await eventually(async () => (await waitingForLocks()) === 0);
      expect(await used()).toBe(1);
      expect(await status()).toBe(200);
      expect(await used()).toBe(2);
    } finally {
      await of.close();
    }
  });
});

/** Batches of calls that are in the database without a response. */
async function waitingForLocks(): Promise<number> {
  const [row] = await world.sql<{ n: number }[]>`
    select count(*)::integer as n
    from pg_stat_activity
    where datname = current_database() and query like '%from consume_calls%' and state <> 'idle'
      and pid <> pg_backend_pid()`;
  return row?.n ?? 0;
}

describe("a process that stops in the middle of calls", () => {
  it("serves or refuses each of them, and counts those that it served", async () => {
    const { status, counted: used } = await makeCaller();
    const stopping = await makeWorld({}, { on: world });
    const asked = Array.from({ length: 300 }, () => status(PATH, { of: stopping }).catch(() => "no response"));
    await Promise.any(asked.map(async (one) => expect(await one).toBe(200)));
    await stopping.close();
    const outcomes = await Promise.all(asked);
    const served = outcomes.filter((outcome) => outcome === 200).length;
    expect(served).toBeGreaterThan(0);
    expect(outcomes.filter((outcome) => ![200, 503, "no response"].includes(outcome))).toEqual([]);
    expect(await used()).toBe(served);
    expect(stopping.lines.filter((line) => line.includes("fault of ours"))).toEqual([]);
  });
});
