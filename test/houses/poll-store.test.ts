import { hash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import type { HouseAnswer } from "../../src/houses/client.ts";
import { noteRefusedAnswer } from "../../src/houses/feed-store.ts";
import { BEHIND, takeLease, type Lease } from "../../src/houses/lease-store.ts";
import { releaseLease } from "../../src/houses/end-lease-store.ts";
import { saveAnswers } from "../../src/houses/poll-store.ts";
import type { AskedTable } from "../../src/houses/poll-summary.ts";
import { applyHouses } from "../../src/houses/apply-store.ts";
import { pauseHouse } from "../../src/houses/pause-store.ts";
import { createDatabase } from "../support/database.ts";
import { feedEntry, forgetHouses, houseEntry, tableEntry } from "../support/houses.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
beforeAll(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "test" });
});
beforeEach(async () => {
  await forgetHouses(sql);
  await applyHouses(sql, [houseEntry({ tables: [tableEntry(), tableEntry({ market: "euro" })] })]);
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

const MIDDLE = 0.5;
const take = () => takeLease(sql, { house: "alpha", shard: 0, timeoutMs: 5_000 });
async function mustTake(): Promise<Lease> {
  const lease = await take();
  if (lease === null || lease === BEHIND) throw new Error("the lease is not to be had");
  return lease;
}

function says(text: string, etag: string | null = null): HouseAnswer {
  const body = Buffer.from(text);
  return {
    kind: "answer",
    status: 200,
    contentType: "application/json",
    etag,
    lastModified: null,
    body,
    elapsedMs: 30,
  };
}
const unchanged: HouseAnswer = { kind: "unchanged", status: 304, elapsedMs: 5 };
function fails(status: number | null, retryAfterMs: number | null = null): HouseAnswer {
  const reason = status === null ? "timeout" : "status";
  return { kind: "failed", status, reason, detail: `answered ${status ?? "nothing"}`, retryAfterMs, elapsedMs: 40 };
}

/** One poll of the first table of the house, from lease to commit. */
async function poll(answer: HouseAnswer, lease?: Lease) {
  const held = lease ?? (await mustTake());
  const asked: AskedTable = {
    tableId: 1,
    name: "crash/global",
    path: "/rounds",
    requestedMs: 1.25,
    receivedMs: 31.5,
    answer,
  };
  return { lease: held, saved: await saveAnswers(sql, held, [asked], MIDDLE) };
}

const refuse = (id: number, text: string) =>
  sql.begin(async (transaction) => {
    await transaction`
      update payloads
      set state = 'refused', refused_reason = 'test', read_at = clock_timestamp()
      where id = ${id}`;
    await noteRefusedAnswer(transaction, { tableId: 1, payloadId: BigInt(id), sha256: hash("sha256", text) });
  });
const previous = async () =>
  (await sql`select previous_requested_at is null as unknown from payloads order by id`).map(
    ({ unknown }) => unknown as unknown,
  );

const payloads = () => sql`select * from payloads order by id`;
const feed = async () => (await sql`select * from feeds where table_id = 1`)[0];
const leaseRow = async () => (await sql`select * from poll_leases`)[0];

describe("a lease", () => {
  test("is had by one of many who ask at once", async () => {
    const leases = await Promise.all(Array.from({ length: 8 }, take));
    expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
  });

  test("is had again after a poll was saved, after it was given back, and after it expired", async () => {
    await poll(says("1"));
    const second = await mustTake();
    await releaseLease(sql, second);
    await mustTake();
    expect(await take()).toBeNull();
    await sql`update poll_leases set lease_until = clock_timestamp() - interval '1 ms'`;
    expect((await mustTake()).epoch).toBe(second.epoch + 2n);
  });

  test("outlives the timeout of a poll by two seconds", async () => {
    const { now } = await mustTake();
    const [row] = await sql`
      select extract(epoch from lease_until - ${now}::timestamptz)::float8 as seconds
      from poll_leases`;
    expect(row?.["seconds"]).toBeCloseTo(7, 1);
  });

  test("is not given back by one who lost it", async () => {
    const lost = await mustTake();
    await sql`update poll_leases set lease_until = '-infinity'`;
    await mustTake();
    await releaseLease(sql, lost);
    expect(await take()).toBeNull();
  });

  test.each([
    ["paused", () => pauseHouse(sql, { house: "alpha", by: "ana", reason: "test" })],
    ["disabled", () => sql`update houses set enabled = false`],
    ["to be left alone", () => sql`update poll_leases set next_allowed_at = now() + interval '1 minute'`],
  ])("of a house that is %s is not to be had", async (_, change) => {
    await change();
    expect(await take()).toBeNull();
  });

  test("tells for each enabled table how to ask, the longest waiting first", async () => {
    await poll(says("1", '"e1"'));
    await sql`update tables set enabled = false where market = 'none'`;
    const { tables } = await mustTake();
    expect(tables).toEqual([
      {
        tableId: 2,
        game: "crash",
        market: "euro",
        etag: null,
        lastModified: null,
        lastSha256: null,
        lastPath: null,
        refused: false,
        badAnswers: 0,
        formatChanged: false,
        fullIsDue: true,
        newest: null,
        silentMs: null,
        hasUnread: false,
      },
      {
        tableId: 1,
        game: "crash",
        market: "global",
        etag: '"e1"',
        lastModified: null,
        lastSha256: hash("sha256", "1"),
        lastPath: "/rounds",
        refused: false,
        badAnswers: 0,
        formatChanged: false,
        fullIsDue: false,
        newest: null,
        silentMs: null,
        hasUnread: false,
      },
    ]);
  });

  test("asks for a full answer once the last is ten minutes old, which a 304 does not put off", async () => {
    await poll(says("1", '"e1"'));
    await sql`update feeds set last_full_at = last_full_at - interval '10 minutes' where table_id = 1`;
    await poll(unchanged);
    expect((await mustTake()).tables.find(({ tableId }) => tableId === 1)?.fullIsDue).toBe(true);
  });
});

describe("an answer", () => {
  test("is kept verbatim, with its hash and its times by the clock of the database", async () => {
    const { lease, saved } = await poll(says('{"rounds": [ ]}'));
    expect(saved).toMatchObject({ requests: 1, payloads: 1, unchanged: 0, failed: 0 });
    const [row] = await sql<{ body: Buffer }[]>`
      select
        *,
        extract(epoch from requested_at - ${lease.now}::text::timestamptz)::float8 * 1000 as requested_ms,
        extract(epoch from received_at - ${lease.now}::text::timestamptz)::float8 * 1000 as received_ms
      from payloads`;
    expect(row).toMatchObject({
      table_id: 1,
      kind: "poll",
      state: "unread",
      path: "/rounds",
      status: 200,
      bytes: 15,
      sha256: hash("sha256", '{"rounds": [ ]}'),
      requested_ms: 1.25,
      received_ms: 31.5,
      previous_requested_at: null,
    });
    expect(gunzipSync(row?.body ?? "").toString()).toBe('{"rounds": [ ]}');
  });

  test("that equals the last one is not kept again, and one that came back later is", async () => {
    await poll(says("1"));
    expect((await poll(says("1"))).saved).toMatchObject({ payloads: 0, unchanged: 1 });
    await poll(says("2"));
    await poll(says("1"));
    expect((await payloads()).map(({ sha256 }) => sha256 as unknown)).toEqual(
      ["1", "2", "1"].map((text) => hash("sha256", text)),
    );
  });

  test("carries the request time of the newest good answer before it: a 304 and a repeat are good, a failure is not", async () => {
    await poll(says("1"));
    await poll(says("2"));
    await poll(says("2"));
    const repeated = await feed();
    await poll(fails(500));
    expect(await feed()).toMatchObject({ last_answer_at: repeated?.["last_answer_at"] });
    await poll(says("3"));
    await poll(unchanged);
    const [exact] = await sql`select last_answer_at::text as at from feeds where table_id = 1`;
    await poll(says("4"));
    const rows = await sql`
      select
        requested_at,
        previous_requested_at,
        previous_requested_at = lag(requested_at) over (order by id) as "follows",
        previous_requested_at::text as at
      from payloads
      order by id`;
    expect(rows.map(({ follows }) => follows as unknown)).toEqual([null, true, false, false]);
    expect(rows[2]?.["previous_requested_at"]).toEqual(repeated?.["last_answer_at"]);
    expect(rows[3]?.["at"]).toBe(exact?.["at"]);
  });

  test("sets the ETag only together with its body, and a failure keeps it", async () => {
    await poll(says("1", '"e1"'));
    await poll(unchanged);
    await poll(fails(500));
    expect(await feed()).toMatchObject({ etag: '"e1"' });
    await poll(says("1", '"e2"'));
    expect(await feed()).toMatchObject({ etag: '"e2"' });
    await poll(says("2"));
    expect(await feed()).toMatchObject({ etag: null });
  });

  test("of a feed that became another one meanwhile is dropped", async () => {
    await poll(says("1"));
    const lease = await mustTake();
    const other = feedEntry({ path: "/other" });
    await applyHouses(sql, [houseEntry({ tables: [tableEntry({ feed: other }), tableEntry({ market: "euro" })] })]);
    expect((await poll(says("2"), lease)).saved).toMatchObject({ payloads: 0 });
    expect(await feed()).toMatchObject({ last_sha256: null, last_answer_at: null });
  });
});

describe("a poll whose lease went to another worker", () => {
  test("saves nothing at all", async () => {
    const lost = await mustTake();
    await sql`update poll_leases set lease_until = '-infinity'`;
    const taken = await mustTake();
    const before = { feed: await feed(), lease: await leaseRow() };
    expect((await poll(says("lost"), lost)).saved).toBeNull();
    expect({ feed: await feed(), lease: await leaseRow() }).toEqual(before);
    expect(await payloads()).toEqual([]);
    expect(await sql`select * from polls`).toEqual([]);
    expect((await poll(says("kept"), taken)).saved).toMatchObject({ payloads: 1 });
  });
});

describe("polls of several houses that end at once", () => {
  const houses = ["alpha", "beta", "gamma", "delta"];
  beforeEach(() =>
    applyHouses(
      sql,
      houses.map((id) => houseEntry({ id })),
    ),
  );
  const takeAll = async () => {
    const leases = await Promise.all(houses.map((house) => takeLease(sql, { house, shard: 0, timeoutMs: 5_000 })));
    return leases.filter((lease) => lease !== null && lease !== BEHIND);
  };
  const saveAll = (leases: readonly Lease[], answerOf: (house: string) => HouseAnswer) =>
    Promise.allSettled(
      leases.map((lease) => {
        const [table] = lease.tables;
        if (table === undefined) throw new Error(`${lease.house} has no table`);
        const asked = { name: "crash/global", path: "/rounds", requestedMs: 1, receivedMs: 2 };
        return saveAnswers(sql, lease, [{ ...asked, tableId: table.tableId, answer: answerOf(lease.house) }], MIDDLE);
      }),
    );
  const stored = async () =>
    (
      await sql<{ said: string }[]>`
        select t.house_id || ' ' || p.bytes as said
        from payloads p
        join tables t on t.id = p.table_id
        order by said`
    ).map(({ said }) => said);
  const bodies: Record<string, string> = { alpha: "1", beta: "22", gamma: "333", delta: "4444" };
  const bodyOf = (house: string) => says(bodies[house] ?? "", `"${house}"`);

  test("are each saved as their own, failures too", async () => {
    const leases = await takeAll();
    expect(leases.map(({ house, tables }) => [house, tables.length])).toEqual(houses.map((house) => [house, 1]));
    const saved = await saveAll(leases, (house) => (house === "beta" ? fails(503) : bodyOf(house)));
    expect(saved.map((one) => one.status === "fulfilled" && one.value?.payloadIds.length)).toEqual([1, 0, 1, 1]);
    expect(await stored()).toEqual(["alpha 1", "delta 4", "gamma 3"]);
    const known = await sql`
      select l.house_id as house, l.last_status as status, l.failures_in_row as failures, f.etag, p.requests
      from poll_leases l
      join tables t on t.house_id = l.house_id and t.enabled
      join feeds f on f.table_id = t.id
      join polls p on p.house_id = l.house_id
      order by l.house_id`;
    expect([...known]).toEqual([
      { house: "alpha", status: 200, failures: 0, etag: '"alpha"', requests: 1 },
      { house: "beta", status: 503, failures: 1, etag: null, requests: 1 },
      { house: "delta", status: 200, failures: 0, etag: '"delta"', requests: 1 },
      { house: "gamma", status: 200, failures: 0, etag: '"gamma"', requests: 1 },
    ]);
    expect(await takeAll()).toHaveLength(4);
  });

  test("are saved without the one whose lease was lost", async () => {
    const leases = await takeAll();
    await sql`update poll_leases set lease_epoch = lease_epoch + 1 where house_id = 'gamma'`;
    const saved = await saveAll(leases, bodyOf);
    expect(saved.map((one) => one.status === "fulfilled" && one.value === null)).toEqual([false, false, true, false]);
    expect(await stored()).toEqual(["alpha 1", "beta 2", "delta 4"]);
  });

  test("are saved without the one that the database refuses", async () => {
    const leases = await takeAll();
    const refused = leases.map((lease) => (lease.house === "beta" ? { ...lease, now: "no time" } : lease));
    const saved = await saveAll(refused, bodyOf);
    expect(saved.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(await stored()).toEqual(["alpha 1", "delta 4", "gamma 3"]);
  });

  test("wait for no house whose lease another worker has in hand", async () => {
    const leases = await sql.begin(async (other) => {
      await other`select from poll_leases where house_id = 'beta' for update`;
      return takeAll();
    });
    expect(leases.map(({ house }) => house)).toEqual(["alpha", "gamma", "delta"]);
  });
});

describe("a house whose answers are not read as fast as they come", () => {
  /** As if its newest answer had come in and its last turn had been so many seconds ago. */
  async function ago({ answered, asked }: { answered: number; asked: number }): Promise<void> {
    await sql`
      update payloads
      set
        received_at = clock_timestamp() - (${answered} + case state when 'read' then 9 else 0 end) * interval '1 second',
        requested_at = clock_timestamp() - (${answered} + 10) * interval '1 second'`;
    await sql`update poll_leases set last_poll_at = clock_timestamp() - ${asked} * interval '1 second'`;
  }
  /** All its answers were read, with so many rounds each. */
  const hasListed = (items: number) =>
    sql`update payloads set state = 'read', read_at = clock_timestamp(), items = ${items}`;
  beforeEach(async () => {
    await applyHouses(sql, [houseEntry({ tables: [tableEntry()] })]);
    await poll(says("[1]"));
    await hasListed(20);
    await poll(says("[1,2]"));
  });

  test("has no turn until they are read", async () => {
    await ago({ answered: 5, asked: 5 });
    expect(await take()).toBe(BEHIND);
    const [row] = await sql<{ epoch: bigint }[]>`select lease_epoch as epoch from poll_leases where house_id = 'alpha'`;
    expect(row?.epoch).toBe(2n);
    await hasListed(20);
    expect(await take()).toMatchObject({ house: "alpha", epoch: 3n });
  });

  test("has its turn where they came within two turns, as they always do", async () => {
    await sql`update houses set poll_every_ms = 5000`;
    await ago({ answered: 3, asked: 1 });
    expect(await take()).toMatchObject({ house: "alpha" });
  });

  test.each([
    { every: 5, leftOut: 20, given: 23, turns: "every fifth turn" },
    { every: 7, leftOut: 14, given: 19, turns: "every third" },
    { every: 10, leftOut: 10, given: 18, turns: "every other" },
  ])(
    "with a turn each $every s has $turns all the same, also one that begins early",
    async ({ every, leftOut, given }) => {
      await sql`update houses set poll_every_ms = ${every * 1000}`;
      await ago({ answered: 60, asked: leftOut });
      expect(await take()).toBe(BEHIND);
      await ago({ answered: 60, asked: given });
      expect(await take()).toMatchObject({ house: "alpha" });
    },
  );

  test.each([25, 30, 3_600])("whose turns are %i s apart has every one", async (every) => {
    await sql`update houses set poll_every_ms = ${every * 1000}`;
    await ago({ answered: 2 * every + 10 > 3_600 ? 3_000 : 2 * every + 10, asked: every });
    expect(await take()).toMatchObject({ house: "alpha" });
  });

  test("has every turn again once its oldest answer has waited for an hour: more than being slow keeps it", async () => {
    await ago({ answered: 3_700, asked: 5 });
    expect(await take()).toMatchObject({ house: "alpha" });
  });

  test("has every turn while an operator keeps answers from being read", async () => {
    await ago({ answered: 5, asked: 5 });
    await sql`insert into queue_controls (queue, paused_by, reason) values ('normalize-rounds', 'ann', 'a parser is mended')`;
    const lease = await take();
    await sql`delete from queue_controls`;
    expect(lease).toMatchObject({ house: "alpha" });
  });

  test("is probed when its circuit is to be", async () => {
    await ago({ answered: 5, asked: 5 });
    await sql`update poll_leases set circuit = 'open', opened_at = clock_timestamp()`;
    expect(await take()).toMatchObject({ circuit: { state: "half_open" } });
  });

  test("has every turn where it lists so few rounds that some would be gone", async () => {
    await hasListed(9);
    await poll(says("[1,2,3]"));
    await ago({ answered: 5, asked: 5 });
    expect(await take()).toMatchObject({ house: "alpha" });
  });

  test("has every turn until an answer of the table that waits was read", async () => {
    await sql`delete from payloads where state = 'read'`;
    await ago({ answered: 5, asked: 5 });
    expect(await take()).toMatchObject({ house: "alpha" });
  });

  test("has every turn for a table that lists few rounds, whichever table's answers wait", async () => {
    await applyHouses(sql, [houseEntry({ tables: [tableEntry(), tableEntry({ market: "euro" })] })]);
    await sql`
      insert into payloads (table_id, kind, requested_at, received_at, path, status, bytes, sha256, body, state, read_at, items)
      select id, 'poll', now() - interval '9 s', now() - interval '8 s', '/', 200, 1, '', '', 'read', now(), 5
      from tables
      where house_id = 'alpha'
        and market = 'euro'`;
    await ago({ answered: 5, asked: 5 });
    expect(await take()).toMatchObject({ house: "alpha" });
  });

  test("has none for a table whose answers wait, whatever another never answered", async () => {
    await applyHouses(sql, [houseEntry({ tables: [tableEntry(), tableEntry({ market: "euro" })] })]);
    await ago({ answered: 5, asked: 5 });
    expect(await take()).toBe(BEHIND);
  });

  test("holds no other back", async () => {
    await applyHouses(sql, [houseEntry({ tables: [tableEntry()] }), houseEntry({ id: "beta" })]);
    await ago({ answered: 5, asked: 5 });
    const both = ["alpha", "beta"].map((house) => takeLease(sql, { house, shard: 0, timeoutMs: 5_000 }));
    expect(await Promise.all(both)).toEqual([BEHIND, expect.objectContaining({ house: "beta" })]);
  });
});

describe("what is known of a house after a poll", () => {
  test("sums up by minute: requests, statuses, bytes and a latency histogram", async () => {
    await poll(says("12345"));
    await poll(unchanged);
    await poll(fails(null));
    await poll(fails(503));
    const [sums] = await sql`
      select
        sum(requests)::integer as requests,
        sum(bytes)::integer as bytes,
        sum(latency_ms[1])::integer as within_10,
        sum(latency_ms[3])::integer as within_50
      from polls`;
    expect(sums).toEqual({ requests: 4, bytes: 5, within_10: 1, within_50: 2 });
    const statuses = await sql`
      select key, sum(value::integer)::integer as requests
      from polls, jsonb_each_text(statuses)
      group by key
      order by key`;
    expect([...statuses]).toEqual(["0", "200", "304", "503"].map((key) => ({ key, requests: 1 })));
  });

  test("keeps each failure with its reason", async () => {
    await poll(fails(503));
    expect([...(await sql`select house_id, table_id, status, reason, detail from poll_failures`)]).toEqual([
      { house_id: "alpha", table_id: 1, status: 503, reason: "status", detail: "answered 503" },
    ]);
    expect(await leaseRow()).toMatchObject({
      last_status: 503,
      last_error: "crash/global: answered 503",
      last_ok_at: null,
    });
    await poll(says("1"));
    const row = await leaseRow();
    expect(row).toMatchObject({ last_status: 200, last_error: "crash/global: answered 503" });
    expect(row?.["last_ok_at"]).toEqual(row?.["last_poll_at"]);
  });

  test("opens the circuit at the fifth failure, for all workers; the next poll is a probe, and a good one closes it", async () => {
    for (let failures = 0; failures < 5; failures += 1) await poll(fails(null));
    expect(await leaseRow()).toMatchObject({ circuit: "open", failures_in_row: 5, opened_times: 1, last_status: 0 });
    expect(await take()).toBeNull();
    await sql`update poll_leases set next_allowed_at = clock_timestamp()`;
    const probe = await mustTake();
    expect(probe.circuit.state).toBe("half_open");
    await poll(fails(null), probe);
    expect(await leaseRow()).toMatchObject({ circuit: "open", opened_times: 2 });
    await sql`update poll_leases set next_allowed_at = clock_timestamp()`;
    await poll(says("1"));
    expect(await leaseRow()).toMatchObject({ circuit: "closed", failures_in_row: 0, opened_times: 0, opened_at: null });
  });

  test("leaves a house alone for as long as it asked, without calling it broken", async () => {
    await poll(fails(429, 30_000));
    const [row] = await sql`
      select circuit, extract(epoch from next_allowed_at - clock_timestamp())::float8 as seconds
      from poll_leases`;
    expect(row?.["circuit"]).toBe("closed");
    expect(Math.abs(Number(row?.["seconds"]) - 30)).toBeLessThan(10);
  });

  test("is nothing new where nothing was asked", async () => {
    const before = await leaseRow();
    const lease = await mustTake();
    expect(await saveAnswers(sql, lease, [], MIDDLE)).toMatchObject({ requests: 0, payloads: 0 });
    expect(await leaseRow()).toMatchObject({ ...before, lease_epoch: lease.epoch });
  });
});

describe("an answer that could not be read", () => {
  test("leaves the next one without a time of the answer before, and the one after that with it", async () => {
    await poll(says("<html>"));
    await refuse(1, "<html>");
    await poll(says("good"));
    await poll(says("better"));
    expect(await previous()).toEqual([true, true, false]);
  });

  test("does so also where the next was stored before anybody read it", async () => {
    await poll(says("good"));
    await poll(says("<html>"));
    await poll(unchanged);
    await poll(says("better"));
    await poll(says("best"));
    expect(await previous()).toEqual([true, false, false, false]);
    await refuse(2, "<html>");
    expect(await previous()).toEqual([true, false, true, false]);
    expect((await feed())?.["last_answer_at"]).not.toBeNull();
  });

  test("is asked for in full, and its repeats count for nothing, until another comes", async () => {
    await poll(says("<html>", '"e1"'));
    await refuse(1, "<html>");
    expect((await mustTake()).tables.find(({ tableId }) => tableId === 1)).toMatchObject({ refused: true });
    await sql`update poll_leases set lease_until = '-infinity'`;
    await poll(says("<html>", '"e1"'));
    expect(await feed()).toMatchObject({ last_answer_at: null });
    expect(await payloads()).toHaveLength(1);
    await poll(says("good", '"e2"'));
    expect(await previous()).toEqual([true, true]);
    expect(await feed()).toMatchObject({ refused_since: null, last_answer_at: expect.any(Date) });
  });

  test("that another already followed does not hold up the feed", async () => {
    await poll(says("<html>"));
    await poll(says("good"));
    await refuse(1, "<html>");
    expect(await feed()).toMatchObject({ refused_since: null, last_answer_at: expect.any(Date) });
  });
});

describe("a poll of a house whose rows somebody holds", () => {
  test.each([
    ["houses", "select from houses where id = 'alpha' for update"],
    ["tables", "select from tables where house_id = 'alpha' for update"],
    ["feeds", "select from feeds f join tables t on t.id = f.table_id where t.house_id = 'alpha' for update of f"],
  ])("makes no other poll wait, and is saved once the rows of %s are released", async (_, statement) => {
    await applyHouses(sql, [
      houseEntry({ tables: [tableEntry()] }),
      houseEntry({ id: "beta", tables: [tableEntry()] }),
    ]);
    const leases = await Promise.all(
      ["alpha", "beta"].map((house) => takeLease(sql, { house, shard: 0, timeoutMs: 5_000 })),
    );
    const save = (lease: (typeof leases)[number]) => {
      if (lease === null || lease === undefined || lease === BEHIND) throw new Error("expected a lease");
      const [table] = lease.tables;
      if (table === undefined) throw new Error("expected a table");
      const asked = { tableId: table.tableId, name: "crash/global", path: "/rounds", requestedMs: 1, receivedMs: 2 };
      return saveAnswers(sql, lease, [{ ...asked, answer: says(lease.house) }], MIDDLE);
    };
    const [taken, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    onTestFinished(() => released.resolve());
    const holding = sql.begin(async (tx) => {
      await tx.unsafe(statement);
      taken.resolve();
      await released.promise;
    });
    await taken.promise;
    const [alpha, beta] = leases.map(save);
    let isAlphaSaved = false;
    void alpha?.then(() => (isAlphaSaved = true));
    expect(await beta).toMatchObject({ payloads: 1 });
    expect(isAlphaSaved).toBe(false);
    released.resolve();
    await holding;
    expect(await alpha).toMatchObject({ payloads: 1 });
  });
});
