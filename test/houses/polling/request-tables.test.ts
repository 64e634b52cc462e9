import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requestTables } from "../../../src/houses/polling/request-tables.ts";
import { NEW_CIRCUIT } from "../../../src/houses/polling/circuit.ts";
import type { HouseClient } from "../../../src/houses/polling/client.ts";
import type { House } from "../../../src/houses/house.ts";
import { createHouseClient, LARGEST_BODY } from "../../../src/houses/polling/http.ts";
import { createPollRoom, type PollBudget } from "../../../src/houses/polling/poll-room.ts";
import type { Lease } from "../../../src/houses/polling/lease-store.ts";
import { summarizePoll } from "../../../src/houses/polling/poll-summary.ts";
import { page, respondWith, startBadHouse, type BadHouse } from "../../support/bad-house.ts";
import { eventually } from "../../support/eventually.ts";
import { feedEntry, houseEntry, tableEntry } from "../../support/houses.ts";

let server: BadHouse;
let http: HouseClient;
beforeEach(async () => {
  server = await startBadHouse();
  http = createHouseClient({ version: "0.0.0" });
});
afterEach(async () => {
  await http.close();
  await server.close();
});

const TIMEOUT_MS = 60_000;

function world(tables: number): { house: House; lease: Lease; open: ServerResponse[] } {
  const open: ServerResponse[] = [];
  for (let n = 0; n < tables; n += 1) server.on(`/${n}`, (_, response) => void open.push(response));
  const { settings } = houseEntry({
    timeout_ms: TIMEOUT_MS,
    tables: Array.from({ length: tables }, (_, n) =>
      tableEntry({ market: `m${n}`, feed: feedEntry({ path: `/${n}` }) }),
    ),
  });
  const leased = settings.tables.map(({ game, market }, n) => {
    return {
      tableId: n,
      game,
      market,
      etag: null,
      lastModified: null,
      version: 1n,
      respondedAt: null,
      payloadSha256: null,
      partSha256: null,
      refused: false,
      badResponses: 0,
      fullIsDue: true,
      newest: null,
      silentMs: null,
      hasUnread: false,
    };
  });
  return {
    open,
    house: { id: "alpha", settings, baseUrl: server.url, hide: (text) => text },
    lease: {
      dueAt: null,
      house: "alpha",
      shard: 0,
      epoch: 1n,
      isAfterExpiry: false,
      hasOther: false,
      now: "2026-11-21 04:00:00+00",
      takenAt: 0,
      circuit: NEW_CIRCUIT,
      bytesToday: 0,
      paused: [],
      tables: leased,
    },
  };
}

/** Room for any response. */
const AMPLE: PollBudget = {
  parallel: (most) => most,
  send: async (request) => request({ isSilent: false }),
  isSpent: () => false,
};

test("no request begins after half of the time, so that each has at least the other half", async () => {
  const { house, lease, open } = world(12);
  let nowMs = 100;
  const options = { allowPrivateHouses: true, elapsedMs: () => nowMs, budget: AMPLE };
  const asked = requestTables(http, house, lease, options, new AbortController().signal);
  await eventually(() => open.length === 8);
  nowMs = 100 + TIMEOUT_MS / 2 - 1;
  open[0]?.end(page(9));
  await eventually(() => open.length === 9);
  nowMs = 100 + TIMEOUT_MS / 2;
  for (const response of open.slice(1)) response.end(page(9));
  expect((await asked).map(({ tableId }) => tableId).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test("a wait for the budget that takes half of the time sends no request, takes no more, and is no failure of the house", async () => {
  const { house, lease } = world(12);
  for (const elapsed of [TIMEOUT_MS / 2, TIMEOUT_MS + 1]) {
    let nowMs = 0;
    let taken = 0;
    const mayRequest = () => {
      nowMs = elapsed;
      taken += 1;
      return Promise.resolve(true);
    };
    const options = { allowPrivateHouses: true, elapsedMs: () => nowMs, budget: AMPLE, mayRequest };
    expect(await requestTables(http, house, lease, options, new AbortController().signal)).toEqual([]);
    expect(taken).toBe(1);
  }
  expect(server.requests).toEqual([]);
});

test("a budget that cannot be read fails the poll only when its other requests have ended", async () => {
  const { house, lease, open } = world(2);
  let taken = 0;
  const mayRequest = () => {
    taken += 1;
    return taken === 1 ? Promise.resolve(true) : Promise.reject(new Error("no budget is stored"));
  };
  const options = { allowPrivateHouses: true, elapsedMs: () => 0, budget: AMPLE, mayRequest };
  let isOver = false;
  const asked = requestTables(http, house, lease, options, new AbortController().signal).finally(() => (isOver = true));
  asked.catch(() => undefined); // expected below
  await eventually(() => open.length === 1);
  expect(taken).toBe(2);
  expect(isOver).toBe(false);
  open[0]?.end(page(9));
  await expect(asked).rejects.toThrow("no budget is stored");
});

test("one good response among the first eight is enough to continue, however long the others take", async () => {
  const { house, lease, open } = world(12);
  const options = { allowPrivateHouses: true, elapsedMs: () => 0, budget: AMPLE };
  const asked = requestTables(http, house, lease, options, new AbortController().signal);
  await eventually(() => open.length === 8);
  open[3]?.writeHead(500).end();
  open[4]?.end(page(9));
  await eventually(() => open.length === 10);
  open[8]?.end(page(9));
  open[9]?.end(page(9));
  await eventually(() => open.length === 12);
  for (const response of open) response.end(page(9));
  expect(await asked).toHaveLength(12);
});

test("each response is timed by the given clock", async () => {
  const { house, lease, open } = world(1);
  let nowMs = 12.5;
  const options = { allowPrivateHouses: true, elapsedMs: () => nowMs, budget: AMPLE };
  const asked = requestTables(http, house, lease, options, new AbortController().signal);
  await eventually(() => open.length === 1);
  nowMs = 40.25;
  open[0]?.end(page(9));
  expect(await asked).toMatchObject([{ requestedMs: 12.5, receivedMs: 40.25, path: "/0", name: "crash/m0" }]);
});

test("many polls of a house whose responses are as large as they may be hold at most 64 MiB", async () => {
  const { house, lease } = world(2);
  const largest = gzipSync(Buffer.alloc(LARGEST_BODY, " "));
  for (const path of ["/0", "/1"]) server.on(path, respondWith(largest, { "content-encoding": "gzip" }));
  const room = createPollRoom();
  const saved = Promise.withResolvers<void>();
  let bytes = 0;
  let over = 0;
  const polls = Array.from({ length: 16 }, () =>
    room.enter("alpha", async (budget) => {
      const options = { allowPrivateHouses: true, elapsedMs: () => 0, budget };
      const asked = await requestTables(http, house, lease, options, new AbortController().signal);
      for (const { response } of asked) bytes += response.kind === "response" ? response.body.length : 0;
      over += 1;
      await saved.promise;
    }),
  );
  await eventually(() => over === 16);
  expect(bytes).toBeGreaterThan(8 * LARGEST_BODY);
  expect(bytes).toBeLessThanOrEqual(64 << 20);
  saved.resolve();
  await Promise.all(polls);
});

describe("a poll whose requests wait for the connections that another poll of its house holds", () => {
  /** Begins two polls of a house in one room, the second one when the first eight requests have all connections. */
  async function pollTwice({ house, lease }: ReturnType<typeof world>, elapsedMs: () => number, extra = {}) {
    const room = createPollRoom();
    const poll = async () => {
      const begun = Promise.withResolvers<void>();
      const over = room.enter("alpha", async (budget) => {
        const options = { allowPrivateHouses: true, elapsedMs, budget, ...extra };
        const requested = requestTables(http, house, lease, options, new AbortController().signal);
        begun.resolve();
        return requested;
      });
      await begun.promise;
      return { over };
    };
    return { first: await poll(), second: await poll() };
  }

  test("fails once with a timeout if the house did not respond", async () => {
    const silent = world(12);
    let nowMs = 0;
    const { first, second } = await pollTwice(silent, () => nowMs);
    await eventually(() => silent.open.length === 8);
    nowMs = TIMEOUT_MS / 2;
    for (const response of silent.open) response.destroy();
    expect(await first.over).toHaveLength(8);
    const failures = await second.over;
    expect(failures).toMatchObject([
      {
        path: "/0",
        name: "crash/m0",
        response: { kind: "failed", reason: "timeout", status: null, retryAfterMs: null },
      },
    ]);
    expect(silent.open).toHaveLength(8);
    expect(summarizePoll(failures ?? [])).toMatchObject({
      requests: 0,
      statuses: new Map(),
      outcome: { kind: "failed" },
    });
  });

  test("has no failure if the house responded meanwhile", async () => {
    const slow = world(8);
    let nowMs = 0;
    const { first, second } = await pollTwice(slow, () => nowMs);
    await eventually(() => slow.open.length === 8);
    nowMs = TIMEOUT_MS / 2;
    slow.open[0]?.end(page(9));
    for (const response of slow.open.slice(1)) response.destroy();
    expect(await second.over).toEqual([]);
    expect(await first.over).toHaveLength(8);
  });

  test("has no failure if the other poll waited for the budget of the house", async () => {
    let nowMs = 0;
    const left = Promise.withResolvers<boolean>();
    const { first, second } = await pollTwice(world(8), () => nowMs, { mayRequest: async () => left.promise });
    nowMs = TIMEOUT_MS / 2;
    left.resolve(true);
    expect(await first.over).toEqual([]);
    expect(await second.over).toEqual([]);
  });
});
