import { expect, it } from "vitest";
import { Slices } from "../src/slices.ts";

it("work that took a slice lets other work of its thread run before it continues", async () => {
  const slices = new Slices();
  let hasRun = false;
  setImmediate(() => (hasRun = true));
  const startedAt = performance.now();
  while (performance.now() - startedAt < 11) await Promise.resolve(); // the work
  expect(hasRun).toBe(false);
  await slices.next();
  expect(hasRun).toBe(true);
});
