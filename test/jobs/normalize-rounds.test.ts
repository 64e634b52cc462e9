import { beforeEach, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { SALT, TERMINATING_HASH } from "../../src/demo/bustabit-v2.ts";
import { createTrueChain } from "../../src/demo/true-chain.ts";
import { createNoticeRefresh, refreshStalledNotices } from "../../src/rounds/notices/notices-store.ts";
import { createPasses, type Passes } from "../../src/pass/passes.ts";
import { syncProofAlerts } from "../../src/rounds/proofs/proof-alerts-store.ts";
import { readOpen, readTables } from "../../src/health/table-facts-store.ts";
import { verify } from "../../src/verify/verify.ts";
import { testContext, type TestContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { feedEntry, forgetHouses, tableEntry } from "../support/houses.ts";
import {
  atSecond,
  followChain,
  makeHouse,
  makeItem,
  makePayload,
  makeTable,
  openNotices,
  storedRounds,
  type MadeTable,
} from "../support/make.ts";

const FAIR = {
  feed: feedEntry({ hash: "hash" }),
  fairness: { scheme: "bustabit", salt: SALT, terminating_hash: TERMINATING_HASH },
};
const games = createTrueChain(new AbortController().signal);

const { sql, pipeline } = await openTestDatabase();
let passes: Passes;
beforeEach(async () => {
  passes = createPasses(pipeline);
  await forgetHouses(sql);
});

async function normalize(house = "alpha"): Promise<{ counts: Record<string, number> } & TestContext> {
  const test = testContext(sql, { passes });
  return { counts: await normalizeRounds.run({ house }, test.context), ...test };
}

/** Rounds 1.01x, 1.02x … by number, newest first as houses list them. */
function items(newest: number, oldest: number): Record<string, unknown>[] {
  return Array.from({ length: newest - oldest + 1 }, (_, n) => newest - n).map((id) =>
    makeItem(id, 1 + (id % 90) / 100),
  );
}

/** True games of the chain as a house lists them. */
async function trueItems(newest: number, oldest: number): Promise<Record<string, unknown>[]> {
  return (await games({ newest, oldest })).map(({ id, hash, hundredths }) => ({
    id,
    hash,
    multiplier: hundredths / 100,
  }));
}

async function gapsOf(table: MadeTable): Promise<Record<string, unknown>[]> {
  return sql`
    select from_number::int as "from", to_number::int as "to", missing::int, filled::int, state
    from gaps
    where table_id = ${table.id}
    order by id`;
}

async function quarantined(table: MadeTable): Promise<{ code: string; reason: string; item: string; times: number }[]> {
  return sql`select code, reason, item, times from quarantine where table_id = ${table.id} order by id`;
}

async function payloadStates(): Promise<{ state: string; reason: string | null }[]> {
  return sql`select state, refused_reason as reason from payloads order by received_at`;
}

describe("normalize-rounds", () => {
  it("turns payloads into rounds in the order of their requests, and publishes them", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 1, items: items(4, 2) });
    await makePayload(sql, table, { second: 0, items: items(3, 1) });
    const { counts } = await normalize();
    expect(counts).toMatchObject({ payloads: 2, rounds: 4, late: 0, refused: 0 });
    expect((await storedRounds(sql, table)).map(({ id }) => id)).toEqual(["1", "2", "3", "4"]);
    expect(await followChain(sql, table)).toBe(4);
    expect(await openNotices(sql, table)).toEqual({});
    expect(await payloadStates()).toEqual([
      { state: "read", reason: null },
      { state: "read", reason: null },
    ]);
  });

  it("makes a snapshot of its rounds although the newest payload brings none", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: items(100, 1) });
    await makePayload(sql, table, { second: 1, items: items(100, 1) });
    await normalize();
    expect(await sql`select seq::integer from model_snapshots where table_id = ${table.id}`).toEqual([{ seq: 100 }]);
  });

  it("a round keeps the times of its response, to the microsecond, and when it was still absent", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: items(1, 1) });
    const brought = await makePayload(sql, table, { second: 2, previous: 1, items: items(2, 1) });
    await sql`update payloads set requested_at = requested_at + interval '123 microseconds' where received_at = ${brought}`;
    await normalize();
    const rounds = await sql<Record<string, unknown>[]>`
      select
        r.round_id,
        r.requested_at = p.requested_at and r.received_at = p.received_at as same,
        utc_text(r.absent_at) as absent
      from rounds r
      join payloads p on p.table_id = r.table_id and p.received_at = r.received_at
      order by seq`;
    expect(rounds).toEqual([
      { round_id: "1", same: true, absent: null },
      { round_id: "2", same: true, absent: atSecond(1).replace("Z", "0000Z") },
    ]);
  });

  it("many rounds in one response are stored like a few, whatever characters their texts have", async () => {
    const feed = feedEntry({ instant: ["bust\\\ted"], occurred_at: "at", hash: "hash", order: "newest_last" });
    const kind = { feed, round_ids: "opaque" };
    const tables = await makeHouse(sql, {
      tables: [tableEntry({ ...kind, market: "many" }), tableEntry({ ...kind, market: "few" })],
    });
    const [many, few] = tables;
    if (many === undefined || few === undefined) throw new Error("the house has two tables");
    const listed = Array.from({ length: 600 }, (_, n) =>
      makeItem(`\\N ${n}\\t"é"`, n % 40 === 7 ? "bust\\\ted" : `${1 + (n % 90) / 100}x`, {
        at: n % 3 === 0 ? atSecond(n / 1000) : null,
        hash: n % 5 === 0 ? "0a".repeat(32) : null,
      }),
    );
    await makePayload(sql, many, { second: 1, items: listed });
    await normalize();
    for (let second = 1; second <= 10; second += 1) {
      await makePayload(sql, few, { second, items: listed.slice(0, second * 60) });
      await normalize();
    }
    const stored = ({ id }: MadeTable) => sql`
      select seq, round_id, hundredths, raw_value, color, source, utc_text(occurred_at) as occurred_at,
        late, proof_hash, verified
      from named_rounds
      where table_id = ${id}
      order by seq`;
    const rounds = await stored(many);
    expect(rounds).toHaveLength(600);
    expect(rounds[7]).toMatchObject({
      round_id: '\\N 7\\t"é"',
      hundredths: 100n,
      raw_value: "bust\\\ted",
      proof_hash: null,
    });
    expect(rounds).toEqual(await stored(few));
    expect(await followChain(sql, many)).toBe(600);
    const times = await sql`
      select
        count(*)::integer as n,
        bool_and(r.requested_at = p.requested_at and r.received_at = p.received_at) as same,
        bool_and(r.absent_at = p.previous_requested_at) as absent
      from rounds r
      join payloads p on p.table_id = r.table_id and p.received_at = r.received_at`;
    expect(times).toEqual([{ n: 1_200, same: true, absent: true }]);
  });

  it("running again changes nothing, and a house without unread payloads is fine", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: items(3, 1) });
    await normalize();
    const before = await sql`select *, xmin from table_heads`;
    expect((await normalize()).counts).toMatchObject({ payloads: 0, rounds: 0 });
    expect((await normalize("nobody")).counts).toEqual({ skipped: 1 });
    expect(await sql`select *, xmin from table_heads`).toEqual(before);
  });

  it("two concurrent runs store each round once", async () => {
    const table = await makeTable(sql);
    for (let second = 0; second < 30; second += 1) {
      await makePayload(sql, table, { second, items: items(20 * second + 30, 20 * second + 1) });
    }
    const both = await Promise.all([normalize(), normalize(), normalize()]);
    expect(both.reduce((sum, { counts }) => sum + (counts["rounds"] ?? 0), 0)).toBe(610);
    expect(await followChain(sql, table)).toBe(610);
    expect((await storedRounds(sql, table)).some(({ late, gap }) => late || gap)).toBe(false);
  });

  it("one batch reads all tables of a house, and no other house", async () => {
    const tables = await makeHouse(sql, {
      tables: [tableEntry({ market: "a" }), tableEntry({ market: "b" }), tableEntry({ market: "c" })],
    });
    for (const [place, table] of tables.entries()) {
      await makePayload(sql, table, { second: 0, items: items(5 + place, 1) });
    }
    const { counts } = await normalize();
    expect(counts).toMatchObject({ payloads: 3, rounds: 18 });
    for (const table of tables) await followChain(sql, table);
  });

  it("more payloads than one batch holds are all read", async () => {
    const table = await makeTable(sql);
    for (let second = 0; second < 130; second += 1) {
      await makePayload(sql, table, { second, items: items(second + 3, second + 1) });
    }
    expect((await normalize()).counts).toMatchObject({ payloads: 130, rounds: 132 });
    expect(await followChain(sql, table)).toBe(132);
  });

  it("a table that cannot be written now fails the run, and stops no other", async () => {
    const tables = await makeHouse(sql, { tables: [0, 1].map((n) => tableEntry({ market: `m${n}` })) });
    const [locked, free] = tables as [MadeTable, MadeTable];
    for (const table of tables) await makePayload(sql, table, { second: 0, items: items(3, 1) });
    await sql.unsafe(`
      create function refuse_lock() returns trigger language plpgsql as $$
      begin raise exception 'locked' using errcode = 'lock_not_available'; end $$;
      create trigger refuse_lock before insert on rounds for each row when (new.table_id = ${locked.id})
        execute function refuse_lock()`);
    try {
      await expect(normalize()).rejects.toThrow("locked");
    } finally {
      await sql.unsafe("drop trigger refuse_lock on rounds; drop function refuse_lock()");
    }
    expect(await storedRounds(sql, free)).toHaveLength(3);
    expect((await normalize()).counts).toMatchObject({ payloads: 1, rounds: 3 });
    expect(await followChain(sql, locked)).toBe(3);
  });

  it("its sweep names houses with unread payloads", async () => {
    const table = await makeTable(sql);
    const sweep = () => normalizeRounds.sweep?.({ sql, settings: testContext(sql).context.settings });
    expect(await sweep()).toEqual([]);
    await makePayload(sql, table, { second: 0, items: [] });
    expect(await sweep()).toEqual([{ house: "alpha" }]);
  });
});

describe("what is wrong with a round", () => {
  it.each([
    ["a multiplier of 0", makeItem(2, 0), "impossible_multiplier"],
    ["a multiplier below 1", makeItem(2, "0.99x"), "impossible_multiplier"],
    ["a multiplier of 1e308", makeItem(2, 1e308), "impossible_multiplier"],
    ["an infinite multiplier", makeItem(2, "∞"), "not_a_number"],
    ["no multiplier", makeItem(2, null), "missing_multiplier"],
    ["a list as multiplier", makeItem(2, [1.5]), "not_a_number"],
    ["no id", makeItem(null, 1.5), "missing_id"],
    ["an id that is no number where ids count up", makeItem("two", 1.5), "bad_id"],
    ["a time in the future", makeItem(2, 1.5, { at: "2999-01-01T00:00:00Z" }), "absurd_time"],
    ["a text where an item should be", "1.50x", "not_an_item"],
    ["a lone surrogate and a NUL in the item", makeItem(2, "\u0000\ud800"), "not_a_number"],
  ])("%s is quarantined with its reason and raw form; the others are stored", async (_, item, code) => {
    const table = await makeTable(sql, { feed: feedEntry({ occurred_at: "at" }) });
    await makePayload(sql, table, { second: 0, items: [makeItem(3, 2.5), item, makeItem(1, 1.5)] });
    const { counts } = await normalize();
    expect(counts).toMatchObject({ payloads: 1, rounds: 2, quarantined: 1, refused: 0 });
    expect((await storedRounds(sql, table)).map(({ id }) => id)).toEqual(["1", "3"]);
    const [kept] = await quarantined(table);
    expect(kept).toMatchObject({ code, times: 1, item: JSON.stringify(item) });
    expect(kept?.reason).not.toBe("");
    expect((await openNotices(sql, table))["quarantine"]).toMatch(/failed validation/);
  });

  it("one that can be read after all ends the notice of it", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: [makeItem(2, 0), makeItem(1, 1.5)] });
    await normalize();
    expect(await openNotices(sql, table)).toHaveProperty("quarantine");
    await makePayload(sql, table, { second: 1, items: [makeItem(2, 2.5), makeItem(1, 1.5)] });
    await normalize();
    expect(await openNotices(sql, table)).toEqual({});
  });

  it("the same bad item again only counts", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: [makeItem(1, 0), makeItem(1, 0)] });
    await makePayload(sql, table, { second: 1, items: [makeItem(2, 1.5), makeItem(1, 0)] });
    await normalize();
    expect(await quarantined(table)).toMatchObject([{ times: 3 }]);
  });

  it("another result for a round is a conflict with a notice that closes after a day; the first is kept", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: [makeItem(812, 1.87)] });
    await makePayload(sql, table, { second: 1, items: [makeItem(813, 3), makeItem(812, 2.04)] });
    await makePayload(sql, table, { second: 2, items: [makeItem(814, 4), makeItem(813, 3), makeItem(812, 2.04)] });
    expect((await normalize()).counts).toMatchObject({ conflicts: 2, rounds: 3 });
    expect(await sql`select round_id, kept_hundredths, other_hundredths, times from conflicts`).toEqual([
      { round_id: "812", kept_hundredths: 187n, other_hundredths: 204n, times: 2 },
    ]);
    const text = (await openNotices(sql, table))["conflict"];
    expect(text).toMatch(/^round 812 was received twice, with 1\.87 and 2\.04 since .* UTC; the first is kept$/);
    await sql`update conflicts set last_seen_at = last_seen_at - interval '25 hours'`;
    expect(await createNoticeRefresh()(sql)).toEqual([table.id]);
    expect(await openNotices(sql, table)).toEqual({});
  });

  it("a late duplicate of a round changes nothing, and a late round is stored and flagged", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: [...items(9, 7), ...items(5, 5)] });
    await makePayload(sql, table, { second: 1, items: items(7, 5) });
    const { counts } = await normalize();
    expect(counts).toMatchObject({ rounds: 5, late: 1 });
    expect((await storedRounds(sql, table)).map(({ id, late }) => [id, late])).toEqual([
      ["5", false],
      ["7", false],
      ["8", false],
      ["9", false],
      ["6", true],
    ]);
    expect(await gapsOf(table)).toMatchObject([{ from: 6, to: 6, state: "filled" }]);
    await followChain(sql, table);
  });

  it("a feed that repeats one result is quarantined from the sixth on, with a notice until another result is received", async () => {
    const table = await makeTable(sql);
    const same = (newest: number) => Array.from({ length: newest }, (_, n) => makeItem(newest - n, 1));
    await makePayload(sql, table, { second: 0, items: same(7) });
    await normalize();
    expect(await quarantined(table)).toMatchObject([{ code: "stuck_feed" }, { code: "stuck_feed" }]);
    expect((await openNotices(sql, table))["stuck"]).toMatch(/^the feed repeats 1\.00 since round 6, /);
    await makePayload(sql, table, { second: 1, items: [makeItem(8, 2.5), ...same(7)] });
    await normalize();
    expect((await openNotices(sql, table))["stuck"]).toBeUndefined();
    expect((await storedRounds(sql, table)).map(({ id }) => id)).toEqual(["1", "2", "3", "4", "5", "8"]);
    await makePayload(sql, table, { second: 2, items: [makeItem(9, 3), makeItem(8, 2.5), ...same(7)] });
    await normalize();
    expect((await storedRounds(sql, table)).map(({ id }) => id)).toEqual(["1", "2", "3", "4", "5", "8", "9"]);
  });

  it("ids below ours are stored late, with a notice from the third response on until an on-time round arrives", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: items(81_234, 81_230) });
    for (const second of [1, 2]) await makePayload(sql, table, { second, items: items(second, 1) });
    await normalize();
    expect(await openNotices(sql, table)).toEqual({});
    await makePayload(sql, table, { second: 3, items: items(3, 1) });
    await normalize();
    expect((await openNotices(sql, table))["ids"]).toMatch(
      /^since .* the house lists its new rounds as older than round 81234/,
    );
    expect((await storedRounds(sql, table)).filter(({ late }) => late).length).toBe(3);
    await makePayload(sql, table, { second: 4, items: items(81_235, 81_230) });
    await normalize();
    expect(await openNotices(sql, table)).toEqual({});
  });
});

describe("a house whose variable is not set here", () => {
  it("has its stored payloads read all the same, so that none holds its day back", async () => {
    const table = await makeTable(sql, {}, { headers: { authorization: "Bearer ${ALPHA_TOKEN}" } });
    await makePayload(sql, table, { second: 0, items: items(3, 1) });
    expect((await normalize()).counts).toMatchObject({ payloads: 1, rounds: 3 });
  });
});

describe("a response of thousands of items that are refused", () => {
  it("has a hundred of them quarantined, and all of them counted and kept with the payload", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: Array.from({ length: 5_000 }, (_, n) => makeItem(n, 0)) });
    await normalize();
    expect(await quarantined(table)).toHaveLength(100);
    expect(await sql`select items, quarantined from payloads`).toEqual([{ items: 5_000, quarantined: 5_000 }]);
  });
});

describe("payloads that cannot be read", () => {
  it.each([
    ["HTML", "<html>busy</html>"],
    ["nothing", ""],
    ["incomplete JSON", '{"rounds":[{"id":1,'],
    ["another shape", '{"data":{}}'],
  ])(
    "%s is refused with the reason and kept; the next good response continues, without knowing what was absent",
    async (_, body) => {
      const table = await makeTable(sql);
      await makePayload(sql, table, { second: 0, items: items(2, 1) });
      await makePayload(sql, table, { second: 1, body });
      await normalize();
      const [, refused] = await payloadStates();
      expect(refused?.state).toBe("refused");
      expect(refused?.reason).toMatch(/^expected JSON with a list at/);
      expect((await openNotices(sql, table))["format"]).toMatch(/^the house's responses cannot be read since/);
      expect(await sql`select responded_at from table_heads`).toEqual([{ responded_at: null }]);

      await makePayload(sql, table, { second: 2, previous: 1, items: items(3, 1) });
      await makePayload(sql, table, { second: 3, previous: 2, items: items(4, 1) });
      await normalize();
      expect(await openNotices(sql, table)).toEqual({});
      const absent = await sql`select round_id, absent_at is null as unknown from rounds where seq >= 3 order by seq`;
      expect(absent).toEqual([
        { round_id: "3", unknown: true },
        { round_id: "4", unknown: false },
      ]);
    },
  );

  it("an empty list is read, and proves nothing about what was absent", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: items(2, 1) });
    await makePayload(sql, table, { second: 1, items: [] });
    await normalize();
    await makePayload(sql, table, { second: 2, items: items(3, 1) });
    await normalize();
    const [round] = await sql`select absent_at from rounds where round_id = '3'`;
    expect([await payloadStates(), round]).toMatchObject([
      [{ state: "read" }, { state: "read" }, {}],
      { absent_at: null },
    ]);
  });

  it("mostly unreadable items mean a changed format: a notice, until responses are good again", async () => {
    const table = await makeTable(sql);
    const renamed = items(6, 2).map(({ id, multiplier }) => ({ id, crash: multiplier }));
    await makePayload(sql, table, { second: 0, items: renamed });
    await normalize();
    expect((await openNotices(sql, table))["format"]).toMatch(/changed its format since .*: 5 of the 5 items/);
    await makePayload(sql, table, { second: 1, items: items(6, 2) });
    await normalize();
    expect((await openNotices(sql, table))["format"]).toBeUndefined();
  });

  it("a payload that was damaged in the store is refused, and so is one of a table that is no longer in the file", async () => {
    const [gone, kept] = await makeHouse(sql, {
      tables: [tableEntry({ market: "gone" }), tableEntry({ market: "kept" })],
    });
    if (gone === undefined || kept === undefined) throw new Error("expected two tables");
    await makePayload(sql, gone, { second: 0, items: items(2, 1) });
    const damaged = await makePayload(sql, kept, { second: 1, items: items(2, 1) });
    await sql`update payloads set body = 'torn' where received_at = ${damaged}`;
    await makePayload(sql, kept, { second: 2, items: items(2, 1) });
    await makeHouse(sql, { tables: [tableEntry({ market: "kept" })] });
    expect((await normalize()).counts).toMatchObject({ refused: 2, rounds: 2 });
    const reasons = (await payloadStates()).map(({ reason }) => reason);
    expect(reasons).toEqual([
      expect.stringMatching(/no longer in the houses file/),
      expect.stringMatching(/our own code/),
      null,
    ]);
  });

  it("a payload that our own code fails on is refused alone, and read after the fix", async () => {
    const table = await makeTable(sql);
    await sql`alter table rounds add constraint our_fault check (round_id <> '666')`;
    try {
      await makePayload(sql, table, { second: 0, items: items(665, 664) });
      await makePayload(sql, table, { second: 1, items: items(666, 664) });
      await makePayload(sql, table, { second: 2, items: [makeItem(667, 1.5), ...items(665, 664)] });
      expect((await normalize()).counts).toMatchObject({ payloads: 3, refused: 1, rounds: 3, gaps: 1 });
    } finally {
      await sql`alter table rounds drop constraint our_fault`;
    }
    const [, refused] = await payloadStates();
    expect(refused?.reason).toMatch(/our own code failed on this payload.*our_fault/);
    await sql`
      update payloads
      set state = 'unread', read_at = null, refused_reason = null
      where state = 'refused'`;
    expect((await normalize()).counts).toMatchObject({ payloads: 1, refused: 0, rounds: 1, late: 1 });
    expect(await gapsOf(table)).toMatchObject([{ from: 666, to: 666, state: "filled" }]);
    await followChain(sql, table);
  });
});

describe("what is missing", () => {
  it("is a gap with a notice of what is missing since when, and closes when the rounds arrive", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: items(811, 809) });
    await makePayload(sql, table, { second: 1, items: items(816, 815) });
    const { counts, enqueued } = await normalize();
    expect(counts).toMatchObject({ gaps: 1 });
    const [gap] = await sql<{ id: bigint }[]>`select id from gaps`;
    expect(enqueued[0]).toBe(`backfill-gap {"gap":"${gap?.id}"}`);
    expect((await openNotices(sql, table))["gap"]).toMatch(
      /^3 rounds \(812 to 814\) are missing since \d{4}-\d\d-\d\d \d\d:\d\d UTC; trying to fetch them$/,
    );
    await makePayload(sql, table, { second: 2, items: [...items(816, 815), ...items(813, 812)] });
    await normalize();
    await makePayload(sql, table, { second: 3, items: items(816, 812) });
    await normalize();
    expect(await gapsOf(table)).toEqual([{ from: 812, to: 814, missing: 3, filled: 3, state: "filled" }]);
  });

  it("with opaque ids is a gap of unknown size, closed by a response that shows both its ends", async () => {
    const table = await makeTable(sql, { round_ids: "opaque", feed: feedEntry({ order: "newest_first" }) });
    const named = (...names: string[]) =>
      names.map((name, place) => makeItem(name, 1.1 + place / 10 + name.charCodeAt(0) / 50));
    const value = new Map(named("a", "b", "x", "y").map((item) => [item["id"], item]));
    const listed = (...names: string[]) => names.flatMap((name) => value.get(name) ?? []);
    await makePayload(sql, table, { second: 0, items: listed("a") });
    await makePayload(sql, table, { second: 1, items: listed("y") });
    await normalize();
    expect(await gapsOf(table)).toEqual([{ from: null, to: null, missing: null, filled: 0, state: "open" }]);
    await makePayload(sql, table, { second: 2, items: listed("y", "x", "b", "a") });
    await normalize();
    expect(await gapsOf(table)).toMatchObject([{ filled: 2, state: "filled" }]);
    expect((await storedRounds(sql, table)).map(({ id, late, gap }) => [id, late, gap])).toEqual([
      ["a", false, false],
      ["y", false, true],
      ["b", true, false],
      ["x", true, false],
    ]);
  });

  it("is one gap for each place of a response up to a hundred, and one over all beyond, filled as its rounds arrive", async () => {
    const table = await makeTable(sql);
    const every = (step: number, newest: number) => items(newest, 1).filter(({ id }) => Number(id) % step === 1);
    await makePayload(sql, table, { second: 0, items: every(2, 201) });
    expect((await normalize()).counts).toMatchObject({ rounds: 101, gaps: 100 });
    await makePayload(sql, table, { second: 1, items: items(407, 203).filter(({ id }) => Number(id) % 2 === 1) });
    const { counts, enqueued } = await normalize();
    expect(counts).toMatchObject({ rounds: 103, gaps: 1 });
    const gaps = enqueued.filter((one) => one.startsWith("backfill-gap"));
    expect(gaps).toHaveLength(1); // its run asks for the next one
    const [joined] = (await gapsOf(table)).slice(100);
    expect(joined).toEqual({ from: 202, to: 406, missing: 103, filled: 0, state: "open" });
    await makePayload(sql, table, { second: 2, items: items(407, 203) });
    await normalize();
    expect((await gapsOf(table))[100]).toMatchObject({ missing: 103, filled: 102, state: "open" });
    await makePayload(sql, table, { second: 3, items: items(407, 202) });
    await normalize();
    expect((await gapsOf(table))[100]).toMatchObject({ filled: 103, state: "filled" });
    expect((await verify(sql, { tableId: table.id })).first_failure).toBeNull();
  });

  it("with opaque ids is one gap, too, in a response with more than a hundred unreadable items", async () => {
    const table = await makeTable(sql, { round_ids: "opaque", feed: feedEntry({ order: "newest_last" }) });
    const round = (n: number) => makeItem(`r${n}`, 1.1 + (n % 50) / 10);
    const listed = (isReadable: (n: number) => boolean) =>
      Array.from({ length: 203 }, (_, n) => (isReadable(n) ? round(n) : { ...round(n), multiplier: "?" }));
    await makePayload(sql, table, { second: 0, items: [round(0)] });
    await makePayload(sql, table, { second: 1, items: listed((n) => n % 2 === 0) });
    expect((await normalize()).counts).toMatchObject({ rounds: 102, gaps: 1 });
    const gapsNow = () => sql`select after_round_id, before_round_id, state from gaps where table_id = ${table.id}`;
    expect(await gapsNow()).toEqual([{ after_round_id: "r0", before_round_id: "r202", state: "open" }]);
    await makePayload(sql, table, { second: 2, items: listed((n) => n !== 1) });
    await normalize();
    expect(await gapsNow()).toMatchObject([{ state: "open" }]);
    await makePayload(sql, table, { second: 3, items: listed(() => true) });
    await normalize();
    expect(await gapsNow()).toMatchObject([{ state: "filled" }]);
  });

  it("a feed that brings nothing new is noticed, until it does or is paused", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: items(2, 1) });
    await normalize();
    expect(await refreshStalledNotices(sql, 7200)).toEqual([]);
    expect(await refreshStalledNotices(sql, 300)).toEqual([table.id]);
    expect(await refreshStalledNotices(sql, 300)).toEqual([]);
    await makePayload(sql, table, { second: 1, items: items(3, 1) });
    await normalize();
    expect(await openNotices(sql, table)).toEqual({});
    await refreshStalledNotices(sql, 300);
    await sql`update houses set paused_at = now(), paused_by = 'test', pause_reason = 'test'`;
    expect(await refreshStalledNotices(sql, 300)).toEqual([table.id]);
    expect(await openNotices(sql, table)).toEqual({});
  });
});

describe("rounds with a fairness scheme", () => {
  it("are stored as verified, and the newest becomes the anchor", async () => {
    const table = await makeTable(sql, FAIR);
    await makePayload(sql, table, { second: 0, items: await trueItems(2_003, 2_001) });
    await makePayload(sql, table, { second: 1, items: await trueItems(2_005, 2_002) });
    await normalize();
    const rounds = await storedRounds(sql, table);
    expect(rounds.map(({ id, verified }) => [id, verified])).toEqual(
      [2_001, 2_002, 2_003, 2_004, 2_005].map((id) => [String(id), true]),
    );
    const [anchor] = await sql`select proof_number, encode(proof_hash, 'hex') as proof_hash from table_heads`;
    expect(anchor).toEqual({ proof_number: 2_005n, proof_hash: (await trueItems(2_005, 2_005))[0]?.["hash"] });
  });

  it("without a hash are stored, unproven", async () => {
    const table = await makeTable(sql, FAIR);
    await makePayload(sql, table, { second: 0, items: [makeItem(1, 1.5)] });
    await normalize();
    expect(await storedRounds(sql, table)).toMatchObject([{ id: "1", verified: null }]);
  });

  it("a result that is not the hash's is quarantined, noticed, and alerted once, by the leader alone", async () => {
    const table = await makeTable(sql, FAIR);
    const listed = await trueItems(2_003, 2_001);
    const changed = listed.map((item) => (item["id"] === 2_002 ? { ...item, multiplier: 77.77 } : item));
    await makePayload(sql, table, { second: 0, items: changed });
    await makePayload(sql, table, { second: 1, items: [...(await trueItems(2_004, 2_004)), ...changed] });
    expect((await normalize()).lines).toEqual([]);
    expect((await storedRounds(sql, table)).map(({ id }) => id)).toEqual(["2001", "2003", "2004"]);
    expect(await quarantined(table)).toMatchObject([{ code: "proof_mismatch", times: 2 }]);
    expect((await openNotices(sql, table))["proof"]).toMatch(
      /^round 2002 failed its fairness proof at .* \(the hash gives \d+\.\d\dx, the house sent 77\.77x\); it is quarantined$/,
    );
    const leader = testContext(sql, { passes });
    await syncProofAlerts(sql, leader.context.log);
    expect(leader.lines).toMatchObject([{ msg: expect.stringContaining("failed its fairness proof") }]);
    expect(await gapsOf(table)).toMatchObject([{ from: 2_002, to: 2_002, state: "open" }]);
    await makePayload(sql, table, { second: 2, items: [...(await trueItems(2_005, 2_004)), ...changed] });
    expect((await normalize()).lines).toEqual([]);
    await syncProofAlerts(sql, leader.context.log);
    expect(leader.lines).toHaveLength(1);
  });

  it("a hash that is not of the published chain is quarantined even if its result fits", async () => {
    const table = await makeTable(sql, { ...FAIR, fairness: { ...FAIR.fairness, terminating_hash: "f".repeat(64) } });
    await makePayload(sql, table, { second: 0, items: await trueItems(2_003, 2_001) });
    expect((await normalize()).counts).toMatchObject({ rounds: 0, quarantined: 3 });
    expect((await openNotices(sql, table))["proof"]).toMatch(/^3 rounds failed their fairness proof since/);
  });

  it("an anchor of other fairness settings proves nothing", async () => {
    const table = await makeTable(sql, { ...FAIR, fairness: { ...FAIR.fairness, terminating_hash: "f".repeat(64) } });
    await sql`
      update table_heads
      set
        version = version + 1,
        proof_number = 2000,
        proof_hash = decode(${String((await trueItems(2_000, 2_000))[0]?.["hash"])}, 'hex'),
        proof_of = 'other'`;
    await makePayload(sql, table, { second: 0, items: await trueItems(2_001, 2_001) });
    expect((await normalize()).counts).toMatchObject({ rounds: 0, quarantined: 1 });
    expect(await gapsOf(table)).toEqual([]);
  });
});

describe("the health of tables", () => {
  it("has the newest round, the lag and the open gaps of each", async () => {
    const table = await makeTable(sql);
    const read = async () => (await readTables(sql, {}))[0];
    expect(await read()).toMatchObject({ house: "alpha", lastRoundAt: null, lagSeconds: null, rounds: 0 });
    await makePayload(sql, table, { second: 0, items: [...items(5, 5), ...items(2, 1)] });
    await normalize();
    const found = await read();
    expect(found).toMatchObject({ rounds: 3, lastRoundAt: atSecond(0.1).replace("Z", "0000Z") });
    expect(await readOpen(sql, { id: table.id })).toMatchObject([{ tableId: table.id, gaps: 1 }]);
    const before = (Date.now() - Date.parse(atSecond(0.1))) / 1000;
    expect(Math.abs((found?.lagSeconds ?? 0) - before)).toBeLessThan(120);
  });
});
