import { expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { createPollRoom, type PollBudget } from "../../../src/houses/polling/poll-room.ts";

const MB = 1 << 20;

const respond = (budget: PollBudget, bytes: number) => budget.send(() => Promise.resolve({ bytes }));

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
    room.enter("large", async (budget) => {
      const before = budget.parallel(8);
      for (const one of bytes) await respond(budget, one);
      return [before, budget.isSpent()];
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
  let responses = 0;
  const holding = Array.from({ length: 8 }, (_, n) =>
    room.enter(`house ${n}`, async (budget: PollBudget) => {
      await respond(budget, 16 * MB);
      responses += 1;
      await saved.promise;
    }),
  );
  await eventually(() => responses === 8);
  expect(await room.enter("another", () => Promise.resolve("asked"))).toBeNull();
  saved.resolve();
  await Promise.all(holding);
  expect(await room.enter("another", () => Promise.resolve("asked"))).toBe("asked");
});

it("leaves half of its memory to others where many polls of one house hold large responses", async () => {
  const room = createPollRoom();
  const saved = Promise.withResolvers<void>();
  let over = 0;
  let bytes = 0;
  const polls = Array.from({ length: 15 }, () =>
    room.enter("large", async (budget: PollBudget) => {
      while (!budget.isSpent()) {
        const sent = await respond(budget, 2 * MB);
        bytes += sent?.bytes ?? 0;
      }
      over += 1;
      await saved.promise;
    }),
  );
  const other = (budget: PollBudget) => {
    expect(budget.isSpent()).toBe(false);
    return Promise.resolve("asked");
  };
  expect(await room.enter("another", other)).toBe("asked");
  await eventually(() => over === 15);
  expect(bytes).toBeGreaterThan(32 * MB); // eight requests may bring as much
  expect(bytes).toBeLessThanOrEqual(64 * MB);
  expect(await room.enter("large", other)).toBeNull();
  saved.resolve();
  await Promise.all(polls);
  expect(await room.enter("large", other)).toBe("asked");
});

it("calls a house silent only if none of the requests that ended meanwhile had a response", async () => {
  const room = createPollRoom();
  await room.enter("mixed", async (budget) => {
    const seen: boolean[] = [];
    const begin = () => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const sent = budget.send(async ({ isSilent }) => {
        seen.push(isSilent);
        return { bytes: 0, hasResponse: await promise };
      });
      return async (hasResponse: boolean) => {
        resolve(hasResponse);
        await sent;
      };
    };
    const requests = Array.from({ length: 11 }, begin); // eight are sent, three wait
    await requests[0]!(false);
    await eventually(() => seen.length === 9);
    await requests[1]!(true);
    await eventually(() => seen.length === 10);
    await requests[2]!(false);
    await eventually(() => seen.length === 11);
    expect(seen.slice(8)).toEqual([true, false, false]);
    await Promise.all(requests.map((end) => end(true)));
  });
});
