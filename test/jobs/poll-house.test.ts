import type { ServerResponse } from "node:http";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import pollHouse from "../../jobs/poll-house.ts";
import { pollAt, pollsOf, timeOf, type Pace } from "../../src/houses/polling/pace.ts";
import { deletePause, insertPause } from "../../src/queue/store.ts";
import { openPipeline } from "../../src/db/client.ts";
import type { HouseClient } from "../../src/houses/polling/client.ts";
import { rollUpUptime } from "../../src/housekeeping/uptime-store.ts";
import { listPollSuccess } from "../../src/site/site-store.ts";
import { createHouseClient } from "../../src/houses/polling/http.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { createPasses, type Passes } from "../../src/pass/passes.ts";
import { page, respondWith, startBadHouse, badResponses, type BadHouse } from "../support/bad-house.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { feedEntry, forgetHouses, houseEntry, pauseHouse, tableEntry } from "../support/houses.ts";

const { sql, pipeline } = await openTestDatabase();
let house: BadHouse;
let http: HouseClient;
let passes: Passes;
beforeEach(async () => {
  passes = createPasses(pipeline);
  await forgetHouses(sql);
  house = await startBadHouse();
  http = createHouseClient({ version: "0.0.0" });
});
afterEach(async () => {
  await http.close();
  await house.close();
});

/** A house of as many tables at /0, /1 … */
function alpha(tables: number, changed: Record<string, unknown> = {}) {
  return houseEntry({
    base_url: house.url,
    tables: Array.from({ length: tables }, (_, n) =>
      tableEntry({ market: `m${n}`, feed: feedEntry({ path: `/${n}` }) }),
    ),
    ...changed,
  });
}

async function poll(
  options: {
    house?: string;
    shard?: number;
    pace?: Pace;
    from?: number;
    signal?: AbortSignal;
    ending?: AbortSignal;
    env?: Record<string, string>;
    token?: string;
  } = {},
): Promise<{ counts: Record<string, number>; enqueued: string[]; warnings: string[]; errors: string[] }> {
  const { context, enqueued, lines } = testContext(sql, {
    passes,
    http,
    env: options.env ?? { ALLOW_PRIVATE_HOUSES: "1" },
    variables: () => options.token,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    ...(options.ending === undefined ? {} : { ending: options.ending }),
  });
  const { house: id = "alpha", shard = 0, pace, from } = options;
  const counts = await pollHouse.run({ house: id, shard, pace, from }, context);
  const linesOf = (wanted: number) => lines.flatMap(({ level, msg }) => (level === wanted ? [msg] : []));
  return { counts, enqueued, warnings: linesOf(40), errors: linesOf(50) };
}

async function bodies(): Promise<string[]> {
  const rows = await sql<{ body: Buffer }[]>`select body from payloads order by table_id, received_at`;
  return rows.map(({ body }) => gunzipSync(body).toString());
}

/** Extends the wait of the first shard, which may be a second, so that it is not over before the next poll. */
async function extendWait(): Promise<void> {
  const waiting = await sql`
    update poll_leases
    set next_allowed_at = next_allowed_at + interval '1 minute'
    where shard = 0
      and next_allowed_at > last_poll_at
    returning shard`;
  expect(waiting).toHaveLength(1);
}

const failures = () => sql`select status, reason, detail from poll_failures order by table_id`;
const paths = () => house.requests.map(({ path }) => path);

describe("a poll", () => {
  test("stores the payload of each table as received, read", async () => {
    await applyHouses(sql, [alpha(2)]);
    house.on("/0", respondWith(page(9)));
    house.on("/1", respondWith(' {"rounds" : [ ]} '));
    const { counts, enqueued } = await poll();
    expect(counts).toMatchObject({ requests: 2, payloads: 2, unchanged: 0, failed: 0 });
    expect(await bodies()).toEqual([page(9), ' {"rounds" : [ ]} ']);
    expect(enqueued).toEqual([]);
  });

  test("stamps its responses by the clock of the database", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    const [before] = await sql<{ at: string }[]>`select clock_timestamp()::text as at`;
    await poll();
    const [row] = await sql`
      select
        ${before?.at ?? ""}::timestamptz < requested_at as after,
        requested_at < received_at as ordered,
        received_at < clock_timestamp() as before
      from payloads`;
    expect(row).toEqual({ after: true, ordered: true, before: true });
  });

  test("requests changes only, and stores an unchanged response once", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", (request, response) => {
      if (request.headers["if-none-match"] === '"9"') response.writeHead(304).end();
      else response.writeHead(200, { etag: '"9"' }).end(page(9));
    });
    await poll();
    const { counts, enqueued } = await poll();
    expect(counts).toMatchObject({ requests: 1, payloads: 0, unchanged: 1, failed: 0 });
    expect(enqueued).toEqual([]);
    expect(await bodies()).toEqual([page(9)]);
    await sql`update feeds set last_full_at = now() - interval '11 minutes'`;
    await poll();
    expect(house.requests.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, '"9"', undefined]);
  });

  test("sends Last-Modified if there is no ETag", async () => {
    await applyHouses(sql, [alpha(1)]);
    const at = "Fri, 20 Nov 2026 10:00:00 GMT";
    house.on("/0", respondWith(page(9), { "last-modified": at, date: "Fri, 20 Nov 2026 10:01:00 GMT" }));
    await poll();
    await poll();
    expect(house.requests[1]?.headers["if-modified-since"]).toBe(at);
  });

  test("sends the house's headers and secrets, and stores none of them", async () => {
    const feed = feedEntry({ path: "/rounds?key=${TOKEN}" });
    await applyHouses(sql, [alpha(1, { headers: { "X-Token": "${TOKEN}" }, tables: [tableEntry({ feed })] })]);
    house.on("/rounds?key=s3cr3t", respondWith(page(9)));
    await poll({ token: "s3cr3t" });
    expect(house.requests[0]?.headers["x-token"]).toBe("s3cr3t");
    expect([...(await sql`select path from payloads`)]).toEqual([{ path: "/rounds?key=${TOKEN}" }]);
  });

  test("that ends with the page of a round that was not played yet is good, on the status page too", async () => {
    const pages = tableEntry({ adapter: "ethercrash", feed: { first_round_id: 1 } });
    await applyHouses(sql, [alpha(1, { tables: [pages] })]);
    for (const id of [1, 2]) house.on(`/game/${id}`, respondWith(`<h4>Game ${id} | Crashed @2.00x</h4>`));
    expect((await poll()).counts).toMatchObject({ requests: 3, payloads: 2, failed: 0 });
    expect((await poll()).counts).toMatchObject({ requests: 1, failed: 0 });
    const [sums] = await sql`select statuses from polls`;
    expect(sums).toEqual({ statuses: { 200: 2, absent: 2 } });
    await rollUpUptime(sql);
    const [day] = await sql`select good::integer, total::integer from uptime_days where component = 'house:alpha'`;
    expect(day).toEqual({ good: 4, total: 4 });
    expect(await sql.begin((tx) => listPollSuccess(tx))).toMatchObject([{ house: "alpha", asked: 4, good: 4 }]);
  });

  test("stores the number of a round in the path of its page, also if it contains the value of a variable", async () => {
    const pages = tableEntry({ adapter: "ethercrash", feed: { first_round_id: 7218079 } });
    await applyHouses(sql, [alpha(1, { headers: { "X-Token": "${TOKEN}" }, tables: [pages] })]);
    for (const id of [7218079, 7218080]) house.on(`/game/${id}`, respondWith(`<h4>Game ${id} | Crashed @2.00x</h4>`));
    expect((await poll({ token: "8080" })).counts).toMatchObject({ requests: 3, rounds: 2 });
    expect(await sql`select path, state from payloads order by received_at`).toEqual([
      { path: "/game/7218079", state: "read" },
      { path: "/game/7218080", state: "read" },
    ]);
  });

  test("of a house that is unknown, paused or disabled asks nothing", async () => {
    await applyHouses(sql, [alpha(1)]);
    expect((await poll({ house: "nobody" })).counts).toEqual({ skipped: 1 });
    await pauseHouse(sql, { house: "alpha", by: "ana", reason: "test" });
    expect((await poll()).counts).toEqual({ skipped: 1 });
    await applyHouses(sql, [houseEntry({ id: "beta" })]);
    expect((await poll()).counts).toEqual({ skipped: 1 });
    expect(house.requests).toEqual([]);
  });

  test("of a private house sends nothing if this process does not allow it", async () => {
    await applyHouses(sql, [alpha(1)]);
    expect((await poll({ env: {} })).counts).toMatchObject({ failed: 1 });
    expect(house.requests).toEqual([]);
    expect(await failures()).toMatchObject([{ status: null, reason: "refused_address" }]);
  });

  test("is scheduled for each house and shard, with payloads the job takes", async () => {
    await applyHouses(sql, [alpha(101, { poll_every_ms: 500 })]);
    const schedules = (await pollHouse.schedule?.({ sql, settings: testContext(sql).context.settings })) ?? [];
    expect(schedules).toMatchObject([
      { payload: { house: "alpha", shard: 0, pace: { everyMs: 500, polls: 20 } }, everyMs: 10_000 },
      { payload: { house: "alpha", shard: 1, pace: { everyMs: 500, polls: 20 } }, everyMs: 10_000 },
    ]);
    expect(schedules.map(({ payload }) => pollHouse.payload.safeParse(payload).success)).toEqual([true, true]);
  });
});

describe("a run of polls", () => {
  /** Polls that begin now; the last one is far away unless `polls` are given. */
  const paceFrom = (everyMs: number, polls = 1_000_000): Pace => ({
    everyMs,
    polls,
    spreadMs: 0,
    offsetMs: Date.now() % (everyMs * polls),
  });

  test("polls at its pace until the next run", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    const pace = { everyMs: 50, polls: 100, offsetMs: (Date.now() + 1_000) % 5_000, spreadMs: 0 }; // its first poll is in a second
    const { end } = pollsOf(pace, Date.now());
    const { counts, enqueued, warnings } = await poll({ pace });
    expect(Date.now()).toBeGreaterThanOrEqual(timeOf(pace, end - 1));
    expect(house.requests.length).toBeGreaterThan(1); // a hundred, unless this machine was too slow for all
    expect(counts).toMatchObject({ requests: house.requests.length, payloads: 1 });
    expect({ enqueued, warnings }).toEqual({ enqueued: [], warnings: [] });
  });

  test("begins a poll at random within its spread", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    vi.spyOn(Math, "random").mockReturnValue(0.9);
    onTestFinished(() => void vi.restoreAllMocks());
    const pace = { everyMs: 1_000, polls: 1, offsetMs: (Date.now() + 500) % 1_000, spreadMs: 400 };
    const { first } = pollsOf(pace, Date.now());
    expect((await poll({ pace })).counts).toMatchObject({ requests: 1 });
    expect(Date.now()).toBeGreaterThanOrEqual(timeOf(pace, first) + 360);
  });

  test("continues after a poll that fails", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    await sql`alter table poll_leases rename column circuit to elsewhere`;
    const ending = new AbortController();
    const env = { ALLOW_PRIVATE_HOUSES: "1" };
    const { context, lines } = testContext(sql, { passes, http, env, ending: ending.signal });
    const run = pollHouse.run({ house: "alpha", shard: 0, pace: paceFrom(100) }, context);
    try {
      const expected = /^a poll failed, and the next one tries again: .*circuit/;
      await eventually(() => lines.some(({ msg }) => expected.test(msg)));
    } finally {
      await sql`alter table poll_leases rename column elsewhere to circuit`;
    }
    await eventually(() => house.requests.length > 0);
    ending.abort();
    const counts = await run;
    expect(counts["failed_polls"]).toBeGreaterThan(0);
    expect(counts["payloads"]).toBe(1);
  });

  test("warns once and without a stack while PostgreSQL is away", async () => {
    const away = createPasses(openPipeline("postgres://nobody@127.0.0.1:1/none", { name: "test" }));
    const { context, lines } = testContext(sql, { passes: away, http });
    await expect(pollHouse.run({ house: "alpha", shard: 0, pace: paceFrom(50, 3) }, context)).rejects.toThrow();
    expect(lines.map(({ level, err }) => [level, err])).toEqual([
      [40, undefined],
      [20, undefined],
      [20, undefined],
    ]);
  });

  test("without a poll that succeeds fails with the last error", async () => {
    await applyHouses(sql, [alpha(1)]);
    await sql`alter table poll_leases rename column circuit to elsewhere`;
    try {
      await expect(poll({ pace: paceFrom(50, 3) })).rejects.toThrow(/circuit/);
    } finally {
      await sql`alter table poll_leases rename column elsewhere to circuit`;
    }
  });

  test("of a process that takes no more work ends after the poll, and queues the rest", async () => {
    await applyHouses(sql, [alpha(1)]);
    const ending = new AbortController();
    house.on("/0", (_, response) => {
      ending.abort();
      response.end(page(9));
    });
    const pace = paceFrom(60_000);
    const { counts, enqueued } = await poll({ pace, ending: ending.signal });
    expect(counts).toMatchObject({ requests: 1, payloads: 1 });
    const from = pollAt(pace, Date.now()) + 1;
    expect(enqueued).toEqual([`poll-house ${JSON.stringify({ house: "alpha", shard: 0, pace, from })}`]);
  });

  test("drops the polls that were due while a slow one was active", async () => {
    await applyHouses(sql, [alpha(1)]);
    const pace = paceFrom(100);
    const first = pollAt(pace, Date.now());
    const ending = new AbortController();
    house.on("/0", (_, response) => {
      if (house.requests.length > 1) ending.abort();
      void eventually(() => pollAt(pace, Date.now()) > first + 5).then(() => response.end(page(9)));
    });
    const { enqueued } = await poll({ pace, ending: ending.signal });
    expect(house.requests).toHaveLength(2);
    const { from } = JSON.parse(enqueued[0]?.slice("poll-house ".length) ?? "") as { from: number };
    expect(from).toBeGreaterThan(first + 5);
  });

  test("leaves out the polls that another one has saved", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    const pace = paceFrom(100);
    const [before, after] = [new AbortController(), new AbortController()];
    const other = poll({ pace, ending: before.signal });
    const { takeLease } = passes;
    let asked = 0;
    passes = {
      ...passes,
      async takeLease(request) {
        const saved = () => sql`select from poll_leases where last_due_at >= ${request.dueAt}`;
        await eventually(async () => (await saved()).length > 0);
        asked += 1;
        if (asked === 3) after.abort();
        return takeLease(request);
      },
    };
    try {
      expect((await poll({ pace, ending: after.signal })).counts).toEqual({ skipped: 3 });
    } finally {
      before.abort();
      await other;
    }
  });

  test("leaves out none because of a single poll", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    const due = () => sql`select last_due_at from poll_leases`;
    await poll({ pace: paceFrom(50, 1) });
    const before = await due();
    expect((await poll()).counts).toMatchObject({ requests: 1 });
    expect(await due()).toEqual(before);
    expect(before).not.toEqual([{ last_due_at: null }]);
  });

  test("continues though the clock of the machine is set back", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    const ending = new AbortController();
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      const run = poll({ pace: paceFrom(100), ending: ending.signal });
      await eventually(() => house.requests.length > 0);
      vi.setSystemTime(Date.now() - 3_600_000);
      await eventually(() => house.requests.length > 2);
      ending.abort();
      expect((await run).counts["requests"]).toBeGreaterThan(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test("that another process began polls from where that one ended", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    const pace = { everyMs: 2_400, polls: 2, offsetMs: Date.now() % 4_800, spreadMs: 0 };
    const from = pollsOf(pace, Date.now()).first + 2;
    expect((await poll({ pace, from })).counts).toEqual({});
    expect(house.requests).toEqual([]);
  });

  test("ends with an error when it is aborted between polls", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    const aborted = new AbortController();
    const run = poll({ pace: paceFrom(60_000), signal: aborted.signal });
    const failure = run.catch((error: unknown) => error);
    await eventually(async () => (await bodies()).length === 1);
    aborted.abort(new Error("stopped by the test"));
    expect(await failure).toMatchObject({ message: "stopped by the test" });
  });

  test("of a paused queue asks nothing", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    await insertPause(sql, { queue: "poll-house", by: "ana", reason: "maintenance", until: null });
    expect((await poll()).counts).toEqual({ skipped: 1 });
    await deletePause(sql, "poll-house", null);
    expect((await poll()).counts).toMatchObject({ requests: 1 });
  });
});

describe("a house that responds badly", () => {
  test.each([
    ["HTML", badResponses.html, "<!doctype html><title>Back soon</title>"],
    ["nothing", badResponses.empty, ""],
    ["incomplete JSON", badResponses.truncatedJson, '{"rounds":[{"id":1,"multiplier":1.5},{"id":2,"mult'],
    ["other types", respondWith('{"rounds":{"id":[]}}'), '{"rounds":{"id":[]}}'],
  ])("with %s has its payload stored verbatim, for normalize to read", async (_, listener, body) => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", listener);
    expect((await poll()).counts).toMatchObject({ payloads: 1 });
    expect(await bodies()).toEqual([body]);
  });

  test.each([
    ["in silence", badResponses.silence, "timeout", null],
    ["by a reset", badResponses.reset, "connection", null],
    ["and hangs up", badResponses.hangUp, "connection", 200],
    ["drop by drop", badResponses.slowBody, "timeout", 200],
    ["with endless headers", badResponses.slowHeaders, "timeout", null],
    ["with 429", respondWith("", {}, 429), "status", 429],
    ["with 500", respondWith("", {}, 500), "status", 500],
    ["with a redirect", badResponses.redirect, "redirect", 302],
    ["with 50 MB", badResponses.fiftyMegabytes, "too_large", 200],
    ["with a bomb of gzip", badResponses.gzipBomb, "too_large", 200],
    ["with gzip that is none", badResponses.brokenGzip, "not_decodable", 200],
  ])("%s has the failure kept with its reason, and loses nothing", async (_, listener, reason, status) => {
    await applyHouses(sql, [alpha(1, { timeout_ms: 20_000 })]);
    house.on("/0", respondWith(page(9), { etag: '"9"' }));
    await poll();
    // headers that are expected before the timeout have seconds to arrive
    if (reason === "timeout") await applyHouses(sql, [alpha(1, { timeout_ms: status === null ? 400 : 3_000 })]);
    const before =
      await sql`select f.etag, h.payload_sha256, h.responded_at from feeds f join table_heads h using (table_id)`;
    house.on("/0", listener);
    const { counts, enqueued } = await poll();
    expect(counts).toMatchObject({ requests: 1, payloads: 0, unchanged: 0, failed: 1 });
    expect(enqueued).toEqual([]);
    expect(await failures()).toMatchObject([{ status, reason }]);
    expect(
      await sql`select f.etag, h.payload_sha256, h.responded_at from feeds f join table_heads h using (table_id)`,
    ).toEqual(before);
    expect(await bodies()).toEqual([page(9)]);
  });

  test("for one table has the others read all the same", async () => {
    await applyHouses(sql, [alpha(3)]);
    house.on("/0", respondWith("", {}, 500));
    house.on("/1", respondWith(page(1)));
    house.on("/2", respondWith(page(2)));
    expect((await poll()).counts).toMatchObject({ requests: 3, payloads: 2, unchanged: 0, failed: 1 });
    expect([...(await sql`select circuit, failures_in_row from poll_leases`)]).toEqual([
      { circuit: "closed", failures_in_row: 0 },
    ]);
  });

  test("is left alone after five polls, and then asked once for one table", async () => {
    await applyHouses(sql, [alpha(3)]);
    for (let polls = 0; polls < 5; polls += 1) await poll();
    expect(house.requests).toHaveLength(15);
    await extendWait();
    expect((await poll()).counts).toEqual({ skipped: 1 });
    await sql`update poll_leases set next_allowed_at = now()`;
    for (const path of ["/0", "/1", "/2"]) house.on(path, respondWith(page(9)));
    expect((await poll()).counts).toMatchObject({ requests: 1, payloads: 1 });
    expect((await poll()).counts).toMatchObject({ requests: 3 });
  });

  test("that cannot be saved counts against its circuit, so that it is left alone", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    await sql`alter table payloads add constraint payload_is_refused check (bytes < 0) not valid`;
    for (let polls = 0; polls < 5; polls += 1) await expect(poll()).rejects.toThrow(/payload_is_refused/);
    await extendWait();
    expect((await poll()).counts).toEqual({ skipped: 1 });
    const [lease] = await sql`select circuit, last_error from poll_leases`;
    expect(lease).toMatchObject({
      circuit: "open",
      last_error: expect.stringMatching(/^its responses could not be saved: /),
    });
    await sql`alter table payloads drop constraint payload_is_refused`;
    await sql`update poll_leases set next_allowed_at = now()`;
    expect((await poll()).counts).toMatchObject({ payloads: 1 });
  });

  test("that sends more in a day than is stored is suspended until the next, with the reason", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    await sql`update poll_leases set bytes_on = (now() at time zone 'UTC')::date - 1, bytes_today = 1 << 30`;
    expect((await poll()).counts).toMatchObject({ payloads: 1 }); // that was yesterday
    await sql`update poll_leases set bytes_today = (1 << 30) - 10`;
    house.on("/0", respondWith(page(10)));
    expect((await poll()).counts).toMatchObject({ payloads: 1 });
    expect((await poll()).counts).toEqual({ skipped: 1 });
    const [lease] = await sql`
      select
        circuit,
        last_error,
        next_allowed_at between midnight and midnight + interval '1 minute' as at_midnight
      from poll_leases
      cross join lateral (select date_trunc('day', last_poll_at, 'UTC') + interval '1 day' as midnight) day`;
    expect(lease).toEqual({
      circuit: "closed",
      last_error:
        "its responses of today total 1.0 GiB, above the limit of 1.0 GiB a day for 1 tables; it is polled again at 00:00 UTC",
      at_midnight: true,
    });
  });

  test("that sends the same list again and again is not suspended, since it is stored once", async () => {
    await applyHouses(sql, [
      alpha(2, { tables: [0, 0].map((_, n) => tableEntry({ market: `m${n}`, feed: feedEntry({ path: "/0" }) })) }),
    ]);
    house.on("/0", respondWith(page(9)));
    await poll();
    const [first] = await sql`select bytes_today from poll_leases`;
    expect(first).toEqual({ bytes_today: BigInt(page(9).length) });
    await sql`update poll_leases set bytes_today = (1::bigint << 31) - 10`;
    expect((await poll()).counts).toMatchObject({ requests: 1, payloads: 0 });
    expect((await poll()).counts).toMatchObject({ requests: 1, payloads: 0 });
    const [sums] = await sql`select sum(bytes)::integer as bytes from polls`;
    expect(sums).toEqual({ bytes: 3 * page(9).length });
  });

  test("of which one is too large for a poll is asked for the others first next time", async () => {
    await applyHouses(sql, [alpha(20)]);
    const large = JSON.stringify({ rounds: [{ id: 1, multiplier: 1.5 }], more: "x".repeat(1_500_000) });
    for (let n = 0; n < 20; n += 1) house.on(`/${n}`, respondWith(large));
    const first = (await poll()).counts["requests"] ?? 0;
    expect(first).toBeGreaterThanOrEqual(8);
    expect(first).toBeLessThan(16);
    for (let polls = 0; polls < 4; polls += 1) await poll();
    expect(new Set(paths()).size).toBe(20);
  });

  test("to the first eight of its tables is not asked for the rest", async () => {
    await applyHouses(sql, [alpha(20)]);
    expect((await poll()).counts).toMatchObject({ requests: 8, failed: 8 });
  });

  test("by asking us to wait is not asked for the rest, nor before the time is over", async () => {
    await applyHouses(sql, [alpha(20)]);
    for (let n = 0; n < 20; n += 1) house.on(`/${n}`, respondWith("", { "retry-after": "60" }, 429));
    const { counts } = await poll();
    expect(counts["requests"]).toBeLessThanOrEqual(8);
    expect((await poll()).counts).toEqual({ skipped: 1 });
  });

  test("by asking us to wait is not asked by its other shards either, one of which is being polled", async () => {
    await applyHouses(sql, [alpha(201)]);
    const open: ServerResponse[] = [];
    house.on("/100", (_, response) => void open.push(response));
    const slow = poll({ shard: 1 });
    await eventually(() => open.length === 1);
    for (let n = 0; n < 100; n += 1) house.on(`/${n}`, respondWith("", { "retry-after": "900" }, 429));
    await poll();
    expect((await poll({ shard: 2 })).counts).toEqual({ skipped: 1 });
    open[0]?.writeHead(429, { "retry-after": "5" }).end();
    await slow;
    const leases = await sql`
      select shard
      from poll_leases
      where next_allowed_at > clock_timestamp() + interval '14 minutes'
      order by shard`;
    expect(leases.map(({ shard }) => shard)).toEqual([0, 1, 2]);
  });

  test.each([
    ["asks us to wait", { "retry-after": "900" }],
    ["responds 429 without a time", {}],
  ])("that %s for one of its tables is still polled in its other shards", async (_, headers) => {
    await applyHouses(sql, [alpha(101)]);
    for (let n = 0; n < 101; n += 1) house.on(`/${n}`, respondWith(page(9)));
    house.on("/5", respondWith("", headers, 429));
    await poll();
    await extendWait();
    expect((await poll()).counts).toEqual({ skipped: 1 });
    expect((await poll({ shard: 1 })).counts).toMatchObject({ payloads: 1 });
  });

  test("that asks us to wait for several of its tables is not polled in its other shards", async () => {
    await applyHouses(sql, [alpha(101)]);
    for (let n = 0; n < 101; n += 1) house.on(`/${n}`, respondWith(page(9)));
    for (const n of [5, 6]) house.on(`/${n}`, respondWith("", { "retry-after": "900" }, 429));
    await poll();
    expect((await poll({ shard: 1 })).counts).toEqual({ skipped: 1 });
  });

  test("that responds 429 without a time to one shard is still polled in the others", async () => {
    await applyHouses(sql, [alpha(101)]);
    for (let n = 0; n < 100; n += 1) house.on(`/${n}`, respondWith("", {}, 429));
    house.on("/100", respondWith(page(9)));
    await poll();
    await extendWait();
    expect((await poll()).counts).toEqual({ skipped: 1 });
    expect((await poll({ shard: 1 })).counts).toMatchObject({ payloads: 1 });
  });

  test("by asking us to wait has its poll saved also if its other shards cannot be suspended", async () => {
    await applyHouses(sql, [alpha(101)]);
    for (let n = 0; n < 100; n += 1) house.on(`/${n}`, respondWith("", { "retry-after": "900" }, 429));
    await sql.unsafe(`
      create function refuse_hold() returns trigger language plpgsql as $$ begin raise exception 'no hold'; end $$;
      create trigger refuse_hold before update on poll_leases for each row
      when (new.shard = 1 and new.next_allowed_at > old.next_allowed_at) execute function refuse_hold()`);
    try {
      const { counts, errors } = await poll();
      expect(counts).toMatchObject({ failed: counts["requests"] });
      expect(errors).toEqual([expect.stringMatching(/^the other shards of alpha are not suspended .*no hold/)]);
    } finally {
      await sql.unsafe("drop trigger refuse_hold on poll_leases; drop function refuse_hold()");
    }
  });

  test("by asking us to wait is not asked by its other shards either if its notices cannot be refreshed", async () => {
    await applyHouses(sql, [alpha(101)]);
    for (let n = 0; n < 101; n += 1) house.on(`/${n}`, respondWith(page(9)));
    await poll();
    house.on("/0", respondWith(page(20))); // a gap, and its notice
    for (const n of [5, 6]) house.on(`/${n}`, respondWith("", { "retry-after": "900" }, 429));
    await sql`alter table notices add constraint gap_notice_is_refused check (kind <> 'gap') not valid`;
    try {
      await expect(poll()).rejects.toThrow(/gap_notice_is_refused/);
    } finally {
      await sql`alter table notices drop constraint gap_notice_is_refused`;
    }
    expect(await sql`select from gaps`).toHaveLength(1); // the poll itself is saved
    expect((await poll({ shard: 1 })).counts).toEqual({ skipped: 1 });
  });

  test("does not delay another house", async () => {
    const quick = await startBadHouse();
    quick.on("/rounds", respondWith(page(9)));
    await applyHouses(sql, [alpha(20), houseEntry({ id: "quick", base_url: quick.url })]);
    const open: ServerResponse[] = [];
    for (let n = 0; n < 20; n += 1) house.on(`/${n}`, (_, response) => void open.push(response));
    const slow = poll();
    await eventually(() => open.length === 8);
    expect((await poll({ house: "quick" })).counts).toMatchObject({ payloads: 1 }); // the slow one still waits
    expect(await bodies()).toEqual([page(9)]);
    for (const response of open) response.destroy();
    expect((await slow).counts).toMatchObject({ failed: 8 });
    await quick.close();
  });
});

describe("a house with many tables", () => {
  test("is asked eight at a time, each table once", async () => {
    await applyHouses(sql, [alpha(20)]);
    let now = 0;
    let most = 0;
    for (let n = 0; n < 20; n += 1) {
      house.on(`/${n}`, (_, response) => {
        now += 1;
        most = Math.max(most, now);
        setImmediate(() => {
          now -= 1;
          response.end(page(n));
        });
      });
    }
    expect((await poll()).counts).toMatchObject({ requests: 20, payloads: 20 });
    expect(most).toBeLessThanOrEqual(8);
    expect(paths().toSorted()).toEqual(Array.from({ length: 20 }, (_, n) => `/${n}`).toSorted());
  });
});

describe("two workers", () => {
  test("that poll a house concurrently send one request", async () => {
    await applyHouses(sql, [alpha(1)]);
    let held: ServerResponse | undefined;
    house.on("/0", (_, response) => void (held = response));
    const first = poll();
    await eventually(() => held !== undefined);
    const others = await Promise.all([poll(), poll(), poll()]);
    expect(others.map(({ counts }) => counts["skipped"])).toEqual([1, 1, 1]);
    held?.end(page(9));
    expect((await first).counts).toMatchObject({ payloads: 1 });
    expect(house.requests).toHaveLength(1);
  });

  test("of which one lost its lease while the house was slow save the response of the other alone", async () => {
    await applyHouses(sql, [alpha(1)]);
    let slow: ServerResponse | undefined;
    house.on("/0", (_, response) => void (slow = response));
    const first = poll();
    await eventually(() => slow !== undefined);
    await sql`update poll_leases set lease_until = '-infinity'`;
    house.on("/0", respondWith(page(10)));
    expect((await poll()).counts).toMatchObject({ payloads: 1 });
    const after = await sql`select * from poll_leases`;
    slow?.end(page(9));
    const { counts, enqueued } = await first;
    expect(counts).toEqual({ lost: 1 });
    expect(enqueued).toEqual([]);
    expect(await bodies()).toEqual([page(10)]);
    expect(await sql`select * from poll_leases`).toEqual(after);
  });
});

describe("a house that asks to wait", () => {
  const waits = async () => {
    const [row] = await sql<{ waits: boolean }[]>`
      select next_allowed_at > clock_timestamp() + interval '50 seconds' as waits from poll_leases`;
    return row?.waits;
  };

  test("is left alone though the poll lost its lease", async () => {
    await applyHouses(sql, [alpha(1)]);
    let slow: ServerResponse | undefined;
    house.on("/0", (_, response) => void (slow = response));
    const first = poll();
    await eventually(() => slow !== undefined);
    await sql`update poll_leases set lease_epoch = lease_epoch + 1`;
    slow?.writeHead(429, { "retry-after": "60" }).end();
    expect((await first).counts).toEqual({ lost: 1 });
    expect(await waits()).toBe(true);
  });

  test.for([1, 2])("is left alone though the poll of %i could not be saved", async (tables) => {
    await applyHouses(sql, [alpha(tables)]);
    house.on("/0", (_, response) => void response.writeHead(503, { "retry-after": "60" }).end());
    house.on("/1", respondWith(page(9)));
    const { write } = passes;
    passes = {
      ...passes,
      write: async (given) => {
        if (given.tableIds.length > 0) throw new Error("too large");
        await write(given);
      },
    };
    await expect(poll()).rejects.toThrow("too large");
    expect(await waits()).toBe(true);
  });
});

describe("a change of the houses file during a poll", () => {
  const elsewhere = () => alpha(1, { tables: [tableEntry({ market: "m0", feed: feedEntry({ path: "/new" }) })] });
  const heads = () => sql`
    select h.responded_at, h.payload_sha256, f.etag
    from table_heads h
    join feeds f using (table_id)`;

  test.for([
    ["200", (response: ServerResponse) => response.writeHead(200, { etag: '"9"' }).end(page(9))],
    ["304", (response: ServerResponse) => response.writeHead(304).end()],
  ] as const)("drops the response %s of the feed before", async ([, end]) => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(8), { etag: '"8"' }));
    expect((await poll()).counts).toMatchObject({ payloads: 1 });
    let held: ServerResponse | undefined;
    house.on("/0", (request, response) => {
      if (request.headers["if-none-match"] === '"8"') held = response;
      else response.destroy();
    });
    const second = poll();
    await eventually(() => held !== undefined);
    await applyHouses(sql, [elsewhere()]);
    if (held !== undefined) end(held);
    expect((await second).counts).toEqual({ lost: 1 });
    expect([...(await heads())]).toEqual([{ responded_at: null, payload_sha256: null, etag: null }]);
    house.on("/new", respondWith(page(20)));
    expect((await poll()).counts).toMatchObject({ payloads: 1, rounds: 3 });
    expect(await bodies()).toEqual([page(8), page(20)]);
  });

  test("that was committed before the lease was taken is polled next", async () => {
    await applyHouses(sql, [alpha(1)]);
    house.on("/0", respondWith(page(9)));
    house.on("/new", respondWith(page(20)));
    const { takeLease } = passes;
    passes = {
      ...passes,
      async takeLease(request) {
        await applyHouses(sql, [elsewhere()]);
        return takeLease(request);
      },
    };
    expect((await poll()).counts).toMatchObject({ requests: 0 });
    expect((await poll()).counts).toMatchObject({ payloads: 1 });
    expect(paths()).toEqual(["/new"]);
  });

  test("leaves the polls of other houses alone", async () => {
    await applyHouses(sql, [alpha(1), houseEntry({ id: "beta", base_url: house.url })]);
    const epochs = () => sql`select house_id, lease_epoch from poll_leases order by house_id`;
    await applyHouses(sql, [elsewhere(), houseEntry({ id: "beta", base_url: house.url })]);
    expect([...(await epochs())]).toEqual([
      { house_id: "alpha", lease_epoch: 1n },
      { house_id: "beta", lease_epoch: 0n },
    ]);
  });
});

test("a poll that is stopped in the middle saves nothing, and releases the house immediately", async () => {
  await applyHouses(sql, [alpha(2)]);
  house.on("/0", respondWith(page(9)));
  house.on("/1", badResponses.silence);
  const stop = new AbortController();
  const stopped = poll({ signal: stop.signal });
  await eventually(() => house.requests.length === 2);
  stop.abort(new Error("the worker stops"));
  await expect(stopped).rejects.toThrow("the worker stops");
  expect(await bodies()).toEqual([]);
  expect(await failures()).toEqual([]);
  house.on("/1", respondWith(page(9)));
  expect((await poll()).counts).toMatchObject({ payloads: 2 });
});

test("a poll that fails before its requests are saved releases the house immediately", async () => {
  await applyHouses(sql, [alpha(1, { requests_per_minute: 600 })]);
  house.on("/0", respondWith(page(9)));
  await sql`alter table request_budgets rename column spent_until to elsewhere`;
  try {
    await expect(poll()).rejects.toThrow(/spent_until/);
  } finally {
    await sql`alter table request_budgets rename column elsewhere to spent_until`;
  }
  expect((await poll()).counts).toMatchObject({ payloads: 1 });
});
