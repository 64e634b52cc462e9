import { expect, test } from "vitest";
import { sleep } from "../src/abort.ts";

test("waits no shorter than asked, though timers count whole milliseconds", async () => {
  const { signal } = new AbortController();
  const waited: number[] = [];
  for (let times = 0; times < 50; times += 1) {
    const from = performance.now();
    await sleep(1.9, [signal]);
    waited.push(performance.now() - from);
  }
  expect(Math.min(...waited)).toBeGreaterThanOrEqual(1.9);
});

test("ends immediately when a signal is aborted, before or meanwhile", async () => {
  const [before, meanwhile] = [new AbortController(), new AbortController()];
  before.abort();
  expect(await sleep(60_000, [meanwhile.signal, before.signal])).toBe(false);
  const waiting = sleep(60_000, [meanwhile.signal]);
  meanwhile.abort();
  expect(await waiting).toBe(false);
});
