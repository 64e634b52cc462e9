import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { batched } from "../../src/db/batched.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A function that gathers; each request is answered when the test lets it. */
function make() {
  const sizes: number[] = [];
  const answers: (() => void)[] = [];
  const ask = batched(
    async (asked: readonly number[]) => {
      sizes.push(asked.length);
      await new Promise<void>((resolve) => answers.push(resolve));
      return asked;
    },
    5,
    (call) => call > 0,
  );
  const turn = () => vi.advanceTimersByTimeAsync(0);
  const answer = async () => {
    await turn();
    answers.shift()?.();
    await turn();
  };
  return { ask, sizes, answer, turn };
}

/** One whose newest request had two calls. */
async function makeBusy() {
  const made = make();
  for (const call of [1, 2]) void made.ask(call);
  await made.answer();
  expect(made.sizes).toEqual([2]);
  return made;
}

describe("patient calls", () => {
  it("are sent in the same turn while they come one by one", async () => {
    const { ask, sizes, answer, turn } = make();
    for (const call of [1, 2, 3]) {
      void ask(call);
      await turn();
      expect(sizes).toHaveLength(call);
      await answer();
    }
  });

  it("wait until 50 ms after a request that several shared, also if they come one by one then", async () => {
    const { ask, sizes } = await makeBusy();
    void ask(3);
    await vi.advanceTimersByTimeAsync(40);
    void ask(4);
    await vi.advanceTimersByTimeAsync(9);
    expect(sizes).toEqual([2]);
    await vi.advanceTimersByTimeAsync(1);
    expect(sizes).toEqual([2, 2]);
  });

  it("do not wait if that was 50 ms ago", async () => {
    const { ask, sizes, turn } = await makeBusy();
    await vi.advanceTimersByTimeAsync(50);
    void ask(3);
    await turn();
    expect(sizes).toEqual([2, 1]);
  });

  it("wait no longer when their request is full, or when one comes that is not patient", async () => {
    for (const more of [[4, 5, 6, 7], [0]]) {
      const { ask, sizes, turn } = await makeBusy();
      void ask(3);
      await turn();
      expect(sizes).toEqual([2]);
      for (const call of more) void ask(call);
      await turn();
      expect(sizes).toEqual([2, 1 + more.length]);
    }
  });

  it("that were one alone let the next one go in the same turn again", async () => {
    const { ask, sizes, answer, turn } = await makeBusy();
    void ask(3);
    await vi.advanceTimersByTimeAsync(50);
    await answer();
    void ask(4);
    await turn();
    expect(sizes).toEqual([2, 1, 1]);
  });

  it("are sent after a request that is answered later than they waited", async () => {
    const { ask, sizes, answer, turn } = make();
    for (const call of [1, 2]) void ask(call);
    await turn();
    void ask(3);
    await vi.advanceTimersByTimeAsync(100);
    expect(sizes).toEqual([2]);
    await answer();
    expect(sizes).toEqual([2, 1]);
  });
});
