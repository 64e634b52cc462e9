import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { paceOf, pollAt, pollsOf, runsOf, timeOf } from "../../../src/houses/polling/pace.ts";

const everyMs = fc.integer({ min: 100, max: 3_600_000 });
const name = fc.string({ minLength: 1, maxLength: 20 });

/** The scheduled start of the run `n` of a pace. */
function startOf(pace: ReturnType<typeof paceOf>, n: number): number {
  const runs = runsOf(pace);
  return runs.offsetMs + n * runs.everyMs;
}

describe("runs of polls", () => {
  it("have a poll per interval, for ten seconds or one poll", () => {
    expect(paceOf(2_000, "alpha/0")).toMatchObject({ everyMs: 2_000, polls: 5 });
    expect(paceOf(100, "alpha/0")).toMatchObject({ everyMs: 100, polls: 100 });
    expect(paceOf(60_000, "alpha/0")).toMatchObject({ everyMs: 60_000, polls: 1 });
  });

  it("that start in time, or up to a second early or late, share all polls among them, none twice", () => {
    const n = fc.integer({ min: 200_000, max: 400_000 });
    const shift = fc.integer({ min: -999, max: 999 });
    fc.assert(
      fc.property(everyMs, name, n, fc.array(shift, { minLength: 2, maxLength: 8 }), (every, shard, from, shifts) => {
        const pace = paceOf(every, shard);
        const runs = shifts.map((ms, at) => pollsOf(pace, startOf(pace, from + at) + ms));
        for (const [at, { first, end }] of runs.entries()) {
          expect(end - first).toBe(pace.polls);
          if (at > 0) expect(first).toBe(runs[at - 1]?.end);
        }
      }),
    );
  });

  it("start a second before their first poll, whatever the interval", () => {
    fc.assert(
      fc.property(everyMs, name, (every, shard) => {
        const pace = paceOf(every, shard);
        const start = startOf(pace, 300_000);
        expect(timeOf(pace, pollsOf(pace, start).first) - start).toBe(1_000);
      }),
    );
  });

  it("keep their schedule when only the interval changes", () => {
    const schedules = [100, 200, 500, 1_000, 2_000, 5_000, 10_000].map((every) => runsOf(paceOf(every, "alpha/0")));
    expect(new Set(schedules.map(({ everyMs: run, offsetMs }) => `${run} ${offsetMs}`)).size).toBe(1);
  });

  it("that start in between begin with the newest poll that is due", () => {
    const pace = paceOf(2_000, "alpha/0");
    const start = startOf(pace, 300_000) + 1_000; // of the first poll
    const late = pollsOf(pace, start + 4_500);
    expect(timeOf(pace, late.first)).toBe(start + 4_000);
    expect(timeOf(pace, late.end)).toBe(start + 10_000);
    expect(pollAt(pace, start + 4_500)).toBe(late.first);
  });

  it("of different houses start at different times", () => {
    const offsets = new Set(Array.from({ length: 100 }, (_, n) => paceOf(2_000, `h${n}/0`).offsetMs));
    expect(offsets.size).toBeGreaterThan(90);
  });
});
