import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PermanentError, ThrottledError } from "../../src/errors.ts";
import type { RunReport } from "../../src/queue/report.ts";
import { createTraces } from "../../src/queue/traces.ts";
import { eventually } from "../support/eventually.ts";
import { createWorld, LEVEL, makeJob, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.end());

describe("a run that is over", () => {
  it("is reported with how it ended, once for each attempt", async () => {
    const reports: RunReport[] = [];
    let again = 0;
    const jobs = [
      makeJob({ name: "good", run: async () => ({ rounds: 3 }) }),
      makeJob({ name: "broken", run: () => Promise.reject(new Error("broken")) }),
      makeJob({ name: "hopeless", run: () => Promise.reject(new PermanentError("hopeless")) }),
      makeJob({
        name: "patient",
        run: () => (again++ === 0 ? Promise.reject(new ThrottledError("later", 1)) : Promise.resolve({})),
      }),
    ];
    await world.start(jobs, { ran: (report) => reports.push(report) });
    const queues = await world.open(jobs);
    for (const job of jobs) await queues.enqueue(job, { house: "alpha" });
    await eventually(() => reports.length >= 7);
    const ended = (queue: string) => reports.filter((one) => one.queue === queue).map(({ outcome }) => outcome);
    expect(ended("good")).toEqual(["done"]);
    expect(ended("broken")).toEqual(["retried", "retried", "failed"]);
    expect(ended("hopeless")).toEqual(["failed"]);
    expect(ended("patient")).toEqual(["waited", "done"]);
    expect(reports.find(({ queue }) => queue === "good")).toMatchObject({ counts: { rounds: 3 } });
    expect(reports.every(({ seconds }) => seconds >= 0 && seconds < 60)).toBe(true);
  });

  it("names the payloads of the run in its line, also if it failed, and many in lines before it", async () => {
    const job = makeJob({
      name: "about",
      async run({ note }, { follow }) {
        follow(["7", null, "7"]);
        if (note === "many") follow(Array.from({ length: 150 }, (_, n) => String(100 + n)));
        if (note === "bad") throw new PermanentError("bad");
        return { done: 1 };
      },
    });
    await world.start([job]);
    const queues = await world.open([job]);
    for (const note of ["few", "many", "bad"]) await queues.enqueue(job, { house: note, note });
    const lines = (key: string) => world.lines.filter((line) => line["queue"] === "about" && line["key"] === key);
    await eventually(() => ["few", "many", "bad"].every((key) => lines(key).length > 0));
    expect(lines("few")).toMatchObject([{ msg: "done", traces: ["7"] }]);
    expect(lines("bad")).toMatchObject([{ level: LEVEL.error, traces: ["7"] }]);
    await eventually(() => lines("many").length === 2);
    const named = lines("many").map(({ traces }) => (Array.isArray(traces) ? traces.length : 0));
    expect(named.toSorted((a, b) => a - b)).toEqual([51, 100]);
  });

  it("about no payload has no names", () => {
    expect(createTraces().lines()).toEqual([]);
  });
});
