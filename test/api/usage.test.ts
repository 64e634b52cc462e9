import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { setPlan } from "../../src/callers/plan-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { eventually } from "../support/eventually.ts";
import { FAST, makeKey, makeWorld, type World } from "./world.ts";

const PATH = "/api/v1/usage";
const at = z.string().regex(/^\d{4}-\d{2}-\d{2}T00:00:00\.0000000Z$/);
const count = z.int().min(0);
const spent = { requests: count, limit: count.nullable(), remaining: count.nullable(), resets_at: at };
/** Fields in the order in which they are sent. */
const body = z.strictObject({
  ok: z.literal(true),
  plan: z.string(),
  key: z.strictObject({ name: z.string(), last4: z.string().length(4) }),
  day: z.strictObject({ date: z.iso.date(), ...spent }),
  month: z.strictObject({ month: z.string().regex(/^\d{4}-\d{2}$/), ...spent }),
  burst: z.strictObject({ per_second: z.int(), burst: z.int() }),
  endpoints: z.array(z.strictObject({ endpoint: z.string(), requests: count })),
  days: z.array(z.strictObject({ date: z.iso.date(), requests: count })),
});

let world: World;

beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** A caller of a new account, and its requests. */
async function makeCaller(plan: string) {
  const email = `${crypto.randomUUID()}@example.com`;
  const key = await makeKey(world.sql, email, plan);
  const get = (path: string, of = world) => of.get(path, { headers: { "X-Api-Key": key } });
  const call = async (path: string, of = world) => {
    const response = await get(`/api/v1/${path}`, of);
    await response.arrayBuffer();
    return response.status;
  };
  const usage = async (query = "", of = world) => {
    const response = await get(PATH + query, of);
    expect(response.status).toBe(200);
    return body.parse(await response.json());
  };
  return { email, key, get, call, usage };
}

/** The calendar fields of `/usage`, by the database clock. */
async function calendar() {
  const [row] = await world.sql<{ today: string; month: string; tomorrow: string; next: string; days: string[] }[]>`
    select
      to_char(day, 'YYYY-MM-DD') as today,
      to_char(day, 'YYYY-MM') as month,
      to_char(day + interval '1 day', 'YYYY-MM-DD') as tomorrow,
      to_char(date_trunc('month', day) + interval '1 month', 'YYYY-MM-DD') as next,
      array(select to_char(day - n * interval '1 day', 'YYYY-MM-DD') from generate_series(0, 30) n order by n) as days
    from (select (now() at time zone 'UTC')::date::timestamp as day) clock`;
  if (row === undefined) throw new Error("expected the day");
  return row;
}

describe("/usage", () => {
  it("is complete before the first call, in this order", async () => {
    const { key, get } = await makeCaller("Pro");
    const { today, month, tomorrow, next } = await calendar();
    const response = await get(PATH);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await response.text()).toBe(
      JSON.stringify({
        ok: true,
        plan: "Pro",
        key: { name: "default", last4: key.slice(-4) },
        day: {
          date: today,
          requests: 0,
          limit: 100_000,
          remaining: 100_000,
          resets_at: `${tomorrow}T00:00:00.0000000Z`,
        },
        month: { month, requests: 0, limit: 2_500_000, remaining: 2_500_000, resets_at: `${next}T00:00:00.0000000Z` },
        burst: { per_second: FAST, burst: FAST },
        endpoints: [],
        days: [{ date: today, requests: 0 }],
      }),
    );
  });

  it("counts every 200 before it, by endpoint, and itself never", async () => {
    const { call, usage } = await makeCaller("Pro");
    const asked = ["games", "rounds", "rounds", "forecasts", "accuracy", "rounds?limit=3"];
    for (const [before, path] of asked.entries()) {
      expect((await usage()).day.requests).toBe(before);
      expect(await call(path)).toBe(200);
    }
    const { day, month, endpoints, days } = await usage();
    expect(day).toMatchObject({ requests: 6, remaining: 99_994 });
    expect(month).toMatchObject({ requests: 6, remaining: 2_499_994 });
    expect(endpoints).toEqual([
      { endpoint: "accuracy", requests: 1 },
      { endpoint: "forecasts", requests: 1 },
      { endpoint: "games", requests: 1 },
      { endpoint: "rounds", requests: 3 },
    ]);
    expect(days).toEqual([{ date: day.date, requests: 6 }]);
  });

  it("counts what another process served, and what another key of the account requested", async () => {
    const { email, call, usage } = await makeCaller("Pro");
    const second = await createKey(world.sql, { email, plan: "Pro", name: "second" });
    if (!second.ok) throw new Error(second.problem);
    const other = await makeWorld({}, { on: world });
    try {
      expect(await call("games")).toBe(200);
      expect(await call("rounds", other)).toBe(200);
      expect((await other.get("/api/v1/games", { headers: { "X-Api-Key": second.key } })).status).toBe(200);
      for (const one of [world, other]) expect((await usage("", one)).day.requests).toBe(3);
      const asSecond = await world.get(PATH, { headers: { "X-Api-Key": second.key } });
      expect(body.parse(await asSecond.json())).toMatchObject({
        key: { name: "second", last4: second.key.slice(-4) },
        day: { requests: 3 },
      });
    } finally {
      await other.close();
    }
  });

  it("responds when the quota is used up, with nothing remaining, also if the limit was lowered below the use", async () => {
    const { call, usage } = await makeCaller("Starter");
    await setPlan(world.sql, "Starter", { day: 2 });
    expect([await call("games"), await call("games"), await call("games")]).toEqual([200, 200, 429]);
    await eventually(async () => expect((await usage()).day).toMatchObject({ requests: 2, limit: 2, remaining: 0 }));
    await setPlan(world.sql, "Starter", { day: 1 });
    await eventually(async () => expect((await usage()).day).toMatchObject({ requests: 2, limit: 1, remaining: 0 }));
  });

  it("has no limit for a plan without one, and does not show its ceiling", async () => {
    const { call, usage, get } = await makeCaller("Max");
    expect(await call("games")).toBe(200);
    const { day, month, burst } = await usage();
    expect(day).toMatchObject({ requests: 1, limit: null, remaining: null });
    expect(month).toMatchObject({ requests: 1, limit: null, remaining: null });
    expect(burst).toEqual({ per_second: FAST, burst: FAST });
    expect(await (await get(PATH)).text()).not.toContain("1000000");
  });

  it("lists as many days as are asked for, today first, and of each what was counted", async () => {
    const { key, call, usage } = await makeCaller("Pro");
    const { days } = await calendar();
    expect(await call("games")).toBe(200);
    await world.sql`
      insert into quotas (account_id, period, used)
      select account_id, ${days[2] ?? ""}, 41
      from keys
      where last4 = ${key.slice(-4)}`;
    expect((await usage("?days=3")).days).toEqual([
      { date: days[0], requests: 1 },
      { date: days[1], requests: 0 },
      { date: days[2], requests: 41 },
    ]);
    expect((await usage("?days=31")).days.map(({ date }) => date)).toEqual(days);
    expect((await usage("?days=1")).days).toHaveLength(1);
  });

  it("shows a changed plan within seconds", async () => {
    const { usage } = await makeCaller("Max");
    expect((await usage()).month.limit).toBeNull();
    await setPlan(world.sql, "Max", { month: 7, rps: 30, burst: 60 });
    await eventually(async () =>
      expect(await usage()).toMatchObject({ month: { limit: 7, remaining: 7 }, burst: { per_second: 30, burst: 60 } }),
    );
    await setPlan(world.sql, "Max", { month: null });
  });
});

describe("what /usage refuses", () => {
  it.each(["0", "32", "-1", "1e1", "05", "", "1.5", "all"])("days=%s is 400", async (days) => {
    const refusal = await world.refused(`${PATH}?days=${days}`);
    expect(refusal).toMatchObject({ status: 400, code: "invalid_parameter", details: { parameter: "days" } });
    expect(refusal.message).toMatch(/^days: expected a whole number from 1 to 31, found "/);
  });

  it("parameters of other paths are unknown here", async () => {
    for (const query of ["?house=alpha", "?days=1&limit=3"]) {
      expect(await world.refused(PATH + query)).toMatchObject({ status: 400, code: "unknown_parameter" });
    }
  });

  it("invalid keys are refused before the parameters are validated", async () => {
    const refused = (key: string) => world.refused(`${PATH}?days=0`, { headers: { "X-Api-Key": key } });
    expect(await refused("")).toMatchObject({ status: 401, code: "missing_api_key" });
    expect(await refused("wrong")).toMatchObject({ status: 401, code: "invalid_api_key" });
    const { email, key } = await makeCaller("Pro");
    await world.sql`update accounts set suspended_at = now(), suspend_reason = 'test' where email = ${email}`;
    expect(await refused(key)).toMatchObject({ status: 403, code: "account_suspended" });
  });

  it("methods other than GET, HEAD and OPTIONS are 405", async () => {
    expect(await world.refused(PATH, { method: "POST" })).toMatchObject({ status: 405, code: "method_not_allowed" });
    const head = await world.get(PATH, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });
});
