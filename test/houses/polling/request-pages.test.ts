import { expect, test } from "vitest";
import { requestPages } from "../../../src/houses/polling/request-pages.ts";
import type { HouseResponse } from "../../../src/houses/polling/client.ts";
import type { LeasedTable } from "../../../src/houses/polling/lease-store.ts";
import { withOptions } from "../adapters/fixtures.ts";

const TABLE: LeasedTable = {
  tableId: 1,
  game: "crash",
  market: "global",
  etag: null,
  lastModified: null,
  version: 1n,
  respondedAt: null,
  payloadSha256: null,
  partSha256: null,
  refused: false,
  badResponses: 0,
  fullIsDue: true,
  newest: 100n,
  silentMs: 20_000,
  hasUnread: false,
};

/** The rounds whose pages are asked for in one poll, where the house has the pages from `first` to `last`. */
async function asksFor(table: Partial<LeasedTable>, [first, last]: [number, number]): Promise<number[]> {
  const { adapter, feed } = withOptions("bustabit", { first_round_id: 1 });
  const asked = await requestPages(adapter, feed, { ...TABLE, ...table }, async (ask) => {
    const id = Number(ask.roundId);
    const isThere = id >= first && id <= last;
    const response: HouseResponse = isThere
      ? {
          kind: "response",
          status: 200,
          contentType: null,
          etag: null,
          lastModified: null,
          body: Buffer.of(),
          elapsedMs: 1,
        }
      : { kind: "absent", status: 404, elapsedMs: 1 };
    return {
      tableId: 1,
      name: "crash/global",
      path: ask.path,
      requestedMs: 0,
      receivedMs: 1,
      response,
      roundId: String(id),
    };
  });
  return asked.map(({ roundId, isAhead }) => Number(roundId) * (isAhead === true ? -1 : 1)); // negative: out of turn
}

test("the next page is requested, and five at most while they exist", async () => {
  expect(await asksFor({}, [1, 100])).toEqual([101]);
  expect(await asksFor({}, [1, 102])).toEqual([101, 102, 103]);
  expect(await asksFor({}, [1, 999])).toEqual([101, 102, 103, 104, 105]);
  expect(await asksFor({ hasUnread: true }, [1, 999])).toEqual([]);
});

test("beyond pages without a round each later one is requested once, and then the first of them again", async () => {
  expect(await asksFor({ badResponses: 3 }, [1, 103])).toEqual([-104, 101]);
  expect(await asksFor({ badResponses: 3 }, [1, 104])).toEqual([-104]);
});

test("however many pages in a row bring no round, those after them are found: farther is looked the longer it lasts", async () => {
  const found = new Set<number>();
  for (let second = 1; second <= 3_600; second += 5) {
    const played = 100 + Math.floor(second / 25);
    const asked = await asksFor({ badResponses: 60, silentMs: second * 1000 }, [131, played]);
    const [first = 0] = asked;
    if (-first >= 131 && -first <= played) found.add(second);
  }
  const [soonest = Infinity] = found;
  expect(soonest).toBeLessThan(31 * 25 + 300); // within five minutes of the first page that can be read
});

test("after long silence numbers that were left out are stepped over, even many", async () => {
  expect(await asksFor({ silentMs: 150_000 }, [102, 110])).toEqual([101]);
  expect(await asksFor({ silentMs: 157_000 }, [102, 104])).toEqual([101, -102, -103, -104, -105]);
  const steps = new Set<number>();
  for (let second = 1_000; second < 1_500; second += 5) {
    steps.add((await asksFor({ silentMs: second * 1000 }, [0, 0]))[1] ?? 0);
  }
  expect(steps.size).toBeGreaterThan(60);
  expect(Math.min(...steps)).toBeLessThan(-230);
  expect(Math.max(...steps)).toBeGreaterThan(-105);
});
