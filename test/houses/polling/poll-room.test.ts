import { expect, it } from "vitest";
import { createPollRoom, type PollBudget } from "../../../src/houses/polling/poll-room.ts";

const MB = 1 << 20;

it("lets sixteen polls of one house wait at the same time, and any other house next to them", async () => {
  const room = createPollRoom();
  const response = Promise.withResolvers<void>();
  let waiting = 0;
  const slow = Array.from({ length: 20 }, () =>
    room.enter("slow", () => {
      waiting += 1;
      return response.promise;
    }),
  );
  expect(await room.enter("quick", () => Promise.resolve("done"))).toBe("done");
  expect(waiting).toBe(16);
  response.resolve();
  await Promise.all(slow);
  expect(waiting).toBe(20);
});

it("requests fewer large responses at the same time, and none once a poll holds eight megabytes", async () => {
  const room = createPollRoom();
  const poll = (...bytes: number[]) =>
    room.enter("large", (budget) => {
      const before = budget.parallel(8);
      for (const one of bytes) budget.add(one);
      return Promise.resolve([before, budget.isSpent()]);
    });
  expect(await poll(3 * MB, 3 * MB)).toEqual([8, false]);
  expect(await poll(4 * MB, 4 * MB)).toEqual([2, true]);
  expect(await poll(0)).toEqual([2, false]);
  for (let polls = 0; polls < 3; polls += 1) await poll(20_000);
  expect(await poll(20_000)).toEqual([8, false]);
});

it("begins no poll while the worker holds too much, until polls that hold it are over", async () => {
  const room = createPollRoom();
  const saved = Promise.withResolvers<void>();
  const holding = Array.from({ length: 8 }, (_, n) =>
    room.enter(`house ${n}`, async (budget: PollBudget) => {
      budget.add(16 * MB);
      await saved.promise;
    }),
  );
  expect(await room.enter("another", () => Promise.resolve("asked"))).toBeNull();
  saved.resolve();
  await Promise.all(holding);
  expect(await room.enter("another", () => Promise.resolve("asked"))).toBe("asked");
});

it("leaves half of its memory to others where many polls of one house hold large responses", async () => {
  const room = createPollRoom();
  const saved = Promise.withResolvers<void>();
  const begun: string[] = [];
  const polls = Array.from({ length: 16 }, () =>
    room.enter("large", async (budget: PollBudget) => {
      while (!budget.isSpent()) budget.add(2 * MB);
      begun.push("large");
      await saved.promise;
    }),
  );
  const other = (budget: PollBudget) => {
    expect(budget.isSpent()).toBe(false);
    return Promise.resolve("asked");
  };
  expect(await room.enter("another", other)).toBe("asked");
  expect(begun).toHaveLength(8);
  expect(await room.enter("large", other)).toBeNull();
  saved.resolve();
  await Promise.all(polls);
  expect(await room.enter("large", other)).toBe("asked");
});
