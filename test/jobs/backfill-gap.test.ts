import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import backfillGap from "../../jobs/backfill-gap.ts";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import type { Value } from "../../src/db/statement.ts";
import { ThrottledError } from "../../src/errors.ts";
import type { HouseClient } from "../../src/houses/polling/client.ts";
import { SALT, TERMINATING_HASH } from "../../src/demo/bustabit-v2.ts";
import { createTrueChain } from "../../src/demo/true-chain.ts";
import { createHouseClient } from "../../src/houses/polling/http.ts";
import { createPasses, type Passes } from "../../src/pass/passes.ts";
import { putGapBack, takeGap } from "../../src/backfill/gap-attempt-store.ts";
import { giveUpGap, openGapAgain } from "../../src/corrections/close-gap.ts";
import { resetNewestNumber } from "../../src/corrections/reset-newest.ts";
import { findNextGap } from "../../src/rounds/gaps/gaps-store.ts";
import { createNoticeRefresh } from "../../src/rounds/notices/notices-store.ts";
import { addLateRounds } from "../forecasts/world.ts";
import { respondWith, startBadHouse, type BadHouse } from "../support/bad-house.ts";
import { testContext, type TestContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { feedEntry, forgetHouses, pauseHouse, tableEntry } from "../support/houses.ts";
import {
  followChain,
  makeHouse,
  makeItem,
  makePayload,
  makeTable,
  openNotices,
  storedRounds,
  type MadeTable,
} from "../support/make.ts";

const HISTORY = "/history?before={id}&limit={limit}";
const games = createTrueChain(new AbortController().signal);

const { sql, pipeline } = await openTestDatabase();
let passes: Passes;
let house: BadHouse;
let http: HouseClient;
beforeEach(async () => {
  passes = createPasses(pipeline);
  await sql`delete from gaps`;
  await sql`delete from conflicts`;
  await forgetHouses(sql);
  house = await startBadHouse();
  http = createHouseClient({ version: "0.0.0" });
});
afterEach(async () => {
  await http.close();
  await house.close();
});

function context(signal?: AbortSignal): TestContext {
  const env = { ALLOW_PRIVATE_HOUSES: "1" };
  return testContext(sql, {
    http,
    env,
    passes,
    variables: () => "8080",
    ...(signal !== undefined && { signal, ending: signal }),
  });
}

/** Works on a gap once; its time has come whatever it waits for. */
async function backfill(gap = "1", signal?: AbortSignal): Promise<Record<string, number>> {
  await sql`update gaps set next_attempt_at = clock_timestamp(), lease_until = '-infinity'`;
  return backfillGap.run({ gap }, context(signal).context);
}

/** Reads one payload after the other. */
async function take(table: MadeTable, ...payloads: (readonly unknown[])[]): Promise<void> {
  const [already] = await sql<{ n: number }[]>`select count(*)::integer as n from payloads`;
  for (const [place, listed] of payloads.entries()) {
    await makePayload(sql, table, { second: (already?.n ?? 0) + place, items: listed });
  }
  await normalizeRounds.run({ house: table.house }, context().context);
  await sql`select setval(pg_get_serial_sequence('gaps', 'id'), 1, false) where not exists (select from gaps)`;
}

const value = (id: number) => (100 + (id % 90)) / 100;

/** Rounds by number, newest first. */
function items(newest: number, oldest: number): Record<string, unknown>[] {
  return Array.from({ length: newest - oldest + 1 }, (_, n) => makeItem(newest - n, value(newest - n)));
}

async function trueItems(newest: number, oldest: number): Promise<Record<string, unknown>[]> {
  return (await games({ newest, oldest })).map(({ id, hash, hundredths }) => ({
    id,
    hash,
    multiplier: hundredths / 100,
  }));
}

/** From now on the house lists these before that round. */
function history(before: string | number, rounds: readonly unknown[]): void {
  house.on(`/history?before=${before}&limit=100`, respondWith(JSON.stringify({ rounds })));
}

interface GapRow {
  state: string;
  reason: string | null;
  filled: number;
  attempts: number;
  /** Seconds from when the last run put it back to its next attempt; null before a run has. */
  waits: number | null;
}

async function gapRow(): Promise<GapRow | undefined> {
  const [row] = await sql<GapRow[]>`
    select
      state, reason, filled::int, attempts,
      round(extract(epoch from next_attempt_at - nullif(lease_until, '-infinity')))::int as waits
    from gaps`;
  return row;
}

const asked = () => house.requests.map(({ path }) => path);

function counted(changed: Record<string, unknown> = {}, of: Record<string, unknown> = {}): Promise<MadeTable> {
  const feed = feedEntry({ history: HISTORY });
  return makeTable(sql, { feed, ...changed }, { base_url: house.url, poll_every_ms: 200, ...of });
}

/** Two tables of one house. */
async function countedTables(): Promise<[MadeTable, MadeTable]> {
  const tables = [0, 1].map((n) => tableEntry({ market: `m${n}`, feed: feedEntry({ history: HISTORY }) }));
  const made = await makeHouse(sql, { base_url: house.url, poll_every_ms: 200, tables });
  return made as [MadeTable, MadeTable];
}

/** Does something while no session can read rounds, and cancels the first statements that wait for them, as a timeout does. */
async function cancelling<Result>(statements: number, work: () => Promise<Result>): Promise<Result> {
  const result = await sql.begin(async (tx) => {
    await tx`lock table rounds in access exclusive mode`;
    const running = work();
    running.catch(() => undefined);
    let cancelled = 0;
    await eventually(async () => {
      const found = await tx`
        select pg_cancel_backend(pid)
        from pg_locks
        where not granted
          and relation = 'rounds'::regclass`;
      cancelled += found.length;
      return cancelled >= statements;
    });
    return { running };
  });
  return result.running;
}

beforeEach(async () => {
  await sql`alter table gaps alter column id restart`;
});

describe("a gap of proven rounds", () => {
  const FAIR = {
    feed: feedEntry({ hash: "hash" }),
    fairness: { scheme: "bustabit", salt: SALT, terminating_hash: TERMINATING_HASH },
  };

  it("of 3,000 is computed back from the next known hash and equals the true chain", async () => {
    const table = await counted(FAIR);
    await take(table, await trueItems(2_002, 2_001), await trueItems(5_004, 5_003));
    expect(await openNotices(sql, table)).toMatchObject({
      gap: expect.stringMatching(/^3000 rounds \(2003 to 5002\)/),
    });
    expect(await backfill()).toEqual({ computed: 3_000, filled: 1 });
    expect(await gapRow()).toMatchObject({ state: "filled", filled: 3_000, reason: null });
    expect(await openNotices(sql, table)).toEqual({});
    const computed = (await storedRounds(sql, table)).filter(({ source }) => source === "computed");
    const truth = (await games({ newest: 5_002, oldest: 2_003 })).toReversed();
    expect(computed).toEqual(
      truth.map(({ id, hundredths }) => ({
        id: String(id),
        x: hundredths / 100,
        late: true,
        gap: false,
        source: "computed",
        verified: true,
      })),
    );
    expect(await followChain(sql, table)).toBe(3_004);
  });

  it("that spans several transactions is computed whole, around rounds that arrived late meanwhile", async () => {
    const table = await counted(FAIR);
    await take(table, await trueItems(1_001, 1_001), await trueItems(13_001, 13_001));
    await take(table, await trueItems(6_010, 6_000));
    expect(await backfill()).toEqual({ computed: 11_999 - 11, filled: 1 });
    expect(await gapRow()).toMatchObject({ state: "filled", filled: 11_999 });
    expect(await followChain(sql, table)).toBe(12_001);
  });

  it("is never in conflict with the true rounds that the house lists later", async () => {
    const table = await counted(FAIR);
    await take(table, await trueItems(2_001, 2_001), await trueItems(2_011, 2_011));
    await backfill();
    await take(table, await trueItems(2_012, 2_001));
    expect(await sql`select from conflicts`).toHaveLength(0);
    expect(await followChain(sql, table)).toBe(12);
  });

  it("computes a round whose result the house got wrong", async () => {
    const table = await counted(FAIR);
    const [newest, wrong, oldest] = await trueItems(2_003, 2_001);
    await take(table, [newest, { ...wrong, multiplier: 77.77 }, oldest]);
    await backfill();
    const [round] = (await storedRounds(sql, table)).filter(({ id }) => id === "2002");
    expect(round).toMatchObject({ x: wrong?.["multiplier"], source: "computed", verified: true });
  });

  it("stops when it is aborted, and resumes from what it has", async () => {
    const table = await counted(FAIR);
    await take(table, await trueItems(1_001, 1_001), await trueItems(2_001, 2_001));
    await expect(backfill("1", AbortSignal.abort(new Error("stopped")))).rejects.toThrow("stopped");
    expect(await gapRow()).toMatchObject({ state: "open", attempts: 0 });
    expect(await backfill()).toEqual({ computed: 999, filled: 1 });
    expect(await followChain(sql, table)).toBe(1_001);
  });

  it("cannot be computed while no later round is proven; it waits longer each time", async () => {
    const table = await counted(FAIR);
    await take(table, [makeItem(1, 1.5)], [makeItem(5, 2.5)]);
    expect(await backfill()).toEqual({ failed: 1 });
    expect(await gapRow()).toMatchObject({ state: "open", attempts: 1, waits: 5 });
    await backfill();
    expect(await gapRow()).toMatchObject({ attempts: 2, waits: 15 });
  });
});

describe("a gap that the house is asked for", () => {
  it("is asked for no further once a person gave it up, until it is opened again, and then from its end", async () => {
    const table = await counted();
    await take(table, items(2, 1), items(252, 250), items(253, 250));
    const giveUp = (by: string) => sql.begin((tx) => giveUpGap(tx, 1n, { by, reason: "their archive is wrong" }));
    let closed: Promise<unknown> = Promise.resolve();
    house.on("/history?before=250&limit=100", (request, response) => {
      closed = giveUp("ann").then(() => respondWith(JSON.stringify({ rounds: items(249, 150) }))(request, response));
    });
    expect(await backfill()).toMatchObject({ pages: 1, rounds: 100 });
    await closed;
    expect(asked()).toHaveLength(1);
    const [gap] = await sql`select state, closed_by, filled::integer, lease_until from gaps`;
    expect(gap).toMatchObject({ state: "given_up", closed_by: "ann", filled: 100 });
    expect(await backfill()).toEqual({ skipped: 1 });
    expect(await giveUp("bob")).toMatchObject({ ok: false, problem: expect.stringContaining("by ann") });

    await sql`update gaps set cursor_page = 7`;
    expect(await sql.begin((tx) => openGapAgain(tx, 1n))).toMatchObject({ ok: true, after: { state: "open" } });
    const [again] = await sql`select cursor_round_id, cursor_page, attempts from gaps`;
    expect(again).toEqual({ cursor_round_id: null, cursor_page: 0, attempts: 0 });
    history(150, items(149, 50));
    history(50, items(49, 1));
    expect(await backfill()).toEqual({ pages: 2, rounds: 147, filled: 1 });
    expect(await gapRow()).toMatchObject({ state: "filled", filled: 247, reason: null });
  });

  it("is filled page by page, each kept raw, and asked for no faster than the house is polled", async () => {
    const table = await counted();
    await take(table, items(2, 1), items(252, 250), items(253, 250));
    history(250, items(249, 150));
    history(150, items(149, 50));
    history(50, items(49, 1));
    const began = performance.now();
    expect(await backfill()).toEqual({ pages: 3, rounds: 247, filled: 1 });
    expect(performance.now() - began).toBeGreaterThanOrEqual(390);
    expect(asked()).toEqual([250, 150, 50].map((before) => `/history?before=${before}&limit=100`));
    expect(await gapRow()).toMatchObject({ state: "filled", filled: 247 });
    expect(await openNotices(sql, table)).toEqual({});
    const stored = (await storedRounds(sql, table)).filter(({ source }) => source === "history");
    expect(stored).toHaveLength(247);
    expect(stored.every(({ late, x, id }) => late && x === value(Number(id)))).toBe(true);
    const pages =
      await sql`select kind, state, items, new_rounds, quarantined from payloads where kind = 'history' order by received_at`;
    expect(pages).toEqual([
      { kind: "history", state: "read", items: 100, new_rounds: 100, quarantined: 0 },
      { kind: "history", state: "read", items: 100, new_rounds: 100, quarantined: 0 },
      { kind: "history", state: "read", items: 49, new_rounds: 47, quarantined: 0 },
    ]);
    const times = await sql<{ ok: boolean }[]>`
      select r.requested_at = p.requested_at as ok
      from rounds r
      left join payloads p on p.table_id = r.table_id and p.received_at = r.received_at`;
    expect(times.every(({ ok }) => ok)).toBe(true);
    expect(await followChain(sql, table)).toBe(253);
  });

  it("skips rounds that arrived meanwhile, and requests nothing if none is missing", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(10, 10), items(9, 4));
    history(4, items(3, 1));
    expect(await backfill()).toEqual({ pages: 1, rounds: 2, filled: 1 });
    expect(asked()).toHaveLength(1);
    expect(await backfill()).toEqual({ skipped: 1 });
  });

  it("that the house's history does not reach is given up after eight attempts with the reason, and its notice closes a day later", async () => {
    const table = await counted();
    await take(table, items(700, 700), items(800, 800));
    history(800, items(799, 790));
    history(790, []);
    const waits: (number | null | undefined)[] = [];
    for (let attempt = 1; attempt < 8; attempt += 1) {
      await backfill();
      waits.push((await gapRow())?.waits);
    }
    expect(waits).toEqual([5, 15, 45, 135, 405, 1_215, 3_600]);
    expect(await backfill()).toMatchObject({ given_up: 1 });
    expect(await gapRow()).toMatchObject({ state: "given_up", reason: "the house's history ends at 790", filled: 10 });
    expect((await openNotices(sql, table))["gap"]).toMatch(
      /^89 of the rounds 701 to 799 are missing since .*; they could not be fetched: the house's history ends at 790$/,
    );
    await sql`update gaps set closed_at = closed_at - interval '25 hours'`;
    expect(await createNoticeRefresh()(sql)).toEqual([table.id]);
    expect(await openNotices(sql, table)).toEqual({});
    expect(await gapRow()).toMatchObject({ state: "given_up" });
  });

  it("that was given up is filled after all when its rounds arrive", async () => {
    const table = await counted({ feed: feedEntry() });
    await take(table, items(1, 1), items(4, 4));
    expect(await backfill()).toEqual({ given_up: 1 });
    await take(table, items(4, 2));
    expect(await gapRow()).toMatchObject({ state: "filled", filled: 2, reason: null });
    expect(await openNotices(sql, table)).toEqual({});
  });

  it("reports a round in it that is not listed, or not readable", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(5, 5));
    history(5, [makeItem(4, 2), makeItem(3, 0), makeItem(2, 2), makeItem(1, value(1))]);
    await sql`update gaps set attempts = 7`;
    await backfill();
    expect(await gapRow()).toMatchObject({
      state: "given_up",
      filled: 2,
      reason: "the house's history does not list all of them, or some cannot be read",
    });
    expect(await sql`select code from quarantine`).toEqual([{ code: "impossible_multiplier" }]);
  });

  it("never brings rounds that are newer than ours: a house may ignore what it was asked for", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(5, 5));
    history(5, items(9, 4));
    await backfill();
    expect((await storedRounds(sql, table)).map(({ id }) => id)).toEqual(["1", "5", "4"]);
    await take(table, items(9, 4));
    expect((await storedRounds(sql, table)).filter(({ late }) => !late).map(({ id }) => id)).toEqual([
      "1",
      "5",
      "6",
      "7",
      "8",
      "9",
    ]);
  });

  it("of a house that is polled rarely resumes later where it was, without spending an attempt", async () => {
    const table = await counted({}, { poll_every_ms: 5_000 });
    await take(table, items(1, 1), items(202, 202), items(203, 202));
    history(202, items(201, 102));
    history(102, items(101, 2));
    await expect(backfill()).rejects.toThrow(ThrottledError);
    expect(await gapRow()).toMatchObject({ state: "open", filled: 100, attempts: 0 });
    expect(await backfill()).toMatchObject({ pages: 1, filled: 1 });
    expect(asked()).toHaveLength(2);
    expect(await followChain(sql, table)).toBe(203);
  });

  it("is left to the next run when the pages of a run have taken 40 s, without spending an attempt", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(302, 302), items(303, 302));
    house.on("/history?before=302&limit=100", (request, response) => {
      vi.advanceTimersByTime(20_001);
      respondWith(JSON.stringify({ rounds: items(301, 202) }))(request, response);
    });
    house.on("/history?before=202&limit=100", (request, response) => {
      vi.advanceTimersByTime(20_001);
      respondWith(JSON.stringify({ rounds: items(201, 102) }))(request, response);
    });
    history(102, items(101, 2));
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      await expect(backfill()).rejects.toThrow(ThrottledError);
    } finally {
      vi.useRealTimers();
    }
    expect(asked()).toHaveLength(2);
    expect(await gapRow()).toMatchObject({ state: "open", filled: 200, attempts: 0 });
    expect(await backfill()).toMatchObject({ pages: 1, filled: 1 });
    expect(await followChain(sql, table)).toBe(303);
  });

  it("waits, spending no attempt, while its house is paused or to be left alone", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(5, 5));
    await sql`update poll_leases set next_allowed_at = clock_timestamp() + interval '90 seconds'`;
    expect(await backfill()).toMatchObject({ waiting: 1 });
    const [until] = await sql`
      select g.next_attempt_at >= l.next_allowed_at as allowed
      from gaps g
      cross join poll_leases l`;
    expect(until).toEqual({ allowed: true });
    const gap = await gapRow();
    expect(gap).toMatchObject({ attempts: 0 });
    expect(gap?.waits).toBeLessThanOrEqual(90);
    await pauseHouse(sql, { house: "alpha", by: "test", reason: "test" });
    expect(await backfill()).toMatchObject({ waiting: 1 });
    expect(await gapRow()).toMatchObject({ attempts: 0, waits: 60 });
    expect(asked()).toEqual([]);
  });

  it("waits until 00:00 UTC once its pages and its house's polls have half of the bytes of a day", async () => {
    const table = await counted();
    await take(table, items(10, 10), items(14, 14));
    history(14, items(13, 13));
    history(13, items(12, 11));
    await sql`
      update poll_leases
      set bytes_on = (clock_timestamp() at time zone 'UTC')::date, bytes_today = (1 << 29) - 10`;
    expect(await backfill()).toMatchObject({ pages: 1, rounds: 1, waiting: 1 });
    const [page] = await sql<{ bytes: number }[]>`select bytes from payloads where kind = 'history'`;
    expect(await sql`select bytes_today from poll_leases`).toEqual([
      { bytes_today: BigInt((1 << 29) - 10 + (page?.bytes ?? 0)) },
    ]);
    const [gap] = await sql`
      select
        attempts,
        next_attempt_at between midnight - interval '1 minute' and midnight + interval '1 minute' as at_midnight
      from gaps
      cross join lateral (select date_trunc('day', clock_timestamp(), 'UTC') + interval '1 day' as midnight) day`;
    expect(gap).toEqual({ attempts: 0, at_midnight: true });
    await sql`update poll_leases set bytes_on = bytes_on - 1`;
    expect(await backfill()).toMatchObject({ pages: 1, rounds: 2, filled: 1 });
  });

  it("keeps the number of a round in the path of its page, also if it contains the value of a variable", async () => {
    await take(await counted(), items(7_218_078, 7_218_078), items(7_218_081, 7_218_081));
    await counted({ adapter: "ethercrash", feed: { first_round_id: 1 } }, { headers: { "X-Token": "${TOKEN}" } });
    for (const id of [7_218_079, 7_218_080])
      house.on(`/game/${id}`, respondWith(`<title>Game ${id} | Crashed @2.00x</title>`));
    expect(await backfill()).toEqual({ pages: 2, rounds: 2, filled: 1 });
    expect(await sql`select path from payloads where kind = 'history' order by received_at`).toEqual([
      { path: "/game/7218080" },
      { path: "/game/7218079" },
    ]);
  });

  it("holds the house's polls too when the house asks to be left alone", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(5, 5));
    house.on("/history?before=5&limit=100", respondWith("later", { "retry-after": "30" }, 429));
    expect(await backfill()).toMatchObject({ failed: 1 });
    expect(await gapRow()).toMatchObject({ state: "open", attempts: 1 });
    const [lease] = await sql<{ held: boolean }[]>`
      select next_allowed_at > clock_timestamp() + interval '25 seconds' as held from poll_leases`;
    expect(lease?.held).toBe(true);
  });

  it("keeps a page that cannot be read, refused with its reason, and tries again", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(3, 3));
    house.on("/history?before=3&limit=100", respondWith("<html>"));
    expect(await backfill()).toMatchObject({ failed: 1 });
    const [page] = await sql`select state, refused_reason from payloads where kind = 'history'`;
    expect(page).toMatchObject({ state: "refused", refused_reason: expect.stringMatching(/HTML/) });
    history(3, items(2, 1));
    expect(await backfill()).toMatchObject({ filled: 1 });
    expect(await gapRow()).toMatchObject({ state: "filled" });
  });
});

describe("a gap of unknown size", () => {
  const named = (...names: string[]) => names.map((name) => makeItem(name, 1 + name.charCodeAt(0) / 100));
  const opaque = (feed = feedEntry({ history: HISTORY }), of = {}) => counted({ round_ids: "opaque", feed }, of);

  it("is paged back through until it reaches our rounds", async () => {
    const table = await opaque();
    await take(table, named("b", "a"), named("h", "g"));
    history("g", named("f", "e"));
    history("e", named("d", "c", "b"));
    expect(await backfill()).toEqual({ pages: 2, rounds: 4, filled: 1 });
    expect(await gapRow()).toMatchObject({ state: "filled", filled: 4 });
    expect(await openNotices(sql, table)).toEqual({});
    expect((await storedRounds(sql, table)).map(({ id, late }) => [id, late])).toEqual([
      ["a", false],
      ["b", false],
      ["g", false],
      ["h", false],
      ["e", true],
      ["f", true],
      ["c", true],
      ["d", true],
    ]);
    await followChain(sql, table);
  });

  it("stays one while an item in it cannot be read", async () => {
    const table = await opaque();
    await take(table, named("a"), [...named("c"), makeItem("b", 0), ...named("a")]);
    history("c", [makeItem("b", 0), ...named("a")]);
    await sql`update gaps set attempts = 7`;
    await backfill();
    expect(await gapRow()).toMatchObject({
      state: "given_up",
      reason: "the house lists an item there that cannot be read",
    });
  });

  it("over more than a hundred places is paged back through until the round before the first", async () => {
    const table = await opaque();
    const round = (n: number) => makeItem(`r${n}`, value(n));
    const all = Array.from({ length: 203 }, (_, n) => round(n)).toReversed();
    const isBad = (place: number) => place % 2 === 1;
    await take(
      table,
      [round(0)],
      all.map((item, place) => (isBad(place) ? { ...item, multiplier: "?" } : item)),
    );
    expect(await sql`select after_round_id, before_round_id from gaps`).toEqual([
      { after_round_id: "r0", before_round_id: "r202" },
    ]);
    history("r202", all.slice(1, 101));
    history("r102", all.slice(101));
    expect(await backfill()).toEqual({ pages: 2, rounds: 101, filled: 1 });
  });

  it("over more than a hundred places is paged back through also if the round before the first was late", async () => {
    const table = await opaque();
    const round = (n: number) => makeItem(`r${n}`, value(n));
    await take(table, [round(0)]);
    await addLateRounds(sql, table.id, "import", [{ roundId: "r1", hundredths: value(1) * 100 }]);
    await sql`update table_heads set version = version + 1, last_round_at = last_polled_round_at`;
    const all = Array.from({ length: 204 }, (_, n) => round(n)).toReversed();
    const isBad = (place: number) => place % 2 === 1 && place < 203;
    await take(
      table,
      all.map((item, place) => (isBad(place) ? { ...item, multiplier: "?" } : item)),
    );
    expect(await sql`select after_round_id, before_round_id from gaps`).toEqual([
      { after_round_id: "r0", before_round_id: "r203" },
    ]);
    history("r203", all.slice(1, 101));
    history("r103", all.slice(101));
    expect(await backfill()).toEqual({ pages: 2, rounds: 101, filled: 1 });
  });

  it("is given up if the house's history ends before it, or repeats itself", async () => {
    const table = await opaque();
    await take(table, named("a"), named("h"));
    history("h", named("h", "g", "f"));
    history("f", named("h", "g", "f"));
    await sql`update gaps set attempts = 7`;
    await backfill();
    expect(await gapRow()).toMatchObject({
      state: "given_up",
      reason: "the house's history ends at f, before it reaches our rounds",
    });
  });

  it("waits longer, and is given up, while pages of the house's history take turns", async () => {
    const table = await opaque(undefined, { poll_every_ms: 3_000 });
    await take(table, named("a"), named("h", "g"), named("i", "h"));
    history("g", named("i", "h"));
    history("h", named("h", "g"));
    expect(await backfill()).toEqual({ pages: 1, rounds: 0, failed: 1 });
    expect(await gapRow()).toMatchObject({ state: "open", attempts: 1, waits: 5 });
    await sql`update gaps set attempts = 7`;
    expect(await backfill()).toEqual({ pages: 1, rounds: 0, given_up: 1 });
    expect(await gapRow()).toMatchObject({
      state: "given_up",
      reason: "the house's history lists only rounds that are stored",
    });
    expect(asked()).toEqual(["/history?before=g&limit=100", "/history?before=h&limit=100"]);
  });

  it("is given up immediately if the house cannot be requested", async () => {
    const table = await opaque(feedEntry());
    await take(table, named("a"), named("h"));
    expect(await backfill()).toEqual({ given_up: 1 });
    expect((await openNotices(sql, table))["gap"]).toMatch(
      /^an unknown number of rounds are missing since .*; they could not be fetched: ids do not give the number of missing rounds/,
    );
  });
});

describe("backfill-gap", () => {
  it("gives up a gap of 1.2 million with a reason and advice", async () => {
    const table = await counted();
    await take(table, items(1_000_000, 1_000_000), items(2_200_001, 2_200_001), items(2_200_002, 2_200_001));
    expect(await backfill()).toEqual({ given_up: 1 });
    expect(await gapRow()).toMatchObject({
      state: "given_up",
      reason: "1200000 rounds are more than are fetched automatically (100000); add them with `roundhouse import`",
    });
    expect(asked()).toEqual([]);
  });

  it("gives up immediately if the house has no history and nothing can be computed", async () => {
    const table = await counted({ feed: feedEntry() });
    await take(table, items(1, 1), items(3, 3));
    expect(await backfill()).toEqual({ given_up: 1 });
    expect(await gapRow()).toMatchObject({ reason: "the house has no history path" });
  });

  it("works on one gap of a house at a time, then asks for the next one", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(3, 3), items(5, 5));
    let letGo = (): void => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    house.on("/history?before=3&limit=100", (_, response) => {
      void held.then(() => response.end(JSON.stringify({ rounds: items(2, 1) })));
    });
    history(5, items(4, 3));
    const { context: working, enqueued } = context();
    const first = backfillGap.run({ gap: "1" }, working);
    await eventually(() => asked().length === 1);
    expect(await backfillGap.run({ gap: "2" }, context().context)).toEqual({ skipped: 1 });
    letGo();
    expect(await first).toMatchObject({ filled: 1 });
    expect(enqueued).toEqual(['backfill-gap {"gap":"2"}']);
    const sweep = () => backfillGap.sweep?.({ sql, settings: working.settings });
    expect(await sweep()).toEqual([{ gap: "2" }]);
    await backfillGap.run({ gap: "2" }, working);
    expect(await followChain(sql, table)).toBe(5);
    expect(await sweep()).toEqual([]);
  });

  it("counts a run that fails as an attempt, and releases its house's other gaps", async () => {
    const [broken, healthy] = await countedTables();
    await take(broken, items(1, 1), items(3, 3));
    await take(healthy, items(1, 1), items(5, 5));
    for (const before of [3, 5]) history(before, items(before - 1, 1));
    await sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`update table_heads set last_seq = last_seq + 7 where table_id = ${broken.id}`;
    });
    const run = (gap: string) => backfillGap.run({ gap }, context().context);
    await expect(run("1")).rejects.toThrow();
    const [first] = await sql`select state, attempts, next_attempt_at > lease_until as waits from gaps where id = 1`;
    expect(first).toEqual({ state: "open", attempts: 1, waits: true });
    expect(await run("2")).toMatchObject({ filled: 1 });
    await sql`update gaps set attempts = 6, next_attempt_at = clock_timestamp() where id = 1`;
    await expect(run("1")).rejects.toThrow();
    expect(await sql`select state, attempts from gaps where id = 1`).toEqual([{ state: "open", attempts: 6 }]);
  });

  it("puts no gap back that another run has taken", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(3, 3));
    const first = await takeGap(sql, 1n, 0);
    const second = await takeGap(sql, 1n, 60_000);
    if (first === null || second === null) throw new Error("expected the gap to be free");
    const next = { waitMs: 0, attempts: 5, cursor: null };
    await putGapBack(sql, first, next);
    expect(await gapRow()).toMatchObject({ attempts: 0 });
    await putGapBack(sql, second, next);
    expect(await gapRow()).toMatchObject({ attempts: 5 });
  });

  it.for([
    [
      "reopened",
      async () => {
        await sql.begin((tx) => giveUpGap(tx, 1n, { by: "ann", reason: "not now" }));
        await sql.begin((tx) => openGapAgain(tx, 1n));
      },
    ],
    [
      "cut by a reset",
      async (table: MadeTable) =>
        sql.begin((tx) => resetNewestNumber(tx, table.id, { to: 105n, by: "ann", reason: "one response said so" })),
    ],
  ] as const)("leaves a gap alone that was %s while an attempt was failing", async ([, change]) => {
    const table = await counted();
    await take(table, items(101, 101), items(110, 110));
    await sql`update gaps set attempts = 7`;
    let held: ServerResponse | undefined;
    house.on("/history?before=110&limit=100", (_, response) => void (held = response));
    const attempt = backfill();
    await eventually(() => held !== undefined);
    await change(table);
    held?.writeHead(500).end();
    await attempt;
    expect(await gapRow()).toMatchObject({ state: "open", reason: null, attempts: 0 });
  });

  it("closes a gap whose rounds were imported, however many they are", async () => {
    const table = await counted({ feed: feedEntry() });
    await take(table, items(10, 10));
    const imported = items(400, 11).map(({ id }) => ({ roundId: String(id), hundredths: 150 }));
    await addLateRounds(sql, table.id, "import", imported.toReversed());
    // payloads here are an hour old: the import was before them
    await sql`update table_heads set version = version + 1, last_round_at = last_polled_round_at`;
    await take(table, items(401, 401), items(402, 401));
    expect(await sql`select from gaps where missing > 0`).toHaveLength(1);
    expect(await backfill()).toEqual({ filled: 1 });
    expect(await gapRow()).toMatchObject({ state: "filled", reason: null });
  });

  it("counts what is missing of a gap over imported rounds, and requests only that", async () => {
    const table = await counted();
    await take(table, items(10, 10));
    const imported = items(400, 11).flatMap(({ id }) => (id === 150 ? [] : { roundId: String(id), hundredths: 150 }));
    await addLateRounds(sql, table.id, "import", imported.toReversed());
    await sql`update table_heads set version = version + 1, last_round_at = last_polled_round_at`;
    await take(table, items(401, 401), items(402, 401));
    history(151, items(150, 150));
    await sql`update poll_leases set next_allowed_at = clock_timestamp() + interval '1 minute'`;
    expect(await backfill()).toMatchObject({ waiting: 1 });
    expect((await openNotices(sql, table))["gap"]).toMatch(/^1 of the rounds 11 to 400 is missing since/);
    await sql`update poll_leases set next_allowed_at = clock_timestamp()`;
    expect(await backfill()).toEqual({ pages: 1, rounds: 1, filled: 1 });
    expect(await sql`select missing, filled, state from gaps`).toEqual([{ missing: 1n, filled: 1n, state: "filled" }]);
    expect(asked()).toEqual(["/history?before=151&limit=100"]);
  });

  it("counts what is missing of a gap over imported rounds that is too large", async () => {
    const table = await counted();
    await take(table, items(10, 10));
    const imported = items(400, 11).map(({ id }) => ({ roundId: String(id), hundredths: 150 }));
    await addLateRounds(sql, table.id, "import", imported.toReversed());
    await sql`update table_heads set version = version + 1, last_round_at = last_polled_round_at`;
    await take(table, items(150_411, 150_411), items(150_412, 150_411));
    expect(await backfill()).toEqual({ given_up: 1 });
    expect(await sql`select missing, filled, reason from gaps`).toMatchObject([
      { missing: 150_010n, filled: 0n, reason: expect.stringMatching(/^150010 rounds are more than/) },
    ]);
  });

  it("counts a range of a billion numbers by the rounds that are stored", async () => {
    const table = await counted();
    await take(table, items(10, 10), items(15, 15));
    await sql`update gaps set to_number = 1000000010`;
    expect(await backfill()).toEqual({ given_up: 1 });
    expect(await sql`select missing from gaps`).toEqual([{ missing: 999_999_999n }]);
  });

  it("keeps the stored number of missing rounds if counting them takes too long", async () => {
    const table = await counted();
    await take(table, items(10, 10), items(150_411, 150_411), items(150_412, 150_411));
    await sql`update gaps set missing = 140000`;
    expect(await cancelling(1, backfill)).toEqual({ given_up: 1 });
    expect(await sql`select missing, reason from gaps`).toMatchObject([
      { missing: 140_000n, reason: expect.stringMatching(/^140000 rounds are more than/) },
    ]);
  });

  it("releases a gap whose statements take too long, with a longer wait each time", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(3, 3));
    await expect(cancelling(2, backfill)).rejects.toMatchObject({ code: "57014" });
    expect(await sql`select state, attempts, next_attempt_at > lease_until as waits from gaps`).toEqual([
      { state: "open", attempts: 1, waits: true },
    ]);
    expect(await sql`select from gaps where lease_until > clock_timestamp()`).toEqual([]);
  });

  it("asks a house for no other gap during the pause after a page", async () => {
    const table = await counted({}, { poll_every_ms: 60_000 });
    await take(table, items(1, 1), items(202, 202), items(203, 202), items(205, 205));
    history(202, items(201, 102));
    history(205, items(204, 203));
    const run = (gap: string) => backfillGap.run({ gap }, context().context);
    await expect(run("1")).rejects.toThrow(ThrottledError);
    expect(await run("2")).toEqual({ skipped: 1 });
    expect(asked()).toHaveLength(1);
  });

  it("is found without reading the gaps that are not due", async () => {
    const table = await counted();
    await sql`
      insert into gaps (table_id, from_number, to_number, missing, after_round_id, before_round_id, next_attempt_at)
      select
        ${table.id}, n, n, 1, (n - 1)::text, (n + 1)::text, clock_timestamp() + interval '1 hour'
      from generate_series(2, 4000, 2) as n`;
    await sql`analyze gaps`;
    const plan: Record<string, unknown>[] = [];
    const explaining = (strings: TemplateStringsArray, ...values: readonly Value[]) => {
      if (strings[0]?.includes(" as gap") !== true) return sql(strings, ...values);
      const texts = [`explain analyze ${strings[0]}`, ...strings.slice(1)];
      return sql(Object.assign(texts, { raw: texts }), ...values).then((rows) => plan.push(...rows) && []);
    };
    await findNextGap(Object.assign(explaining, sql), table.house);
    const text = JSON.stringify(plan);
    expect(text).toContain("gaps_open");
    expect(text).not.toContain("Rows Removed by Filter");
  });

  it("has nothing to do for a gap that is filled, waits, or never was", async () => {
    const table = await counted();
    await take(table, items(1, 1), items(3, 3));
    await sql`update gaps set next_attempt_at = clock_timestamp() + interval '1 minute'`;
    expect(await backfillGap.run({ gap: "1" }, context().context)).toEqual({ skipped: 1 });
    expect(await backfillGap.run({ gap: "99" }, context().context)).toEqual({ skipped: 1 });
    expect(asked()).toEqual([]);
  });
});
