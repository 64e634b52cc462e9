import pino from "pino";
import { afterEach, expect, it, vi } from "vitest";
import { startReadLoop } from "../../src/published/read-loop.ts";
import { eventually } from "../support/eventually.ts";

const MINUTE_MS = 60_000;

afterEach(() => void vi.useRealTimers());

it("waits for a read of any length, and starts no other one meanwhile", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "setImmediate", "setInterval"] });
  const held = Promise.withResolvers<void>();
  const reads: (readonly number[] | null)[] = [];
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const read = (tableIds: readonly number[] | null) => {
    reads.push(tableIds);
    return held.promise;
  };
  const loop = startReadLoop(read, 5_000, log);
  loop.refresh();
  loop.refresh([7]);
  await vi.advanceTimersByTimeAsync(MINUTE_MS);
  vi.useRealTimers();
  expect(reads).toEqual([null]);
  held.resolve();
  await eventually(() => reads.length > 1);
  expect(reads).toEqual([null, null]);
  expect(lines).toEqual([]);
  await loop.close();
});
