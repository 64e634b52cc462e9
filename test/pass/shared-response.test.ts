import { isDeepStrictEqual } from "node:util";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import pollHouse from "../../jobs/poll-house.ts";
import { keepPayloads } from "../../src/housekeeping/store.ts";
import type { HouseClient } from "../../src/houses/polling/client.ts";
import { createProver } from "../../src/houses/fairness/prove.ts";
import { createHouseClient } from "../../src/houses/polling/http.ts";
import { loadHouse } from "../../src/houses/store.ts";
import { createPasses, type Passes } from "../../src/pass/passes.ts";
import type { Reader } from "../../src/db/reader.ts";
import { readRoundsForExport } from "../../src/rounds/lists/export-store.ts";
import { findPayload, listServedTables } from "../../src/rounds/lists/payload-list-store.ts";
import { verify } from "../../src/verify/verify.ts";
import { rereadRange } from "../../src/reread/reread.ts";
import { PAUSE_MS } from "../forecasts/world.ts";
import { respondWith, startBadHouse, type BadHouse } from "../support/bad-house.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { feedEntry, forgetHouses, tableEntry } from "../support/houses.ts";
import { connect } from "../../src/db/client.ts";
import { decideOnItems } from "../../src/corrections/quarantine-decisions.ts";
import { repairTable } from "../../src/verify/repair.ts";
import { followChain, makeHouse, storedRounds, type MadeTable } from "../support/make.ts";

const TABLES = 3;

const { sql, pipeline, url: databaseUrl } = await openTestDatabase({ max: 6 });
let http: HouseClient;
let house: BadHouse;
let passes: Passes;
let tables: MadeTable[];
beforeEach(async () => {
  passes = createPasses(pipeline);
  await forgetHouses(sql);
  await sql`delete from queue_controls`;
  house = await startBadHouse();
  http = createHouseClient({ version: "0.0.0" });
  tables = await makeTables();
});
afterEach(async () => {
  await http.close();
  await house.close();
});

/** Tables m0, m1 …, whose rounds one response lists. */
async function makeTables(changed: Record<string, unknown> = {}, items = (n: number) => `m${n}`): Promise<MadeTable[]> {
  return makeHouse(sql, {
    base_url: house.url,
    tables: Array.from({ length: TABLES }, (_, n) =>
      tableEntry({ market: `m${n}`, pause_ms: PAUSE_MS, feed: feedEntry({ path: "/all", items: items(n) }) }),
    ),
    ...changed,
  });
}

/** The response in which the newest round of each table is this one. */
function listOf(newest: readonly (number | null)[], more: Record<string, unknown> = {}): string {
  const lists = newest.map((last, n) => {
    const rounds = [0, 1, 2].map((back) => ({
      id: (last ?? 0) - back,
      multiplier: 1.5 + (((last ?? 0) - back) % 7) + n,
    }));
    return [`m${n}`, last === null ? "no list" : rounds];
  });
  return JSON.stringify({ ...Object.fromEntries(lists), ...more });
}

/** The first poll of a run of so many, which is aborted before the next one. `ending` is aborted while the house responds. */
async function pollFirst(using: Passes, ending?: AbortController, polls = 1_000_000): Promise<void> {
  const aborted = new AbortController();
  const env = { ALLOW_PRIVATE_HOUSES: "1" };
  const { context } = testContext(sql, {
    passes: using,
    http,
    env,
    signal: aborted.signal,
    ...(ending !== undefined && { ending: ending.signal }),
  });
  house.on("/all", (_, response) => {
    ending?.abort();
    response.end(listOf([3, 13, 23]));
  });
  const polledAt = async () => sql`select last_poll_at::text from poll_leases`;
  const before = await polledAt();
  const everyMs = 60_000;
  const pace = { everyMs, polls, offsetMs: Date.now() % (everyMs * polls), spreadMs: 0 };
  const end = pollHouse.run({ house: "alpha", shard: 0, pace }, context).catch(() => undefined);
  await eventually(async () => !isDeepStrictEqual(await polledAt(), before));
  aborted.abort();
  await end;
}

async function run(job: typeof pollHouse | typeof normalizeRounds = pollHouse, using = passes) {
  const { context } = testContext(sql, { passes: using, http, env: { ALLOW_PRIVATE_HOUSES: "1" } });
  return job === pollHouse
    ? pollHouse.run({ house: "alpha", shard: 0 }, context)
    : normalizeRounds.run({ house: "alpha" }, context);
}

async function poll(newest: readonly (number | null)[], more: Record<string, unknown> = {}, using = passes) {
  house.on("/all", respondWith(listOf(newest, more)));
  return run(pollHouse, using);
}

/** Payloads with the place of their table, newest last. */
async function payloads() {
  return sql<{ place: number; state: string; body: boolean; served: number[]; held: number | null }[]>`
    select
      t.position as place,
      p.state,
      p.body is not null as body,
      array(select o.position from tables o where o.id = any(p.served) order by 1) as served,
      (select o.position from tables o where o.id = p.body_of) as held
    from payloads p
    join tables t on t.id = p.table_id
    order by p.received_at, t.position`;
}

const idOf = (place: number) => tables[place]?.id ?? 0;

async function roundsOf(place: number): Promise<string[]> {
  const table = tables[place];
  if (table === undefined) throw new Error(`expected a table ${place}`);
  return (await storedRounds(sql, table)).map(({ id }) => id);
}

describe("tables with the same request", () => {
  it("share one request, one stored body and one transaction, and are forecast each", async () => {
    expect(await poll([3, 13, 23])).toMatchObject({ requests: 1, rounds: 9 });
    expect(await poll([4, 14, 24])).toMatchObject({ requests: 1, rounds: 3, forecasts: 30 });
    expect(house.requests).toHaveLength(2);
    expect((await payloads()).slice(TABLES)).toEqual([
      { place: 0, state: "read", body: true, served: [], held: null },
      { place: 1, state: "read", body: false, served: [], held: 0 },
      { place: 2, state: "read", body: false, served: [], held: 0 },
    ]);
    const [written] = await sql`select count(distinct xmin::text)::integer as n from rounds where seq = 4`;
    expect(written).toEqual({ n: 1 });
    for (const table of tables) expect(await followChain(sql, table)).toBe(4);
    const [sums] = await sql`
      select
        sum(requests)::integer as requests,
        sum(bytes)::integer as bytes,
        sum((statuses ->> '200')::integer)::integer as good
      from polls`;
    expect(sums).toEqual({ requests: 2, bytes: listOf([3, 13, 23]).length + listOf([4, 14, 24]).length, good: 2 });
  });

  it("store a payload each only when it lists something new for them, and the first one when it does for none", async () => {
    await poll([3, 13, 23]);
    expect(await poll([3, 14, 23])).toMatchObject({ rounds: 1, forecasts: 10 });
    expect((await payloads()).slice(TABLES)).toEqual([
      { place: 1, state: "read", body: true, served: [0, 2], held: null },
    ]);
    expect(await poll([3, 14, 23], { at: 5 })).toMatchObject({ payloads: 1, rounds: 0 });
    expect((await payloads()).at(-1)).toEqual({ place: 0, state: "read", body: true, served: [1, 2], held: null });
    expect(await poll([3, 14, 23], { at: 5 })).toMatchObject({ payloads: 0, rounds: 0 });
  });

  it("know since when a round was absent also from responses that listed nothing new for them", async () => {
    await poll([3, 13, 23]);
    await poll([4, 13, 23]);
    await poll([5, 13, 24]);
    const rows = await sql`
      select r.absent_at = before.requested_at as same
      from rounds r
      join tables t on t.id = r.table_id and t.position = 2
      cross join (select requested_at from payloads order by received_at desc offset 2 limit 1) before
      where r.seq = 4`;
    expect(rows).toEqual([{ same: true }]);
  });

  it("know since when a round was absent from responses that another worker received, too", async () => {
    const other = createPasses(pipeline);
    await poll([3, 3, 3]);
    await poll([4, 3, 3], {}, other);
    await poll([5, 3, 3]);
    await poll([6, 3, 3]);
    const [absent] = await sql`select max(requested_at)::text as at from payloads`;
    await poll([6, 3, 4], {}, other);
    const [round] = await sql`
      select r.absent_at::text as at
      from rounds r
      join tables t on t.id = r.table_id and t.market = 'm2'
      where r.round_id = '4'`;
    expect(round?.["at"]).toBe(absent?.["at"]);
  });

  it("store nothing again that another worker read", async () => {
    const other = createPasses(pipeline);
    await poll([3, 13, 23]);
    await poll([4, 13, 23], {}, other);
    expect((await payloads()).slice(TABLES)).toEqual([
      { place: 0, state: "read", body: true, served: [1, 2], held: null },
    ]);
    await poll([4, 13, 24]);
    expect((await payloads()).slice(TABLES + 1)).toEqual([
      { place: 2, state: "read", body: true, served: [0, 1], held: null },
    ]);
    const heads = await sql`select version from table_heads h join tables t on t.id = h.table_id order by t.position`;
    const versions = heads.map((head) => head["version"] as bigint);
    expect(await poll([4, 13, 24], {}, other)).toMatchObject({ payloads: 0 });
    expect(await sql`select version from table_heads h join tables t on t.id = h.table_id order by t.position`).toEqual(
      versions.map((version) => ({ version })),
    );
  });

  it("are loaded again by another worker only when a response has something new for them", async () => {
    const other = createPasses(pipeline);
    await poll([3, 13, 23]);
    await poll([3, 13, 23], {}, other);
    house.on("/all", respondWith(listOf([4, 14, 24]), { etag: '"a"' }));
    await run();
    const heads = async () =>
      sql<{ version: bigint; at: Date }[]>`
        select h.version, h.responded_at as at from table_heads h join tables t on t.id = h.table_id order by t.position`;
    const isLoaded = async () =>
      (await heads()).map(({ version }, place) => other.states.get(idOf(place))?.version === version);
    const before = await heads();
    await run(pollHouse, other);
    house.on("/all", (_, response) => response.writeHead(304).end());
    await run(pollHouse, other);
    expect(await isLoaded()).toEqual([false, false, false]);
    for (const [place, { at }] of (await heads()).entries()) expect(at > (before[place]?.at ?? at)).toBe(true);
    expect(await poll([4, 14, 25], {}, other)).toMatchObject({ rounds: 1, forecasts: 1 });
    expect(await isLoaded()).toEqual([false, false, true]);
  });

  it("are loaded by a worker that polls alone, which stores at most every ten seconds and at the end of a run that nothing is new", async () => {
    await poll([3, 13, 23]);
    await sql`delete from published_readings`;
    const alone = createPasses(pipeline);
    await poll([3, 13, 23], {}, alone);
    expect(await sql`select from published_readings`).toHaveLength(TABLES); // which were due
    const times = async () => sql`select responded_at::text from table_heads order by table_id`;
    const before = await times();
    await pollFirst(alone);
    await pollFirst(alone);
    expect(await times()).toEqual(before);
    await pollFirst(alone, undefined, 1);
    const atEnd = await times();
    expect(atEnd).not.toEqual(before);
    await pollFirst(alone, new AbortController()); // another process makes the next poll
    expect(await times()).not.toEqual(atEnd);
  });

  it("with an empty list store nothing again that another worker read", async () => {
    const other = createPasses(pipeline);
    const lists = JSON.parse(listOf([3, 13, 23])) as Record<string, unknown>;
    for (let at = 0; at < 6; at += 1) {
      house.on("/all", respondWith(JSON.stringify({ ...lists, m2: [], at })));
      await run(pollHouse, at % 2 === 0 ? passes : other);
    }
    expect((await payloads()).filter(({ place }) => place === 2)).toHaveLength(1);
  });

  it("take a released item once the house lists it once more, whatever else it lists", async () => {
    await poll([3, 13, 23]);
    await poll([900_000, 13, 23]);
    const items = await sql<{ id: bigint }[]>`select id from quarantine where code = 'far_ahead'`;
    const ids = items.map(({ id }) => id);
    await sql.begin((tx) => decideOnItems(tx, ids, { by: "ann", reason: "right", state: "released" }));
    await poll([900_000, 14, 23]);
    expect((await roundsOf(0)).at(-1)).toBe("900000");
  });

  it("are asked without a condition after one of them was enabled again", async () => {
    const file = (enabled: boolean) =>
      makeTables({
        tables: [0, 1, 2].map((n) =>
          tableEntry({ market: `m${n}`, feed: feedEntry({ path: "/all", items: `m${n}` }), enabled: n < 2 || enabled }),
        ),
      });
    await file(true);
    house.on("/all", respondWith(listOf([3, 13, 23]), { etag: '"a"' }));
    await run();
    await file(false);
    house.on("/all", respondWith(listOf([4, 14, 24]), { etag: '"b"' }));
    await run();
    await file(true);
    await run();
    expect(house.requests.at(-1)?.headers["if-none-match"]).toBeUndefined();
    expect(await sql`select absent_at from rounds where round_id = '24'`).toEqual([{ absent_at: null }]);
  });
});

describe("a damaged table among those with the same request", () => {
  beforeEach(async () => {
    await poll([3, 13, 23]);
    const broken = connect(databaseUrl, { name: "damage", max: 1 });
    try {
      await broken`set session_replication_role = replica`;
      await broken`update table_heads set last_ordinal = last_ordinal - 2 where table_id = ${idOf(0)}`;
    } finally {
      await broken.end();
    }
    passes = createPasses(pipeline);
  });

  it("keeps its own copy of a response, and the others store which of them it served", async () => {
    await poll([4, 14, 24]);
    await poll([5, 14, 24]);
    expect((await payloads()).slice(-2)).toContainEqual({
      place: 1,
      state: "read",
      body: true,
      served: [2],
      held: null,
    });
  });

  it("counts the bytes of its copy towards the daily limit", async () => {
    await sql`update poll_leases set bytes_today = 0`;
    await poll([4, 14, 24]);
    const lengths = 2n * BigInt(listOf([4, 14, 24]).length);
    expect(await sql`select bytes_today from poll_leases`).toEqual([{ bytes_today: lengths }]);
  });

  it("is polled again by each worker after its repair, whichever polls it first", async () => {
    const other = createPasses(pipeline);
    await poll([4, 13, 23]);
    expect(passes.damaged.has(idOf(0))).toBe(true);
    expect(await sql.begin((tx) => repairTable(tx, idOf(0)))).toMatchObject({ ok: true });
    await run(normalizeRounds, other);
    await poll([5, 13, 23], {}, other);
    await poll([6, 13, 23]);
    await poll([7, 13, 23]);
    expect(passes.damaged.has(idOf(0))).toBe(false);
    expect(await roundsOf(0)).toEqual(["1", "2", "3", "4", "5", "6", "7"]);
  });
});

describe("tables with the same request", () => {
  it("are asked with one condition, and a 304 counts for all", async () => {
    house.on("/all", respondWith(listOf([3, 13, 23]), { etag: '"a"' }));
    await run();
    house.on("/all", (_, response) => response.writeHead(304).end());
    expect(await run()).toMatchObject({ requests: 1, payloads: 0 });
    expect(house.requests[1]?.headers["if-none-match"]).toBe('"a"');
    house.on("/all", respondWith(listOf([3, 13, 24]), { etag: '"b"' }));
    expect(await run()).toMatchObject({ rounds: 1, forecasts: 10 });
    house.on("/all", (_, response) => response.writeHead(304).end());
    await run();
    expect(house.requests.at(-1)?.headers["if-none-match"]).toBe('"b"');
  });

  it("take one request of the house's budget", async () => {
    tables = await makeTables({ requests_per_minute: 1 });
    expect(await poll([3, 13, 23])).toMatchObject({ requests: 1, rounds: 9 });
    expect(await poll([4, 14, 24])).toMatchObject({ requests: 0 });
  });

  it("let tables with other requests follow when the house's budget is one request", async () => {
    const own = tableEntry({ market: "own", feed: feedEntry({ path: "/own", items: "m0" }) });
    const entries = ["m0", "m1"].map((market) =>
      tableEntry({ market, feed: feedEntry({ path: "/all", items: market }) }),
    );
    await makeHouse(sql, { base_url: house.url, requests_per_minute: 1, tables: [...entries, own] });
    house.on("/own", respondWith(listOf([3])));
    for (let newest = 3; newest < 7; newest += 1) {
      await poll([newest, 13]);
      await sql`delete from request_budgets`;
    }
    expect(house.requests.map(({ path }) => path)).toEqual(["/all", "/own", "/all", "/own"]);
  });

  it("are read by another worker that holds no state of them", async () => {
    await poll([3, 13, 23]);
    const other = createPasses(pipeline);
    await poll([4, 13, 23], {}, other);
    expect(await poll([5, 14, 23])).toMatchObject({ rounds: 2 });
    expect(await poll([6, 15, 24], {}, other)).toMatchObject({ rounds: 3 });
    expect(await roundsOf(2)).toEqual(["21", "22", "23", "24"]);
  });
});

describe("a shared response", () => {
  it("that one table cannot read is refused for it alone, each time", async () => {
    await poll([3, 13, 23]);
    expect(await poll([4, null, 24])).toMatchObject({ rounds: 2, forecasts: 20 });
    expect(await poll([5, null, 24])).toMatchObject({ rounds: 1 });
    const refused = await sql`select t.position, p.refused_reason from payloads p join tables t on t.id = p.table_id
      where p.state = 'refused' order by p.received_at`;
    expect(refused).toEqual([
      { position: 1, refused_reason: expect.stringContaining("m1") },
      { position: 1, refused_reason: expect.stringContaining("m1") },
    ]);
    expect(await poll([6, 14, 25])).toMatchObject({ rounds: 3 });
  });

  it("that one table cannot process is stored unread for it, and read later", async () => {
    await poll([3, 13, 23]);
    const [first] = tables;
    await sql`alter table rounds add constraint our_fault check (table_id <> ${sql.unsafe(String(first?.id))} or seq <> 4)`;
    try {
      expect(await poll([4, 14, 24])).toMatchObject({ rounds: 2, forecasts: 20 });
    } finally {
      await sql`alter table rounds drop constraint our_fault`;
    }
    expect(await run(normalizeRounds)).toMatchObject({ payloads: 1, refused: 0, rounds: 1 });
    for (const table of tables) expect(await followChain(sql, table)).toBe(4);
  });

  it("is stored unread for all after a lease that expired, with one body, and read from there", async () => {
    await poll([3, 13, 23]);
    await sql`update poll_leases set lease_until = clock_timestamp() - interval '1 second'`;
    expect(await poll([4, 14, 24])).toMatchObject({ payloads: 3, rounds: 0 });
    expect((await payloads()).slice(TABLES)).toMatchObject([
      { state: "unread", body: true },
      { state: "unread", held: 0 },
      { state: "unread", held: 0 },
    ]);
    expect(await run(normalizeRounds)).toMatchObject({ payloads: 3, rounds: 3 });
  });

  it("that is large is read for each table in a thread, and stored once", async () => {
    const more = { more: "x".repeat(40_000) };
    // a response that a slow machine does not read within a second would stay unread
    const { setTimeout: start } = globalThis;
    const stretched = (work: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) =>
      start(work, ms === 1_000 ? 60_000 : ms, ...given);
    const timers = vi.spyOn(globalThis, "setTimeout").mockImplementation(stretched as typeof setTimeout);
    onTestFinished(() => timers.mockRestore());
    await poll([3, 13, 23], more);
    expect(await poll([3, 14, 23], more)).toMatchObject({ payloads: 3, rounds: 1, forecasts: 10 });
    expect((await payloads()).slice(TABLES)).toMatchObject([{ body: true }, { held: 0 }, { held: 0 }]);
  });

  it("is read for each table, also if the state of one is dropped meanwhile, as by a failed write of stored payloads", async () => {
    await poll([3, 13, 23]);
    let isOver = false;
    const drop = () => {
      passes.states.drop([idOf(1)]);
      if (!isOver) setImmediate(drop);
    };
    drop();
    // a body that another thread compresses: the first table waits for it
    const polled = await poll([4, 14, 24], { more: "x".repeat(20_000) }).finally(() => (isOver = true));
    expect(polled).toMatchObject({ rounds: 3, forecasts: 30 });
    for (const table of tables) expect(await followChain(sql, table)).toBe(4);
  });

  it("that is large is stored with its own hash", async () => {
    await poll([3, 13, 23], { more: "x".repeat(300_000) });
    const [row] = await sql<{ body: Buffer; sha256: string }[]>`
      select body, encode(sha256, 'hex') as sha256
      from payloads
      where body is not null`;
    if (row === undefined) throw new Error("expected a stored payload");
    const bytes = gunzipSync(row.body);
    expect(bytes.length).toBeGreaterThan(300_000);
    expect(row.sha256).toBe(createHash("sha256").update(bytes).digest("hex"));
  });

  it("can be read again for every table when an adapter was wrong about what it lists", async () => {
    tables = await makeTables({}, (n) => (n === 2 ? "m2[?id < `24`]" : `m${n}`));
    await poll([3, 13, 23]);
    await poll([4, 13, 24]);
    expect(await roundsOf(2)).toEqual(["21", "22", "23"]);
    tables = await makeTables();
    const settings = await loadHouse(sql, () => undefined, "alpha");
    if (settings === null) throw new Error("expected the house");
    const range = { house: "alpha", tableId: null, from: "-infinity", to: "infinity", state: null };
    const work = { by: "ann", most: 100, signal: new AbortController().signal };
    const preview = await rereadRange(sql, settings, createProver(), range, { ...work, dryRun: true });
    expect(await rereadRange(sql, settings, createProver(), range, { ...work, dryRun: false })).toEqual(preview);
    expect(preview).toMatchObject({ payloads: 6, rounds: 1 });
    expect(await roundsOf(2)).toEqual(["21", "22", "23", "24"]);
    expect((await payloads()).at(-1)).toEqual({ place: 2, state: "read", body: false, served: [], held: 0 });
  });

  it("is shown and kept beyond its day with its body for a table that does not hold it", async () => {
    await poll([3, null, 23]);
    const [row] = await sql<{ id: number; at: string; name: string; day: string }[]>`
      select
        table_id as id, utc_text(received_at) as at, tableoid::regclass::text as name,
        (received_at at time zone 'UTC')::date::text as day
      from payloads
      where state = 'refused'`;
    if (row === undefined) throw new Error("expected a refused payload");
    const shown = await findPayload(sql, { tableId: row.id, receivedAt: row.at });
    expect(gunzipSync(shown?.body ?? "").toString()).toBe(listOf([3, null, 23]));
    const part = { name: row.name, parent: "payloads", day: row.day };
    expect(await keepPayloads(sql, part, new AbortController().signal)).toBe(1);
    const [kept] = await sql<{ body: Buffer }[]>`select body from payloads_kept`;
    expect(gunzipSync(kept?.body ?? "").toString()).toBe(listOf([3, null, 23]));
  });

  it("verifies for each table, whose exported rounds name the payload that listed them", async () => {
    await poll([3, 13, 23]);
    await poll([4, 14, 23]);
    expect(await verify(sql, { payloads: true })).toMatchObject({ ok: true, checked: { rounds: 11, payloads: 2 } });
    for (const [place, table] of tables.entries()) {
      expect(await verify(sql, { tableId: table.id, payloads: true })).toMatchObject({
        ok: true,
        checked: { payloads: 2 },
      });
      const exported = (await Array.fromAsync(readRoundsForExport(sql as unknown as Reader, table.id))).flat();
      expect(exported).toHaveLength(place === 2 ? 3 : 4);
      for (const { received_at: receivedAt, round_id: id } of exported) {
        const payload = await findPayload(sql, { tableId: table.id, receivedAt });
        const lists = JSON.parse(gunzipSync(payload?.body ?? "").toString()) as Record<string, { id: number }[]>;
        expect(lists[`m${place}`]?.map((round) => String(round.id))).toContain(id);
      }
    }
  });

  it("is reported for every table that it served when its stored body is changed, or gone", async () => {
    await poll([3, 13, 23]);
    await poll([4, 14, 23]); // nothing new for m2
    const names = tables.map(({ name }) => name);
    const [row] = await sql<{ at: string; sha256: string }[]>`
      select utc_text(received_at) as at, encode(sha256, 'hex') as sha256
      from payloads
      where body is not null
      order by received_at desc
      limit 1`;
    const reports = async () => [
      (await verify(sql, { payloads: true })).first_failure,
      ...(await Promise.all(
        tables.map(async ({ id }) => (await verify(sql, { tableId: id, payloads: true })).first_failure),
      )),
    ];
    await sql`
      update payloads
      set body = ${gzipSync(listOf([4, 14, 24]))}
      where received_at = ${row?.at ?? ""}::text::timestamptz
        and body is not null`;
    for (const failure of await reports()) {
      expect(failure).toMatchObject({ kind: "payload", expected: `sha256 ${row?.sha256}` });
      expect(failure?.id).toMatch(new RegExp(`^alpha/crash/m[01] ${row?.at}$`));
      const [found, served = ""] = failure?.found.split("; the response served ") ?? [];
      expect(found).toMatch(/^sha256 [0-9a-f]{64}$/);
      expect(served.split(", ").toSorted()).toEqual(names);
    }
    expect((await verify(sql)).ok).toBe(true); // bodies are read on request alone
    await sql`update payloads set body = 'x' where received_at = ${row?.at ?? ""}::text::timestamptz and body is not null`;
    for (const failure of await reports()) expect(failure?.found).toContain("a body that cannot be decompressed");
    await sql`delete from payloads where received_at = ${row?.at ?? ""}::text::timestamptz and body is not null`;
    const [all, , own] = await reports();
    for (const failure of [all, own])
      expect(failure).toMatchObject({ kind: "payload", id: `alpha/crash/m1 ${row?.at}` });
    expect(all?.found).toContain("no body");
  });

  it("shows on each payload page which tables it served, with or without something new", async () => {
    await poll([3, 13, 23]);
    await poll([4, 14, 23]);
    const [row] = await sql<{ at: string }[]>`select utc_text(max(received_at)) as at from payloads`;
    const names = tables.map(({ name }) => name);
    for (const [place, { id }] of tables.entries()) {
      const { tables: others, total } = await listServedTables(sql, { tableId: id, receivedAt: row?.at ?? "" }, 10);
      expect(total).toBe(2);
      expect(others.map(({ table }) => table)).toEqual(names.filter((_, at) => at !== place));
      expect(others.map(({ hasPayload, newRounds }) => [hasPayload, newRounds])).toEqual(
        [0, 1, 2].filter((at) => at !== place).map((at) => (at === 2 ? [false, null] : [true, 1])),
      );
    }
    const limited = await listServedTables(sql, { tableId: tables[0]?.id ?? 0, receivedAt: row?.at ?? "" }, 1);
    expect([limited.tables.length, limited.total]).toEqual([1, 2]);
  });
});
