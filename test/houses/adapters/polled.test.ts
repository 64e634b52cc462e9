import { afterEach, beforeEach, describe, expect, it } from "vitest";
import backfillGap from "../../../jobs/backfill-gap.ts";
import normalizeRounds from "../../../jobs/normalize-rounds.ts";
import pollHouse from "../../../jobs/poll-house.ts";
import { connect } from "../../../src/db/client.ts";
import { takeRequest } from "../../../src/houses/polling/budget-store.ts";
import type { HouseClient } from "../../../src/houses/polling/client.ts";
import { verify } from "../../../src/verify/verify.ts";
import { createHouseClient } from "../../../src/houses/polling/http.ts";
import { findLatePolls } from "../../../src/houses/polling/polling-store.ts";
import { readHouses } from "../../../src/health/house-facts-store.ts";
import { respondWith, startBadHouse, type BadHouse } from "../../support/bad-house.ts";
import { testContext } from "../../support/context.ts";
import { passesTo } from "../../support/passes-to.ts";
import { openTestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { forgetHouses, tableEntry } from "../../support/houses.ts";
import { followChain, makeHouse, openNotices, storedRounds, type MadeTable } from "../../support/make.ts";
import { fixture } from "./fixtures.ts";

const { sql, url: databaseUrl } = await openTestDatabase();
let server: BadHouse;
let http: HouseClient;
beforeEach(async () => {
  await sql`delete from gaps`;
  await sql`delete from conflicts`;
  await forgetHouses(sql);
  server = await startBadHouse();
  http = createHouseClient({ version: "0.0.0" });
});
afterEach(async () => {
  await http.close();
  await server.close();
});

const context = () =>
  testContext(sql, { passes: passesTo(databaseUrl), http, env: { ALLOW_PRIVATE_HOUSES: "1" } }).context;
/** Polls the house once, and reads the payloads. */
async function pollAndRead(): Promise<Record<string, number>> {
  await sql`update poll_leases set next_allowed_at = '-infinity'`;
  const counts = await pollHouse.run({ house: "alpha", shard: 0 }, context());
  await normalizeRounds.run({ house: "alpha" }, context());
  return counts;
}
async function fillGaps(): Promise<void> {
  for (const { id } of await sql<{ id: string }[]>`select id::text from gaps where state = 'open'`) {
    await backfillGap.run({ gap: id }, context());
  }
}

/** A house with one table for each of these adapters. */
async function houseOf(
  tables: { adapter: string; feed?: object; round_ids?: string }[],
  changed: Record<string, unknown> = {},
): Promise<MadeTable[]> {
  return makeHouse(sql, {
    base_url: server.url,
    tables: tables.map(({ adapter, feed = {}, round_ids = "consecutive" }, place) =>
      tableEntry({ game: `g${place}`, adapter, feed, round_ids }),
    ),
    ...changed,
  });
}
async function oneTable(adapter: string, feed: object, changed: Record<string, unknown> = {}): Promise<MadeTable> {
  const opaque = ["blaze", "stake", "roobet", "lucky-jet"].includes(adapter);
  const [table] = await houseOf([{ adapter, feed, round_ids: opaque ? "opaque" : "consecutive" }], changed);
  if (table === undefined) throw new Error("the house has no table");
  return table;
}
const values = async (table: MadeTable) => (await storedRounds(sql, table)).map(({ id, x }) => `${id} ${x}`);
const circuit = async () => (await sql<{ circuit: string }[]>`select circuit from poll_leases`)[0]?.circuit;
const paths = () => server.requests.splice(0).map(({ path }) => path);

/** A fixture's times moved to now, since a house lists what was played just now. */
function fresh(name: string): string {
  const at = new Date();
  return fixture(name)
    .replaceAll(/2026-11-21T03:5\d:\d\d\.\d{3}Z/g, at.toISOString())
    .replaceAll(/Sat, 21 Nov 2026 03:5\d:\d\d GMT/g, at.toUTCString())
    .replaceAll(/1795233\d{6}/g, String(at.getTime()))
    .replace(/Fri Nov 20 2026 23:56:01 GMT\+0200 \([^)]*\)/, String(at));
}

/** When a round was last known to be absent, by round. */
async function absences(): Promise<[id: string, at: string | null][]> {
  const rounds = await sql<{ id: string; at: string | null }[]>`
    select round_id as id, absent_at::text as at
    from rounds
    where not late
    order by seq`;
  return rounds.map(({ id, at }) => [id, at]);
}
async function lastResponseAt(): Promise<string | null | undefined> {
  return (await sql<{ at: string | null }[]>`select responded_at::text as at from table_heads`)[0]?.at;
}

describe("houses with a list", () => {
  it("are asked in their own way, with our name, and their rounds are stored each in its table", async () => {
    const bodies: string[] = [];
    const listens =
      (name: string): Parameters<BadHouse["on"]>[1] =>
      (request, response) => {
        request.on("data", (part: Buffer) => bodies.push(part.toString()));
        request.on("end", () => response.end(fresh(name)));
      };
    server.on("/crash_games/recent", respondWith(fresh("blaze/recent.json")));
    server.on("/_api/graphql", listens("stake/list.json"));
    server.on("/api/game/bet/multi/history", listens("bcgame/history.json"));
    server.on("/crash/recentNumbers", respondWith(fresh("roobet/recent.json")));
    server.on("/history", respondWith(fresh("lucky-jet/history.json")));
    const opaque = { round_ids: "opaque" };
    const tables = await houseOf(
      [
        { adapter: "blaze", ...opaque },
        { adapter: "stake", ...opaque },
        { adapter: "bcgame" },
        { adapter: "roobet", ...opaque },
        { adapter: "lucky-jet", ...opaque },
      ],
      { headers: { "customer-id": "c", "Session-Id": "s" }, user_agent: "Roundhouse test (ann@example.org)" },
    );
    expect(await pollAndRead()).toMatchObject({ requests: 5, payloads: 5, rounds: 17, unchanged: 0, failed: 0 });
    expect(await Promise.all(tables.map(values))).toEqual([
      ["hU2zL5rMwe 12", "b7Tq91XcVd 1.85", "2l4GnB7vkn 1", "V1eKqWyelo 2.01"],
      expect.arrayContaining(["7d0f3a51-1111-4c2b-9a00-000000000003 6.64"]),
      ["9313903 1", "9313904 20310.6", "9313905 4.16"],
      ["5f6c3d00 1234", "1922627 1", "5f6c3d2e 8.45"],
      ["c0ffee00cc 1", "c0ffee00bb 2", "c0ffee00aa 1.87"],
    ]);
    const colors = await sql`select raw_value, color from named_rounds where round_id = '2l4GnB7vkn'`;
    expect([...colors]).toEqual([{ raw_value: "0", color: "blue" }]);
    expect(bodies.map((body) => Object.keys(JSON.parse(body) as object))).toEqual([
      ["operationName", "query", "variables"],
      ["gameUrl", "page", "pageSize"],
    ]);
    expect(new Set(server.requests.map(({ headers }) => headers["user-agent"]))).toEqual(
      new Set(["Roundhouse test (ann@example.org)"]),
    );
    for (const table of tables) await followChain(sql, table);
    expect((await verify(sql)).first_failure).toBeNull();
  });

  it("that count pages from the newest are paged until a page joins on to our rounds", async () => {
    const item = (n: number) => ({
      id: `r${n}`,
      crash_point: String(1.5 + n),
      created_at: new Date(Date.now() - 3_600_000 + n * 1000),
    });
    const list = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, n) => item(from - n));
    const table = await oneTable("blaze", {}, { poll_every_ms: 100 });
    server.on("/crash_games/recent", respondWith(JSON.stringify(list(3, 1))));
    await pollAndRead();
    server.on("/crash_games/recent", respondWith(JSON.stringify(list(9, 8))));
    await pollAndRead();
    server.on("/crash_games/recent/history?page=1", respondWith(JSON.stringify({ records: list(9, 6) })));
    server.on("/crash_games/recent/history?page=2", respondWith(JSON.stringify({ records: list(5, 2) })));
    paths();
    await fillGaps();
    expect(paths()).toEqual(["/crash_games/recent/history?page=1", "/crash_games/recent/history?page=2"]);
    expect((await storedRounds(sql, table)).map(({ id, late }) => `${id}${late ? " late" : ""}`).toSorted()).toEqual([
      "r1",
      "r2",
      "r3",
      "r4 late",
      "r5 late",
      "r6 late",
      "r7 late",
      "r8",
      "r9",
    ]);
    expect([...(await sql`select state, filled from gaps`)]).toEqual([{ state: "filled", filled: 4n }]);
  });
});

describe("houses with a page for each round", () => {
  const page = (n: number, result: string) =>
    respondWith(`<h3>Game ${n}</h3><b>${result}</b>`, { "content-type": "text/html" });

  it("are asked for the next round until one was not played yet, a few at a time, and from there on", async () => {
    const table = await oneTable("bustabit", { first_round_id: 101 });
    for (let n = 101; n <= 107; n += 1) server.on(`/game/${n}`, page(n, `${n}x`));
    expect(await pollAndRead()).toMatchObject({ requests: 5, payloads: 5 });
    expect(await pollAndRead()).toMatchObject({ requests: 3, payloads: 2, unchanged: 1, failed: 0 });
    expect(await pollAndRead()).toMatchObject({ requests: 1, payloads: 0, unchanged: 1 });
    expect(paths()).toEqual([101, 102, 103, 104, 105, 106, 107, 108, 108].map((n) => `/game/${n}`));
    expect(await values(table)).toEqual([101, 102, 103, 104, 105, 106, 107].map((n) => `${n} ${n}`));
    expect(await sql`select last_ok_at is not null as ok, last_error from poll_leases`).toMatchObject([
      { ok: true, last_error: null },
    ]);
  });

  it("prove only by the 404 of its own page that a round was absent, so the second of one poll is not known to be new", async () => {
    await oneTable("bustabit", { first_round_id: 101 });
    server.on("/game/101", page(101, "2.00x"));
    await pollAndRead(); // 101, and a 404 for 102
    const first = await lastResponseAt();
    for (const n of [102, 103]) server.on(`/game/${n}`, page(n, "2.00x"));
    await pollAndRead(); // both, and a 404 for 104
    const second = await lastResponseAt();
    for (let n = 104; n <= 109; n += 1) server.on(`/game/${n}`, page(n, `${n}x`));
    await pollAndRead(); // five pages, and no 404
    await pollAndRead(); // 109, and a 404 for 110
    expect(await absences()).toEqual([
      ["101", null],
      ["102", first],
      ["103", null],
      ["104", second],
      ["105", null],
      ["106", null],
      ["107", null],
      ["108", null],
      ["109", null],
    ]);
    expect(await sql`select from rounds where absent_at >= requested_at or late`).toHaveLength(0);
  });

  it("that repeat one result on page after page are requested beyond them, and each page is stored once", async () => {
    const table = await oneTable("bustabit", { first_round_id: 101 });
    for (let n = 101; n <= 110; n += 1) server.on(`/game/${n}`, respondWith("Busted at: 1x"));
    server.on("/game/111", page(111, "111x"));
    for (let polls = 0; polls < 3; polls += 1) await pollAndRead();
    expect((await values(table)).slice(4)).toEqual(["105 1", "111 111"]);
    expect(await circuit()).toBe("closed");
    expect(Object.keys(await openNotices(sql, table))).not.toContain("format");
    expect(await sql`select from payloads where path = '/game/106'`).toHaveLength(1);
  });

  it("may have equal pages for two rounds, and neither is lost", async () => {
    const table = await oneTable("ethcrash-io", { first_round_id: 5 });
    for (const n of [5, 6, 7]) server.on(`/game/${n}.json`, respondWith('{"game_crash":0}'));
    await pollAndRead();
    server.on("/game/8.json", respondWith('{"game_crash":0}'));
    await pollAndRead();
    expect(await values(table)).toEqual(["5 1", "6 1", "7 1", "8 1"]);
  });

  it("with a page that cannot be read are asked for the next one too, and for the missing one again later", async () => {
    const table = await oneTable("bustabit", { first_round_id: 101 }, { poll_every_ms: 100 });
    server.on("/game/101", page(101, "2.00x"));
    server.on("/game/102", respondWith("<h1>Something went wrong</h1>"));
    await pollAndRead();
    expect(await openNotices(sql, table)).toMatchObject({ format: expect.stringContaining("cannot be read") });
    await pollAndRead();
    server.on("/game/103", page(103, "3.00x"));
    await pollAndRead();
    expect(paths()).toEqual(["101", "102", "103", "103", "102", "103"].map((n) => `/game/${n}`));
    expect(await openNotices(sql, table)).toEqual({ gap: expect.stringContaining("1 round (102) is missing") });
    server.on("/game/102", page(102, "1.00x"));
    await fillGaps();
    expect(await storedRounds(sql, table)).toMatchObject([
      { id: "101", late: false },
      { id: "103", late: false, gap: true },
      { id: "102", x: 1, late: true, source: "history" },
    ]);
    expect(await openNotices(sql, table)).toEqual({});
    await pollAndRead();
    expect(paths().at(-1)).toBe("/game/104");
  });

  it("have a gap filled page by page, one that does not exist left out", async () => {
    const table = await oneTable("ethcrash-io", { first_round_id: 5 }, { poll_every_ms: 100 });
    for (const n of [5, 7, 8]) server.on(`/game/${n}.json`, respondWith(`{"game_crash":${n * 100}}`));
    await pollAndRead();
    await makeHouse(sql, {
      base_url: server.url,
      poll_every_ms: 100,
      tables: [tableEntry({ game: "g0", adapter: "ethcrash-io", feed: { first_round_id: 8 } })],
    });
    await pollAndRead();
    await fillGaps();
    expect((await values(table)).toSorted()).toEqual(["5 5", "7 7", "8 8"]);
    expect([...(await sql`select state, missing, filled, attempts from gaps`)]).toEqual([
      { state: "open", missing: 2n, filled: 1n, attempts: 1 },
    ]);
  });

  it("lose nothing to a limit and an error page in between, and make no round of them", async () => {
    const table = await oneTable("bustabit", { first_round_id: 101 });
    server.on("/game/101", page(101, "2.00x"));
    await pollAndRead(); // and a 404 for 102
    const known = await lastResponseAt();
    server.on("/game/102", respondWith("Busted at: 9x", { "retry-after": "1" }, 429));
    expect(await pollAndRead()).toMatchObject({ requests: 1, failed: 1 });
    expect(await lastResponseAt()).toBe(known);
    server.on(
      "/game/102",
      respondWith("<title>Bad gateway</title><p>Ray 102, retry in 2x 5 s</p>".replace("102", "7f3a")),
    );
    await pollAndRead();
    for (const n of [102, 103]) server.on(`/game/${n}`, page(n, `${n}x`));
    await pollAndRead(); // 103 first, since 102 could not be read
    await pollAndRead();
    expect(await values(table)).toEqual(["101 2", "103 103"]);
    await fillGaps();
    expect((await values(table)).toSorted()).toEqual(["101 2", "102 102", "103 103"]);
    expect(await absences()).toEqual([
      ["101", null],
      ["103", null],
    ]);
  });

  it("that leave a number out are requested after it, after a time without a round", async () => {
    const table = await oneTable("bustabit", { first_round_id: 101 });
    server.on("/game/101", page(101, "2.00x"));
    server.on("/game/103", page(103, "3.00x"));
    await pollAndRead();
    await pollAndRead();
    expect(await values(table)).toEqual(["101 2"]);
    await eventually(async () => {
      // after 157 s the number that is requested is 103, and after 158 s another
      await sql`
        update table_heads
        set version = version + 1, last_polled_round_at = clock_timestamp() - interval '157.1 seconds'`;
      await pollAndRead();
      return (await values(table)).length > 1;
    });
    expect(await values(table)).toEqual(["101 2", "103 3"]);
    expect(await openNotices(sql, table)).toMatchObject({ gap: expect.stringContaining("1 round (102) is missing") });
    // the absence of 102 proved nothing about later numbers: 103 and 104 may have been played a minute ago
    for (const n of [104, 105]) server.on(`/game/${n}`, page(n, `${n}x`));
    await pollAndRead();
    expect(await absences()).toEqual([
      ["101", null],
      ["103", null],
      ["104", null],
      ["105", null],
    ]);
    const known = await lastResponseAt();
    server.on("/game/106", page(106, "6.00x"));
    await pollAndRead();
    expect((await absences()).at(-1)).toEqual(["106", known]);
  });

  it("begin at the games that their listing shows, if no first one is configured", async () => {
    const table = await oneTable("ethercrash", {});
    server.on("/play", respondWith(fixture("ethercrash/play.html")));
    server.on("/game/7217786", respondWith("<h4>Game 7217786 | Crashed @1,002.5x</h4>"));
    await pollAndRead();
    await pollAndRead();
    expect(paths()).toEqual(["/play", "/game/7217786", "/game/7217787"]);
    expect(await values(table)).toEqual(["7217783 1234", "7217784 1", "7217785 67.25", "7217786 1002.5"]);
  });

  it("have their own rounds: the same number at two tables is two rounds", async () => {
    const tables = await houseOf([
      { adapter: "bustabit", feed: { first_round_id: 101 } },
      { adapter: "ethcrash-io", feed: { first_round_id: 101 } },
    ]);
    server.on("/game/101", page(101, "2.00x"));
    server.on("/game/101.json", respondWith('{"game_crash":300}'));
    await pollAndRead();
    expect(await Promise.all(tables.map(values))).toEqual([["101 2"], ["101 3"]]);
    expect(await sql`select from conflicts`).toHaveLength(0);
  });
});

describe("a house that changed its format", () => {
  const good = (n: number) => Array.from({ length: 6 }, (_, at) => ({ id: `a${n - at}`, crashPoint: 2 }));
  const renamed = (n: number) => good(n).map(({ id, crashPoint }) => ({ id, crash: crashPoint + n }));

  it("is recognized by two responses in a row, suspended, reported, and read again when it is readable", async () => {
    const table = await oneTable("roobet", {});
    const serveItems = (items: object[]) => server.on("/crash/recentNumbers", respondWith(JSON.stringify(items)));
    serveItems(good(6).map((one, at) => ({ ...one, crashPoint: 1.5 + at })));
    await pollAndRead();
    serveItems(renamed(12));
    await pollAndRead();
    expect([await circuit(), (await openNotices(sql, table))["format"]]).toEqual([
      "closed",
      expect.stringContaining("the house seems to have changed its format"),
    ]);
    serveItems(renamed(18));
    await pollAndRead();
    expect([await circuit(), (await openNotices(sql, table))["format"]]).toEqual([
      "open",
      expect.stringMatching(
        /^the house changed its format since .*: 6 of the 6 items of its newest response cannot be read$/,
      ),
    ]);
    expect([...(await sql`select state, quarantined from payloads order by received_at`)]).toEqual([
      { state: "read", quarantined: 0 },
      { state: "read", quarantined: 6 },
      { state: "read", quarantined: 6 },
    ]);
    const waiting = await sql`
      update poll_leases
      set next_allowed_at = next_allowed_at + interval '1 minute'
      where next_allowed_at > opened_at
      returning shard`;
    expect(waiting).toHaveLength(1);
    await pollHouse.run({ house: "alpha", shard: 0 }, context());
    expect(server.requests).toHaveLength(3); // it is left alone until the probe
    await pollAndRead();
    expect(await sql`select circuit, opened_times from poll_leases`).toMatchObject([
      { circuit: "open", opened_times: 2 },
    ]);
    expect(await readHouses(sql)).toMatchObject([
      { circuit: "open", lastError: expect.stringContaining("cannot be read") },
    ]);
    serveItems(good(24).map((one, at) => ({ ...one, crashPoint: 1.5 + at })));
    await pollAndRead();
    expect([await circuit(), (await openNotices(sql, table))["format"]]).toEqual(["closed", undefined]);
    expect(await sql`select bad_responses, format_since from feeds`).toMatchObject([
      { bad_responses: 0, format_since: null },
    ]);
    expect((await values(table)).length).toBe(12);
  });

  it("is not assumed for a maintenance page with status 200: it is polled again, and suspended while the page repeats", async () => {
    const table = await oneTable("roobet", {});
    server.on("/crash/recentNumbers", respondWith("<title>Back soon</title>"));
    for (let polls = 0; polls < 6; polls += 1) await pollAndRead();
    expect(await circuit()).toBe("open");
    expect((await openNotices(sql, table))["format"]).toMatch(/^the house's responses cannot be read since/);
    server.on(
      "/crash/recentNumbers",
      respondWith(JSON.stringify(good(5).map((one, at) => ({ ...one, crashPoint: 2 + at })))),
    );
    await pollAndRead();
    expect([await circuit(), await openNotices(sql, table)]).toEqual(["closed", {}]);
  });

  it("is suspended if each round has its own page too: a round that was not played yet proves no format", async () => {
    const table = await oneTable("bustabit", { first_round_id: 101 });
    server.on("/game/101", respondWith("<h1>Game 101</h1><canvas></canvas>"));
    await sql`update feeds set bad_responses = 4`; // as after so many pages
    server.on("/game/105", respondWith("<h1>Game 105</h1><canvas></canvas>"));
    await pollAndRead();
    expect([await circuit(), (await openNotices(sql, table))["format"]]).toEqual([
      "open",
      expect.stringContaining("changed its format"),
    ]);
    await pollAndRead();
    expect(await circuit()).toBe("open");
    for (let n = 101; n <= 120; n += 1)
      server.on(`/game/${n}`, respondWith(`Game ${n} <i>Busted at:</i> <b>${n}x</b>`));
    await pollAndRead();
    expect([await circuit(), (await openNotices(sql, table))["format"]]).toEqual(["closed", undefined]);
  });

  it("is distinguished from maintenance: an error page that changes each time is only reported as unreadable", async () => {
    const table = await oneTable("roobet", {});
    await sql`update feeds set bad_responses = 4`; // as after so many of them
    server.on("/crash/recentNumbers", respondWith("<title>Back soon</title><p>Request 5</p>"));
    await pollAndRead();
    expect([await circuit(), (await openNotices(sql, table))["format"]]).toEqual([
      "open",
      expect.stringMatching(
        /^the house's responses cannot be read since .*: it shows error pages or changed its format$/,
      ),
    ]);
  });

  it("keeps its other tables polled", async () => {
    await houseOf([
      { adapter: "roobet", round_ids: "opaque" },
      { adapter: "blaze", round_ids: "opaque" },
    ]);
    server.on("/crash_games/recent", respondWith(fresh("blaze/recent.json")));
    for (const n of [6, 12, 18]) {
      server.on("/crash/recentNumbers", respondWith(JSON.stringify(renamed(n))));
      await pollAndRead();
    }
    expect(await circuit()).toBe("closed");
    expect(await sql`select from feeds where format_since is not null`).toHaveLength(1);
  });

  it("that redirects to its sign-in page is a failed poll with advice", async () => {
    await oneTable("roobet", {});
    server.on("/crash/recentNumbers", respondWith("", { location: "/login?next=/crash" }, 302));
    expect(await pollAndRead()).toMatchObject({ failed: 1 });
    expect(await sql`select reason, detail from poll_failures`).toMatchObject([
      { reason: "redirect", detail: expect.stringContaining("the house requires a session: set the headers it needs") },
    ]);
  });
});

describe("a budget of requests", () => {
  it("is kept over all processes, and what was not asked goes first next time", async () => {
    const opaque = { round_ids: "opaque" };
    await houseOf(
      [
        { adapter: "roobet", ...opaque },
        { adapter: "blaze", ...opaque },
      ],
      { requests_per_minute: 6 },
    );
    server.on("/crash_games/recent", respondWith("[]"));
    server.on("/crash/recentNumbers", respondWith("[]"));
    expect(await pollAndRead()).toMatchObject({ requests: 1 });
    expect(await pollAndRead()).toMatchObject({ requests: 0 });
    await sql`update request_budgets set spent_until = clock_timestamp()`;
    expect(await pollAndRead()).toMatchObject({ requests: 1 });
    expect(new Set(paths())).toEqual(new Set(["/crash/recentNumbers", "/crash_games/recent"]));
  });

  it("gives the house longer before its poll is late", async () => {
    await houseOf([{ adapter: "roobet", round_ids: "opaque" }], { requests_per_minute: 1 });
    await sql`update houses set updated_at = updated_at - interval '1 hour'`;
    await sql`update poll_leases set last_poll_at = clock_timestamp() - interval '100 seconds'`;
    expect(await findLatePolls(sql)).toMatchObject({ late: [], due: 1 });
    await houseOf([{ adapter: "roobet", round_ids: "opaque" }]);
    await sql`update houses set updated_at = updated_at - interval '1 hour'`;
    expect(await findLatePolls(sql)).toMatchObject({ late: ["alpha"], due: 1 });
  });

  it("allows what ten seconds of it hold immediately, and then returns how long to wait", async () => {
    await houseOf([{ adapter: "roobet", round_ids: "opaque" }]);
    const other = connect(databaseUrl, { name: "test" });
    const secondsNow = async () =>
      (await sql<{ now: number }[]>`select extract(epoch from clock_timestamp())::float8 as now`)[0]?.now ?? Number.NaN;
    try {
      const before = await secondsNow();
      const taken = await Promise.all(
        Array.from({ length: 40 }, (_, n) => takeRequest(n % 2 === 0 ? sql : other, "alpha", 60)),
      );
      const refilled = Math.floor((await secondsNow()) - before); // one a second
      const allowed = taken.filter((waitMs) => waitMs === 0).length;
      expect(allowed).toBeGreaterThanOrEqual(10);
      expect(allowed).toBeLessThanOrEqual(10 + refilled);
      expect(Math.max(...taken)).toBeLessThanOrEqual(1_000);
    } finally {
      await other.end();
    }
  });

  it("holds for the pages of a gap as well, which costs it no attempt", async () => {
    const table = await oneTable("ethcrash-io", { first_round_id: 5 }, { requests_per_minute: 60, poll_every_ms: 100 });
    for (const n of [5, 9]) server.on(`/game/${n}.json`, respondWith('{"game_crash":200}'));
    await pollAndRead();
    await sql`update feeds set bad_responses = 3`; // as after pages that could not be read
    await pollAndRead();
    expect(await values(table)).toEqual(["5 2", "9 2"]);
    await sql`update request_budgets set spent_until = clock_timestamp() + interval '1 minute'`;
    paths();
    await fillGaps();
    expect(paths()).toEqual([]);
    expect([...(await sql`select state, attempts, next_attempt_at > clock_timestamp() as waits from gaps`)]).toEqual([
      { state: "open", attempts: 0, waits: true },
    ]);
  });
});
