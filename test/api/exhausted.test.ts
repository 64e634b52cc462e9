import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import express from "express";
import pino from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import type { Content } from "../../src/http/call.ts";
import { etagKeyOf } from "../../src/http/etag.ts";
import { meterCalls } from "../../src/api/metering.ts";
import { addOperation } from "../../src/api/operations.ts";
import type { Allowance } from "../../src/callers/caller-store.ts";
import type { Verdict } from "../../src/usage/store.ts";
import { CALLER } from "./caller.ts";

const LIMITS = { dayLimit: 10n, monthLimit: 100n };

/** What is known of a plan; a new look-up of its caller makes another object of it. */
const planOf = (): Allowance => ({
  name: "Pro",
  ...LIMITS,
  dayCeiling: null,
  burstPerSecond: 1,
  burst: 1,
  houses: null,
  used: { day: 0n, month: 0n, atMs: 0 },
});

/** A meter with a manual database clock and set verdicts; it counts how often it is called. */
function world(startAt: string, outcome: string) {
  const state = { nowMs: Date.parse(startAt), outcome, asked: 0 };
  const metering = meterCalls(
    (calls) => {
      state.asked += calls.length;
      const verdict: Verdict = {
        outcome: state.outcome,
        dayUsed: 10n,
        monthUsed: 40n,
        ...LIMITS,
        decidedAtMs: state.nowMs,
      };
      return Promise.resolve(calls.map(() => verdict));
    },
    () => state.nowMs,
    pino({ level: "silent" }),
  );
  const isRefusedAtOnce = (plan: Allowance) => metering.exhausted(plan)?.refusal?.code ?? null;
  const count = async (plan: Allowance) => {
    const { refusal, quota } = await metering.count({ caller: CALLER, plan }, "games");
    return { code: refusal?.code ?? "ok", retryAfter: refusal?.headers["Retry-After"], atMs: quota?.atMs };
  };
  return { state, metering, count, isRefusedAtOnce };
}

/** Serves an operation at `/one` for this plan; `refused` receives its errors. */
async function serve(
  { metering, plan }: Pick<ReturnType<typeof world>, "metering"> & { plan: Allowance },
  compose: () => Content,
  call: { begunAt?: number } = {},
) {
  const app = express();
  const parts = {
    caller: [
      (_: unknown, response: { locals: object }, next: () => void) => {
        response.locals = {
          requestId: "req_1",
          caller: CALLER,
          plan,
          begunAt: performance.now(),
          limits: { plan, draw: { left: 1, waitMs: 0 } },
          ...call,
        };
        next();
      },
    ],
    lastUsed: { note: () => undefined },
    memory: { ageSeconds: () => 0, checkpoint: () => null },
    metering,
    etagKey: etagKeyOf("a secret"),
  } as unknown as Parameters<typeof addOperation>[2];
  addOperation(app, { path: "/one", endpoint: "one", params: z.strictObject({}), compose }, parts);
  const refused: unknown[] = [];
  // four arguments: Express knows a handler of errors by their number
  app.use((error: unknown, _: unknown, response: ServerResponse, __: unknown) => {
    refused.push(error);
    response.writeHead(429).end();
  });
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  return { refused, url: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/one` };
}

it("composes nothing for an account that is known to have used up its quota", async () => {
  let [asked, made] = [0, 0];
  // another response each time, so that none is cached
  const compose = () => ({ etag: `"${++asked}"`, json: () => `${++made}` });
  const { refused, url } = await serve(
    { ...world("2026-11-21T23:00:00Z", "day_quota_exceeded"), plan: planOf() },
    compose,
  );
  for (const times of [1, 2, 3]) {
    expect((await fetch(url)).status).toBe(429);
    expect(refused).toHaveLength(times);
    expect([asked, made]).toEqual([1, 1]); // for the first one, which only the database could refuse
  }
  expect(refused[2]).toMatchObject({ code: "day_quota_exceeded" });
});

it("counts a call whose response took long to make", async () => {
  const { state, metering } = world("2026-11-21T23:00:00Z", "ok");
  const arrival = { begunAt: performance.now() - 10_000 };
  const { refused, url } = await serve(
    { metering, plan: planOf() },
    () => ({ etag: '"a"', json: () => "{}" }),
    arrival,
  );
  expect([(await fetch(url)).status, refused]).toEqual([200, []]);
  expect(state.asked).toBe(1);
});

describe("an account whose quota is gone", () => {
  it("is refused without a query, with the time that remains", async () => {
    const { state, count, isRefusedAtOnce } = world("2026-11-21T23:00:00Z", "day_quota_exceeded");
    const plan = planOf();
    expect(isRefusedAtOnce(plan)).toBe(null);
    expect(await count(plan)).toMatchObject({ code: "day_quota_exceeded", retryAfter: "3600" });
    state.nowMs += 600_000;
    expect(await count(plan)).toEqual({ code: "day_quota_exceeded", retryAfter: "3000", atMs: state.nowMs });
    expect(isRefusedAtOnce(plan)).toBe("day_quota_exceeded");
    expect(state.asked).toBe(1);
  });

  it.each([
    ["day_quota_exceeded", "2026-11-21T23:59:59.900Z"],
    ["service_ceiling_reached", "2026-11-30T23:59:59.900Z"],
    ["month_quota_exceeded", "2026-12-31T23:59:59.900Z"],
  ])("with %s is queried again in the very first millisecond after %s", async (outcome, startAt) => {
    const { state, count } = world(startAt, outcome);
    const plan = planOf();
    expect(await count(plan)).toMatchObject({ code: outcome, retryAfter: "1" });
    state.nowMs += 99;
    expect(await count(plan)).toMatchObject({ code: outcome, retryAfter: "1" });
    expect(state.asked).toBe(1);
    state.outcome = "ok";
    state.nowMs += 1;
    expect(await count(plan)).toMatchObject({ code: "ok" });
    expect(state.asked).toBe(2);
  });

  it("of the month is still refused after midnight, once the new day was queried", async () => {
    const { state, count } = world("2026-11-21T23:59:59Z", "month_quota_exceeded");
    const plan = planOf();
    await count(plan);
    state.nowMs += 60_000;
    expect(await count(plan)).toMatchObject({ code: "month_quota_exceeded", retryAfter: String(9 * 86_400 - 59) });
    expect(state.asked).toBe(2);
    await count(plan);
    expect(state.asked).toBe(2);
  });

  it("is asked about again once its caller was: the plan may be another, or the key revoked", async () => {
    const { state, count } = world("2026-11-21T12:00:00Z", "day_quota_exceeded");
    await count(planOf());
    state.outcome = "ok";
    expect(await count(planOf())).toMatchObject({ code: "ok" });
    expect(state.asked).toBe(2);
  });
});

it("is refused by the ceiling of its plan only if the plan has no daily limit", () => {
  const { isRefusedAtOnce } = world("2026-11-21T12:00:00Z", "ok");
  const used = { day: 5n, month: 5n, atMs: Date.parse("2026-11-21T12:00:00Z") };
  expect(isRefusedAtOnce({ ...planOf(), dayCeiling: 5n, used })).toBe(null);
  expect(isRefusedAtOnce({ ...planOf(), dayLimit: null, dayCeiling: 5n, used })).toBe("service_ceiling_reached");
});

it("what is refused for another reason than its quota is asked about each time", async () => {
  const { state, count } = world("2026-11-21T12:00:00Z", "revoked_api_key");
  const plan = planOf();
  expect([await count(plan), await count(plan)]).toMatchObject([
    { code: "revoked_api_key" },
    { code: "revoked_api_key" },
  ]);
  expect(state.asked).toBe(2);
});
