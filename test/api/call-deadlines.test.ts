import pino from "pino";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { meterCalls } from "../../src/api/metering.ts";
import type { Allowance } from "../../src/callers/caller-store.ts";
import type { Verdict } from "../../src/usage/store.ts";
import { CALLER } from "./caller.ts";

const PLAN: Allowance = {
  name: "Pro",
  dayLimit: null,
  monthLimit: null,
  dayCeiling: null,
  burstPerSecond: 1,
  burst: 1,
  houses: null,
  used: { day: 0n, month: 0n, atMs: 0 },
};
const COUNTED: Verdict = {
  outcome: "ok",
  dayUsed: 1n,
  monthUsed: 1n,
  dayLimit: null,
  monthLimit: null,
  decidedAtMs: 0,
};
const REFUSED = "temporarily_unavailable";
/** How far the clock of the database is ahead of that of the process. */
const AHEAD_MS = 5_000_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "setInterval", "setImmediate", "performance"], now: 0 });
});
afterEach(() => void vi.useRealTimers());

/** Advances the clock to `ms` after `startedAt`. */
const advanceTo = (startedAt: number, ms: number) => vi.advanceTimersByTimeAsync(startedAt + ms - performance.now());

/** A meter whose batches are `sent` to a database that responds when a test says so. */
function makeMeter(times: { sentWithinMs: number; countedWithinMs: number; verdictMs: number }) {
  const startedAt = performance.now();
  const sent: { deadlineMs: number; respond: () => void }[] = [];
  const metering = meterCalls(
    (calls, deadline) => {
      const verdicts = Promise.withResolvers<Verdict[]>();
      sent.push({
        deadlineMs: deadline.getTime() - AHEAD_MS - startedAt,
        respond: () => verdicts.resolve(calls.map(() => COUNTED)),
      });
      return verdicts.promise;
    },
    () => performance.now() + AHEAD_MS,
    pino({ level: "silent" }),
    times,
  );
  /** Counts a call now; `outcome` is null until it has one. */
  const count = () => {
    const call: { outcome: string | null } = { outcome: null };
    metering.count({ caller: CALLER, plan: PLAN }, "games").then(
      () => (call.outcome = "counted"),
      (error: { code: string }) => (call.outcome = error.code),
    );
    return call;
  };
  return { sent, count, at: (ms: number) => advanceTo(startedAt, ms) };
}

it("gives a call that waited behind another its own deadlines, which begin when it was handed over", async () => {
  const { sent, count, at } = makeMeter({ sentWithinMs: 500, countedWithinMs: 700, verdictMs: 950 });
  const first = count();
  await at(100);
  const second = count();
  await at(400);
  sent[0]?.respond();
  await at(401);
  expect(first.outcome).toBe("counted");
  expect(sent.map(({ deadlineMs }) => deadlineMs)).toEqual([700, 100 + 700]);
  await at(100 + 949);
  expect(second.outcome).toBe(null);
  await at(100 + 951);
  expect(second.outcome).toBe(REFUSED);
});

it("refuses a call that waits too long behind another, and never sends it", async () => {
  const { sent, count, at } = makeMeter({ sentWithinMs: 500, countedWithinMs: 700, verdictMs: 950 });
  const first = count();
  await at(100);
  const second = count();
  await at(100 + 500);
  expect(second.outcome).toBe(null);
  await at(100 + 550);
  expect(second.outcome).toBe(REFUSED);
  sent[0]?.respond();
  await at(700);
  expect(first.outcome).toBe("counted");
  expect(sent).toHaveLength(1);
});
