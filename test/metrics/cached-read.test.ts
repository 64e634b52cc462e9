import { describe, expect, it, vi } from "vitest";
import { readCached } from "../../src/metrics/cached-read.ts";

describe("a cached read of a server", () => {
  it("is reused for a while by all callers, and not repeated while one is pending", async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    const look = vi.fn<() => Promise<number>>(() => promise);
    const ask = readCached("it", look, () => undefined);
    const [first, second] = [ask(), ask()];
    resolve(7);
    expect([await first, await second, await ask()]).toEqual([7, 7, 7]);
    expect(look).toHaveBeenCalledTimes(1);
  });

  it("that fails or times out gives null, and is logged", async () => {
    const failures: string[] = [];
    const failed = (error: unknown) => failures.push(String(error));
    expect(await readCached("it", () => Promise.reject(new Error("away")), failed)()).toBeNull();
    const never = readCached("PostgreSQL", () => new Promise<number>(() => undefined), failed);
    expect(await Promise.all([never(), never()])).toEqual([null, null]);
    expect(failures[0]).toBe("Error: away");
    expect(failures[1]).toMatch(/^Error: PostgreSQL did not respond within \d+ ms$/);
  });
});
