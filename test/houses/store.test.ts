import { beforeEach, describe, expect, test } from "vitest";
import type { Queryable } from "../../src/db/client.ts";
import type { Fragment } from "../../src/db/statement.ts";
import { reasonOf } from "../../src/errors.ts";
import { applyHouses, setDemoAddress } from "../../src/houses-file/apply-store.ts";
import { readDatabaseFacts } from "../../src/metrics/facts-store.ts";
import { readHouses } from "../../src/health/house-facts-store.ts";
import { statusOf } from "../../src/houses/status.ts";
import { askHouseNow } from "../../src/houses/polling/control-store.ts";
import { listPollSchedules, loadHouse, loadHouseToRead } from "../../src/houses/store.ts";
import { findOfflineHouses, findUnreadableTables } from "../../src/houses-file/watch-store.ts";
import { openTestDatabase } from "../support/database.ts";
import { feedEntry, forgetHouses, houseEntry, pauseHouse, resumeHouse, tableEntry } from "../support/houses.ts";
import { lockWaits } from "../support/lock-waits.ts";

const { sql } = await openTestDatabase();
beforeEach(() => forgetHouses(sql));

const TWO_COLORS = [{ name: "low", below: 3 }, { name: "high" }];

const noVariables = () => undefined;

async function facts() {
  const [houses, tables, feeds, heads] = await Promise.all([
    sql`select * from houses order by id`,
    sql`select * from tables order by id`,
    sql`select * from feeds order by table_id`,
    sql`select * from table_heads order by table_id`,
  ]);
  return { houses, tables, feeds, heads };
}

async function firstHouse() {
  const [house] = await readHouses(sql);
  return house && { ...house, status: statusOf(house, 300_000) };
}

const polledSecondsAfterRound = (seconds: number) =>
  sql.begin(async (tx) => {
    await moveHeads(sql`last_polled_round_at = now() - interval '10 minutes'`, null, tx);
    await tx`
      update poll_leases
      set
        last_poll_at = now() - interval '10 minutes' + ${seconds} * interval '1 second',
        last_status = 503,
        last_error = 'crash/global: answered 503; expected 200',
        last_error_at = now() - interval '10 minutes' + ${seconds} * interval '1 second'`;
  });

/** Keeps a payload of a damaged table, which was received so long before the newest poll. */
const keepUnread = (market: string, secondsBeforePoll = 301) => sql`
  insert into payloads (table_id, kind, requested_at, received_at, path, status, bytes, sha256, body, error)
  select t.id, 'poll', at, at, '/', 200, 0, sha256(''), '', 'its head is damaged'
  from tables t
  join poll_leases l on l.house_id = t.house_id
  cross join lateral (select l.last_poll_at - ${secondsBeforePoll} * interval '1 second' as at) s
  where t.market = ${market}`;

/** Changes the heads of all tables, or of those of a market, as a pass would. */
async function moveHeads(change: Fragment, market: string | null = null, tx: Queryable = sql): Promise<void> {
  await tx`
    update table_heads
    set ${change}, version = version + 1
    where table_id in (select id from tables where ${market}::text is null or market = ${market})`;
}

async function giveRound(market = "global", tx: Queryable = sql): Promise<void> {
  await tx`
    insert into rounds (
      table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, received_at, after_gap, late,
      history_hash
    )
    select t.id, 1, 1, '1', 100, '1', h.palette, 0, 3, now(), false, false, sha256('')
    from tables t
    join table_heads h on h.table_id = t.id
    where t.market = ${market}`;
  await moveHeads(sql`last_seq = 1, last_ordinal = 1`, market, tx);
}

describe("applying a houses file", () => {
  test("makes houses, tables and all that a poll and a caller need of them", async () => {
    expect(await applyHouses(sql, [houseEntry()])).toEqual({ houses: 1, tables: 1, disabled: [] });
    const { houses, tables } = await facts();
    expect(houses).toMatchObject([{ id: "alpha", name: "Alpha", enabled: true, poll_every_ms: 2_000, demo: false }]);
    expect(tables).toMatchObject([
      {
        house_id: "alpha",
        shard: 0,
        pause_ms: 5_000,
        round_ids: "consecutive",
        colors: [
          { name: "blue", below: 200 },
          { name: "purple", below: 1_000 },
          { name: "pink", below: null },
        ],
      },
    ]);
    const [counts] = await sql`
      select
        (select count(*)::integer from feeds) as feeds,
        (select count(*)::integer from table_heads) as heads,
        (select count(*)::integer from poll_leases) as leases`;
    expect(counts).toEqual({ feeds: 1, heads: 1, leases: 1 });
  });

  test("twice is once", async () => {
    await applyHouses(sql, [houseEntry()]);
    const before = await facts();
    await applyHouses(sql, [houseEntry()]);
    expect(await facts()).toEqual(before);
  });

  test("takes ids for new tables and palettes only", async () => {
    const taken = () => sql<{ sequencename: string; taken: number }[]>`
      select sequencename, last_value::integer as taken
      from pg_sequences
      where schemaname = 'public'
        and sequencename in ('tables_id_seq', 'palettes_id_seq')
      order by sequencename`;
    const file = (pause_ms: number) => [
      houseEntry({ tables: [tableEntry({ pause_ms }), tableEntry({ market: "euro", colors: TWO_COLORS })] }),
    ];
    await applyHouses(sql, file(5_000));
    const before = await taken();
    await applyHouses(sql, file(5_000));
    await applyHouses(sql, file(6_000));
    expect(await taken()).toEqual(before);
    await applyHouses(sql, [...file(6_000), houseEntry({ id: "beta" })]);
    expect((await taken()).map((sequence, at) => sequence.taken - before[at]!.taken)).toEqual([0, 1]);
  });

  test("in several processes concurrently is applied once, whatever the order of their files", async () => {
    const file = Array.from({ length: 40 }, (_, n) => houseEntry({ id: `h${n}` }));
    await Promise.all([file, file.toReversed(), file, file.toReversed()].map((entries) => applyHouses(sql, entries)));
    const { houses, tables } = await facts();
    expect([houses.length, tables.length]).toEqual([40, 40]);
  });

  test("disables a house and a table that left the file, and takes them back with what they had", async () => {
    const both = houseEntry({ tables: [tableEntry(), tableEntry({ market: "euro" })] });
    await applyHouses(sql, [both, houseEntry({ id: "beta" })]);
    const before = await facts();
    expect(await applyHouses(sql, [houseEntry()])).toMatchObject({ disabled: ["beta"] });
    const between = await facts();
    expect(between.houses.map(({ id, enabled }) => [id, enabled] as unknown)).toEqual([
      ["alpha", true],
      ["beta", false],
    ]);
    expect(between.tables.map(({ enabled }) => enabled as unknown)).toEqual([true, false, true]);
    await applyHouses(sql, [both, houseEntry({ id: "beta" })]);
    expect((await facts()).tables).toEqual(before.tables);
  });

  test.each([
    ["palette", { colors: [{ name: "low", below: 2 }, { name: "high" }] }, "tables[1].colors: the palette is fixed"],
    ["kind of round ids", { round_ids: "opaque" }, "tables[1].round_ids: consecutive is fixed"],
  ])("refuses another %s for a table that has rounds, and then applies nothing", async (_, changed, message) => {
    const file = (other: Record<string, unknown>) => [
      houseEntry({
        name: other === changed ? "Renamed" : "Alpha",
        tables: [tableEntry({ market: "a" }), tableEntry(other)],
      }),
    ];
    await applyHouses(sql, file({}));
    await giveRound();
    const before = await facts();
    const refused = applyHouses(sql, file(changed));
    await expect(refused).rejects.toThrow(`houses[0].${message}`);
    await expect(refused).rejects.toThrow("alpha/crash/global has rounds; give the changed game a new market");
    expect(await facts()).toEqual(before);
  });

  test("does not wait for passes of tables that stay as they are", async () => {
    await applyHouses(sql, [houseEntry()]);
    await sql.begin(async (pass) => {
      await pass`select from table_heads for no key update`;
      expect(await applyHouses(sql, [houseEntry(), houseEntry({ id: "beta" })])).toMatchObject({ tables: 2 });
    });
    expect(await sql`select from table_heads`).toHaveLength(2);
  });

  test("waits for the pass that may bring the first round of a table with another palette, and then refuses", async () => {
    const [before, after] = [houseEntry(), houseEntry({ tables: [tableEntry({ colors: TWO_COLORS })] })];
    await applyHouses(sql, [before]);
    let applied: Promise<unknown> | undefined;
    await sql.begin(async (pass) => {
      await giveRound("global", pass);
      applied = applyHouses(sql, [after]).catch(reasonOf);
      await lockWaits(sql, 1);
    });
    expect(await applied).toMatch(/the palette is fixed because .* has rounds/);
  });

  test("names a table that another session keeps locked, and is applied when it is free", async () => {
    const file = (path: string) => [
      houseEntry({ tables: [tableEntry(), tableEntry({ market: "euro", feed: feedEntry({ path }) })] }),
    ];
    await applyHouses(sql, file("/a"));
    const free = Promise.withResolvers<undefined>();
    const isLocked = Promise.withResolvers<undefined>();
    const importing = sql.begin(async (tx) => {
      await tx`select from table_heads where table_id = (select id from tables where market = 'euro') for no key update`;
      isLocked.resolve(undefined);
      await free.promise;
    });
    await isLocked.promise;
    const named: (readonly string[])[] = [];
    const applied = await applyHouses(sql, file("/b"), async (tables) => {
      named.push(tables);
      free.resolve(undefined);
      await importing;
    });
    expect(named).toEqual([["alpha/crash/euro"]]);
    expect(applied).toMatchObject({ tables: 2 });
  });

  test("takes the locks of a table with another feed in the order of a pass, so that neither is refused", async () => {
    await applyHouses(sql, [houseEntry()]);
    let applied: Promise<unknown> | undefined;
    await sql.begin(async (pass) => {
      await pass`select from poll_leases for share`;
      applied = applyHouses(sql, [houseEntry({ base_url: "http://127.0.0.1:2" })]).catch(reasonOf);
      await lockWaits(sql, 1);
      await pass`select from table_heads for no key update`;
      await pass`update feeds set etag = 'a'`;
    });
    expect(await applied).toMatchObject({ tables: 1 });
    expect((await facts()).feeds).toMatchObject([{ etag: null }]);
  });

  test("keeps no operator waiting who asks for a probe of the house", async () => {
    await applyHouses(sql, [houseEntry()]);
    await sql`update poll_leases set circuit = 'open', opened_at = now()`;
    await sql.begin(async (applying) => {
      await applying`select from houses for no key update`;
      const asked = sql.begin((tx) => askHouseNow(tx, { house: "alpha", forget: false }));
      expect(await asked).toMatchObject({ ok: true });
    });
  });

  test.for([
    ["pauses", () => pauseHouse(sql, { house: "alpha", by: "ann", reason: "maintenance" })],
    ["resumes", () => resumeHouse(sql, "alpha")],
  ] as const)("succeeds while an operator %s the house", async ([verb, change]) => {
    await applyHouses(sql, [houseEntry()]);
    if (verb === "resumes") await pauseHouse(sql, { house: "alpha", by: "ann", reason: "maintenance" });
    const both: Promise<unknown>[] = [];
    await sql.begin(async (holder) => {
      await holder`select from houses for no key update`;
      both.push(change());
      await lockWaits(sql, 1);
      both.push(applyHouses(sql, [houseEntry({ base_url: "http://127.0.0.1:2" })]));
      await lockWaits(sql, 2);
    });
    expect(await Promise.all(both)).toMatchObject([{ ok: true }, { tables: 1 }]);
  });

  test("takes another palette for a table without rounds", async () => {
    await applyHouses(sql, [houseEntry()]);
    await applyHouses(sql, [houseEntry({ tables: [tableEntry({ colors: TWO_COLORS })] })]);
    expect((await facts()).tables[0]?.["colors"]).toEqual([
      { name: "low", below: 300 },
      { name: "high", below: null },
    ]);
  });

  test("forgets the newest response of a table that moves to another shard", async () => {
    await applyHouses(sql, [houseEntry()]);
    await sql`update feeds set etag = 'a', last_full_at = now()`;
    const others = Array.from({ length: 100 }, (_, n) => tableEntry({ market: `other${n}` }));
    await applyHouses(sql, [houseEntry({ tables: [...others, tableEntry()] })]);
    expect(await sql`select shard, etag from tables t join feeds f on f.table_id = t.id where position = 100`).toEqual([
      { shard: 1, etag: null },
    ]);
  });

  test.each([
    ["path", { tables: [tableEntry({ feed: feedEntry({ path: "/other" }) })] }],
    ["address", { base_url: "http://127.0.0.1:2" }],
  ])("forgets the newest response of a feed whose %s changed, and only then", async (_, changed) => {
    await applyHouses(sql, [houseEntry()]);
    await sql`update feeds set etag = 'a', last_full_at = now()`;
    await moveHeads(sql`payload_sha256 = sha256(''), responded_at = now()`);
    await applyHouses(sql, [houseEntry({ name: "Renamed", timeout_ms: 1_000 })]);
    expect(await facts()).toMatchObject({ feeds: [{ etag: "a" }], heads: [{ payload_sha256: expect.any(Buffer) }] });
    await applyHouses(sql, [houseEntry(changed)]);
    expect(await facts()).toMatchObject({
      feeds: [{ etag: null }],
      heads: [{ payload_sha256: null, responded_at: null }],
    });
  });

  test("splits a house with more than 100 tables in shards, each with its own schedule", async () => {
    const tables = Array.from({ length: 201 }, (_, n) => tableEntry({ market: `m${n}` }));
    await applyHouses(sql, [houseEntry({ tables })]);
    const sizes = await sql`select shard, count(*)::integer as tables from tables group by shard order by shard`;
    expect([...sizes]).toEqual([
      { shard: 0, tables: 100 },
      { shard: 1, tables: 100 },
      { shard: 2, tables: 1 },
    ]);
    const schedules = await listPollSchedules(sql);
    expect(schedules.map(({ payload }) => payload.shard)).toEqual([0, 1, 2]);
    expect(new Set(schedules.map(({ offsetMs }) => offsetMs)).size).toBe(3);
  });

  test("lets shards that share a budget of requests begin at random, so that none always finds it spent", async () => {
    const tables = Array.from({ length: 101 }, (_, n) => tableEntry({ market: `m${n}` }));
    const spreads = async (settings: Record<string, unknown>) => {
      await applyHouses(sql, [houseEntry({ poll_every_ms: 2_000, ...settings })]);
      return (await listPollSchedules(sql)).map(({ payload }) => payload.pace.spreadMs);
    };
    expect(await spreads({ tables: tables.slice(0, 1), requests_per_minute: 60 })).toEqual([0]);
    expect(await spreads({ tables })).toEqual([0, 0]);
    expect(await spreads({ tables, requests_per_minute: 60 })).toEqual([2_000, 2_000]);
    expect(await spreads({ tables, requests_per_minute: 3_029 })).toEqual([2_000, 2_000]);
    expect(await spreads({ tables, requests_per_minute: 3_030 })).toEqual([0, 0]); // 101 tables every two seconds
    expect(await spreads({ tables, requests_per_minute: 1, poll_every_ms: 3_600_000 })).toEqual([10_000, 10_000]);
  });
});

describe("a house as jobs use it", () => {
  const withSecret = houseEntry({ headers: { "X-Token": "${HOUSE_TOKEN}" } });

  test("has the variables of the process in it, which the database never sees", async () => {
    await applyHouses(sql, [withSecret]);
    const house = await loadHouse(sql, (name) => (name === "HOUSE_TOKEN" ? "s3cr3t" : undefined), "alpha");
    expect(house?.settings.headers).toEqual({ "X-Token": "s3cr3t" });
    expect(house?.baseUrl).toBe("http://127.0.0.1:1");
    expect(house?.hide("/rounds?token=s3cr3t")).toBe("/rounds?token=${HOUSE_TOKEN}");
    expect(
      JSON.stringify(await facts(), (_, value: unknown) => (typeof value === "bigint" ? Number(value) : value)),
    ).not.toContain("s3cr3t");
  });

  test("is refused if a variable is not set in this process", async () => {
    await applyHouses(sql, [withSecret]);
    await expect(loadHouse(sql, noVariables, "alpha")).rejects.toThrow("the variable HOUSE_TOKEN is not set");
  });

  test("has a placeholder for a variable that is not set, for work without requests, and is otherwise the same", async () => {
    await applyHouses(sql, [withSecret, houseEntry({ id: "beta" })]);
    expect((await loadHouseToRead(sql, noVariables, "alpha"))?.settings.headers).toEqual({
      "X-Token": "https://not-set.invalid",
    });
    expect(await loadHouseToRead(sql, noVariables, "beta")).toBe(await loadHouse(sql, noVariables, "beta"));
  });

  test("is read again once the file was applied with a change", async () => {
    await applyHouses(sql, [houseEntry()]);
    const first = await loadHouse(sql, noVariables, "alpha");
    expect(await loadHouse(sql, noVariables, "alpha")).toBe(first);
    await applyHouses(sql, [houseEntry({ timeout_ms: 1_234 })]);
    expect((await loadHouse(sql, noVariables, "alpha"))?.settings.timeout_ms).toBe(1_234);
  });

  test("that is unknown is null", async () => {
    expect(await loadHouse(sql, noVariables, "nobody")).toBeNull();
  });
});

describe("a demo house", () => {
  const demo = houseEntry({ id: "demo", demo: true, base_url: undefined });

  test("is not polled before it has an address, keeps it when the file is applied again, and follows a new one", async () => {
    await applyHouses(sql, [demo]);
    expect(await listPollSchedules(sql)).toEqual([]);
    await setDemoAddress(sql, "http://127.0.0.1:4010");
    await applyHouses(sql, [houseEntry({ id: "demo", demo: true, base_url: undefined, name: "Renamed" })]);
    expect(await listPollSchedules(sql)).toHaveLength(1);
    expect((await loadHouse(sql, noVariables, "demo"))?.baseUrl).toBe("http://127.0.0.1:4010");
    await setDemoAddress(sql, "http://127.0.0.1:4011");
    expect((await loadHouse(sql, noVariables, "demo"))?.baseUrl).toBe("http://127.0.0.1:4011");
  });

  test("that moved gets one full request, and its newest response is still known", async () => {
    await applyHouses(sql, [demo]);
    await setDemoAddress(sql, "http://127.0.0.1:4010");
    await sql`update feeds set etag = 'a'`;
    await moveHeads(sql`payload_sha256 = sha256('')`);
    await setDemoAddress(sql, "http://127.0.0.1:4010");
    expect((await facts()).feeds[0]).toMatchObject({ etag: "a" });
    await setDemoAddress(sql, "http://127.0.0.1:4011");
    expect(await facts()).toMatchObject({ feeds: [{ etag: null }], heads: [{ payload_sha256: expect.any(Buffer) }] });
  });
});

describe("the list of houses", () => {
  test("is live, stale or offline by the newest polled round of any table", async () => {
    await applyHouses(sql, [houseEntry({ tables: [tableEntry(), tableEntry({ market: "euro" })] })]);
    expect((await firstHouse())?.status).toBe("offline");
    for (const [seconds, status] of [
      [1, "live"],
      [290, "live"],
      [310, "stale"],
      [3_590, "stale"],
      [3_610, "offline"],
    ] as const) {
      await moveHeads(sql`last_polled_round_at = clock_timestamp() - ${seconds} * interval '1 second'`, "euro");
      expect((await firstHouse())?.status, `${seconds} s`).toBe(status);
    }
  });

  test("has its last response, its last error and its next poll", async () => {
    await applyHouses(sql, [houseEntry({ simulated: true })]);
    expect(await firstHouse()).toMatchObject({
      id: "alpha",
      simulated: true,
      lastOkAt: null,
      lastStatus: null,
      lastError: null,
      circuit: "closed",
      nextPollAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/),
    });
    await sql`
      update poll_leases
      set
        last_poll_at = '2026-11-21 04:00:00Z',
        last_ok_at = '2026-11-21 03:59:00Z',
        last_status = 503,
        last_error = 'answered 503',
        last_error_at = '2026-11-21 04:00:00Z',
        circuit = 'open',
        next_allowed_at = '2099-01-01 00:00:00Z'`;
    expect(await firstHouse()).toMatchObject({
      lastOkAt: "2026-11-21T03:59:00.0000000Z",
      lastStatus: 503,
      lastError: "answered 503",
      circuit: "open",
      nextPollAt: "2099-01-01T00:00:00.0000000Z",
    });
  });

  test("is that of its shards with enabled tables, in metrics also only of an enabled house", async () => {
    await applyHouses(sql, [houseEntry()]);
    await sql`
      insert into poll_leases (house_id, shard, circuit, last_poll_at, last_status, last_error, last_error_at)
      values ('alpha', 1, 'open', now(), 503, 'answered 503', now())`;
    expect(await firstHouse()).toMatchObject({ circuit: "closed", lastStatus: null, lastError: null });
    const circuits = async () => (await readDatabaseFacts(sql)).circuits;
    expect(await circuits()).toEqual([{ house: "alpha", kind: "closed", n: 1 }]);
    await applyHouses(sql, [houseEntry({ enabled: false })]);
    expect(await circuits()).toEqual([]);
  });

  test("reports why its responses cannot be read, while they arrive and cannot", async () => {
    await applyHouses(sql, [houseEntry()]);
    await sql`
      update poll_leases
      set
        last_ok_at = '2026-11-21 04:00:00Z',
        last_error = 'answered 503',
        last_error_at = '2026-11-21 03:00:00Z'`;
    expect(await firstHouse()).toMatchObject({ lastError: "answered 503" });
    await refuseResponses("expected JSON, found HTML");
    expect(await firstHouse()).toMatchObject({
      lastError: "crash/global: expected JSON, found HTML",
      lastErrorAt: "2026-11-21T04:00:00.0000000Z",
    });
    await sql`update poll_leases set last_error_at = '2026-11-21 05:00:00Z'`;
    expect(await firstHouse()).toMatchObject({ lastError: "answered 503" });
  });

  test("has the error of the shard with the worst circuit, also while another shard fails later", async () => {
    const tables = Array.from({ length: 101 }, (_, n) => tableEntry({ market: `m${n}` }));
    await applyHouses(sql, [houseEntry({ tables })]);
    await sql`
      update poll_leases
      set
        circuit = case shard when 0 then 'open' else 'closed' end,
        last_poll_at = '2026-11-21 04:00:00Z',
        last_ok_at = case shard when 0 then null else timestamptz '2026-11-21 04:00:00Z' end,
        last_status = case shard when 0 then 404 else 200 end,
        last_error = case shard when 0 then 'answered 404' else 'timed out' end,
        last_error_at = timestamptz '2026-11-21 03:00:00Z' + shard * interval '1 minute'`;
    expect(await firstHouse()).toMatchObject({ circuit: "open", lastError: "answered 404" });
    await sql`update poll_leases set circuit = 'closed'`;
    expect(await firstHouse()).toMatchObject({ circuit: "closed", lastError: "timed out" });
  });

  test("has the newest error, also while a shard waits whose own poll did not fail", async () => {
    const tables = Array.from({ length: 101 }, (_, n) => tableEntry({ market: `m${n}` }));
    await applyHouses(sql, [houseEntry({ tables })]);
    await sql`
      update poll_leases
      set
        last_poll_at = '2026-11-21 04:00:00Z',
        last_ok_at = '2026-11-21 04:00:00Z',
        last_status = 200,
        next_allowed_at = case shard when 0 then timestamptz '2099-01-01 00:00:00Z' else next_allowed_at end,
        last_error = case shard when 1 then 'timed out' end,
        last_error_at = case shard when 1 then timestamptz '2026-11-21 03:00:00Z' end`;
    expect(await firstHouse()).toMatchObject({ lastError: "timed out" });
    await sql`update poll_leases set failures_in_row = 1 where shard = 0`;
    expect(await firstHouse()).toMatchObject({ lastError: "timed out" });
    await sql`
      update poll_leases
      set failures_in_row = 0, last_error = 'answered 404', last_error_at = '2026-11-21 02:00:00Z'
      where shard = 0`;
    expect(await firstHouse()).toMatchObject({ lastError: "timed out" });
    // its own poll failed, so its error is why it waits
    await sql`update poll_leases set last_error_at = last_poll_at where shard = 0`;
    expect(await firstHouse()).toMatchObject({ lastError: "answered 404" });
  });

  test("shows who was paused and why, until it is resumed", async () => {
    await applyHouses(sql, [houseEntry()]);
    expect(await pauseHouse(sql, { house: "alpha", by: "ana", reason: "maintenance" })).toMatchObject({ ok: true });
    expect(await firstHouse()).toMatchObject({ status: "paused", pauseReason: "maintenance", nextPollAt: null });
    expect(await listPollSchedules(sql)).toEqual([]);
    expect(await resumeHouse(sql, "alpha")).toMatchObject({ ok: true });
    expect(await firstHouse()).toMatchObject({ status: "offline", pauseReason: null });
    expect(await listPollSchedules(sql)).toHaveLength(1);
  });

  test("is paused and resumed while another session keeps one of its tables locked, as an import does", async () => {
    await applyHouses(sql, [houseEntry()]);
    await sql.begin(async (importing) => {
      await importing`select from table_heads for no key update`;
      expect(await pauseHouse(sql, { house: "alpha", by: "ana", reason: "maintenance" })).toMatchObject({ ok: true });
      expect(await resumeHouse(sql, "alpha")).toMatchObject({ ok: true });
    });
  });

  test("knows no house that is not there", async () => {
    await applyHouses(sql, [houseEntry()]);
    const unknown = { ok: false, problem: 'there is no house "nobody"; there are alpha', isUnknown: true };
    expect(await pauseHouse(sql, { house: "nobody", by: "ana", reason: "x" })).toEqual(unknown);
    expect(await resumeHouse(sql, "nobody")).toEqual(unknown);
    const ids = ["alpha", "beta", "delta", "gamma", "kappa", "omega", "sigma"];
    await applyHouses(
      sql,
      ids.map((id) => houseEntry({ id })),
    );
    expect(await resumeHouse(sql, "nobody")).toMatchObject({
      problem: 'there is no house "nobody"; there are alpha, beta, delta, gamma, kappa and 2 more',
    });
  });
});

describe("a house that is offline", () => {
  beforeEach(async () => {
    await applyHouses(sql, [houseEntry()]);
    await sql`update houses set created_at = now() - interval '1 day', updated_at = now() - interval '1 day'`;
  });

  test("is reported with since when, its last response and its next poll", async () => {
    await polledSecondsAfterRound(301);
    const [found, ...others] = await findOfflineHouses(sql, 300);
    expect(others).toEqual([]);
    expect(found?.subject).toBe("alpha");
    expect(found?.text).toMatch(
      /^the house alpha has returned no round since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; its newest poll got the status 503 \(crash\/global: answered 503; expected 200\); the next poll is at \d\d:\d\d:\d\d UTC$/,
    );
  });

  test("is not reported without polls, or for payloads that are unread", async () => {
    expect(await findOfflineHouses(sql, 300)).toEqual([]);
    await polledSecondsAfterRound(299);
    expect(await findOfflineHouses(sql, 300)).toEqual([]);
    await polledSecondsAfterRound(301);
    await sql`
      insert into payloads (table_id, kind, requested_at, received_at, path, status, bytes, sha256, body)
      select id, 'poll', now(), now(), '/', 200, 0, sha256(''), ''
      from tables`;
    expect(await findOfflineHouses(sql, 300)).toEqual([]);
  });

  test("is reported while one of its tables is damaged, but not if all are", async () => {
    await applyHouses(sql, [houseEntry({ tables: [tableEntry(), tableEntry({ market: "other" })] })]);
    await sql`update houses set created_at = now() - interval '1 day', updated_at = now() - interval '1 day'`;
    await polledSecondsAfterRound(301);
    await keepUnread("other");
    expect(await findOfflineHouses(sql, 300)).toMatchObject([{ subject: "alpha" }]);
    await keepUnread("global");
    expect(await findOfflineHouses(sql, 300)).toEqual([]);
  });

  test("is not one whose damaged table still receives new payloads, though its other table is quiet", async () => {
    await applyHouses(sql, [houseEntry({ tables: [tableEntry(), tableEntry({ market: "other" })] })]);
    await sql`update houses set created_at = now() - interval '1 day', updated_at = now() - interval '1 day'`;
    await polledSecondsAfterRound(301);
    await keepUnread("other", 299);
    expect(await findOfflineHouses(sql, 300)).toEqual([]);
  });

  test("is not one while it is paused or disabled, or was resumed just now", async () => {
    await polledSecondsAfterRound(301);
    await pauseHouse(sql, { house: "alpha", by: "ana", reason: "maintenance" });
    expect(await findOfflineHouses(sql, 300)).toEqual([]);
    await resumeHouse(sql, "alpha");
    expect(await findOfflineHouses(sql, 300)).toEqual([]);
  });
});

describe("responses that cannot be read", () => {
  beforeEach(() => applyHouses(sql, [houseEntry()]));

  test("are reported with the reason after a minute, until one can be read", async () => {
    await refuseResponses("expected JSON, found HTML");
    expect(await findUnreadableTables(sql)).toEqual([]);
    await sql`update notices set opened_at = opened_at - interval '61 seconds'`;
    expect(await findUnreadableTables(sql)).toEqual([
      {
        subject: "alpha/crash/global",
        text: expect.stringMatching(
          /^the responses of alpha\/crash\/global cannot be read since .* UTC: expected JSON/,
        ),
      },
    ]);
    await sql`update notices set closed_at = now()`;
    expect(await findUnreadableTables(sql)).toEqual([]);
  });

  test("of a paused house are not reported", async () => {
    await refuseResponses("expected JSON, found HTML");
    await sql`update notices set opened_at = opened_at - interval '61 seconds'`;
    await pauseHouse(sql, { house: "alpha", by: "ana", reason: "maintenance" });
    expect(await findUnreadableTables(sql)).toEqual([]);
  });
});

/** The state that normalize-rounds leaves after a response that it could not read. */
async function refuseResponses(reason: string): Promise<void> {
  await sql`
    insert into notices (table_id, kind, text, opened_at)
    select id, 'format', 'the responses cannot be read', now()
    from tables`;
  await sql`
    insert into payloads (
      table_id, kind, requested_at, received_at, path, status, bytes, sha256, body, state, read_at, refused_reason
    )
    select id, 'poll', now(), now(), '/', 200, 0, sha256('x'), '', 'refused', now(), ${reason}
    from tables`;
}
