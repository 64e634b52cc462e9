import { describe, expect, it } from "vitest";
import { batched } from "../../src/db/batched.ts";

/** A batched function, whose requests the test resolves. */
function make(most: number) {
  const requests: { asked: readonly number[]; result: PromiseWithResolvers<readonly number[]> }[] = [];
  const double = batched((asked: readonly number[]) => {
    const result = Promise.withResolvers<readonly number[]>();
    requests.push({ asked, result });
    return result.promise;
  }, most);
  const resolveNext = (from: number) => {
    const { asked, result } = requests[from]!;
    result.resolve(asked.map((n) => n * 2));
  };
  return { double, requests, resolveNext };
}

describe("batched calls", () => {
  it("sends a call alone in the same turn, and joins those that arrive meanwhile", async () => {
    const { double, requests, resolveNext } = make(10);
    const first = double(1);
    await Promise.resolve();
    expect(requests.map(({ asked }) => asked)).toEqual([[1]]);
    const others = Promise.all([double(2), double(3)]);
    expect(requests).toHaveLength(1);
    resolveNext(0);
    expect(await first).toBe(2);
    resolveNext(1);
    expect(await others).toEqual([4, 6]);
    expect(requests.map(({ asked }) => asked)).toEqual([[1], [2, 3]]);
  });

  it("sends at most as many together as it is allowed to", async () => {
    const { double, requests, resolveNext } = make(2);
    const all = Promise.all([1, 2, 3, 4, 5].map((n) => double(n)));
    const sizes: number[] = [];
    for (let at = 0; sizes.reduce((sum, size) => sum + size, 0) < 5; at += 1) {
      while (requests.length <= at) await Promise.resolve();
      sizes.push(requests[at]!.asked.length);
      resolveNext(at);
    }
    expect(await all).toEqual([2, 4, 6, 8, 10]);
    expect(sizes).toEqual([2, 2, 1]);
  });

  it("fails the calls of a failed request, and no other", async () => {
    const { double, requests, resolveNext } = make(10);
    const first = double(1);
    await Promise.resolve();
    const second = double(2);
    requests[0]!.result.reject(new Error("expected a server"));
    await expect(first).rejects.toThrow("expected a server");
    resolveNext(1);
    expect(await second).toBe(4);
  });

  it("fails the calls of a request that gives too few results", async () => {
    const { double, requests } = make(10);
    const first = double(1);
    await Promise.resolve();
    requests[0]!.result.resolve([]);
    await expect(first).rejects.toThrow("expected 1 results, found 0");
  });
});
