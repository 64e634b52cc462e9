import { expect, it } from "vitest";
import { createLines } from "../../../src/houses/fairness/lines.ts";
import { walkBackSliced, walkUntil } from "../../../src/houses/fairness/walk.ts";

/** What happened in one tick of the event loop, at most: counted by `count` while `work` runs. */
async function mostPerTick(work: (count: (n: number) => void) => Promise<unknown>): Promise<number> {
  let now = 0;
  let most = 0;
  let isOn = true;
  const tick = () => {
    now = 0;
    if (isOn) setImmediate(tick);
  };
  setImmediate(tick);
  await work((n) => {
    now += n;
    most = Math.max(most, now);
  });
  isOn = false;
  return most;
}

const invented = (n: number) => String(n).padStart(64, "0");

it("concurrent walks of many houses alternate, so that other work waits for at most one of them", async () => {
  const most = await mostPerTick((count) =>
    Promise.all(Array.from({ length: 8 }, (_, n) => walkBackSliced(invented(n), 40_000, { visit: () => count(1) }))),
  );
  // the first slice of each begins where it is called
  expect(most).toBeLessThanOrEqual(8 * 10_000);
  const later = await mostPerTick((count) =>
    Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        walkBackSliced(invented(n), 40_000, { visit: (_hash, step) => count(step > 10_000 ? 1 : 0) }),
      ),
    ),
  );
  expect(later).toBeLessThanOrEqual(10_000);
});

it("the short walks of a response full of invented hashes leave time for other work", async () => {
  const claimed = Array.from({ length: 60 }, (_, n) => invented(n));
  const most = await mostPerTick(async (count) => {
    const lines = createLines("sha256_hex", [], claimed, new Set(), async (...args) => {
      const came = await walkUntil(...args);
      count(came.steps);
      return came;
    });
    await lines.advance(claimed, 2_000, undefined);
  });
  expect(most).toBeLessThanOrEqual(12_000);
});
