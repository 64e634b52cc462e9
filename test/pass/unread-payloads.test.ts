import { hash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { LARGEST_HERE, readBody } from "../../src/rounds/read-response.ts";
import { ThreadBusyError } from "../../src/thread.ts";
import { loadHouse } from "../../src/houses/store.ts";
import { createPasses, loadStates } from "../../src/pass/passes.ts";
import { sevenDigits } from "../../src/pass/compute/times.ts";
import { keepUnreadPayload, listUnreadTables } from "../../src/pass/stores/payload-store.ts";
import { processUnread } from "../../src/pass/unread-payloads.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { feedEntry, forgetHouses, tableEntry } from "../support/houses.ts";
import { lockWaits } from "../support/lock-waits.ts";
import {
  atSecond,
  followChain,
  makeHouse,
  makeItem,
  makePayload,
  makeTable,
  storedRounds,
  type MadeTable,
} from "../support/make.ts";

const { sql, pipeline } = await openTestDatabase();
beforeEach(() => forgetHouses(sql));

/** Payloads of one round each, by number; those in `broken` cannot be read. Three transactions store 250 of them. */
async function makeBacklog(payloads: number, broken: readonly number[] = []): Promise<MadeTable> {
  const table = await makeTable(sql);
  for (let second = 1; second <= payloads; second += 1) {
    const items = [makeItem(second, 1 + (second % 90) / 100)];
    await makePayload(sql, table, { second, ...(broken.includes(second) ? { body: "<html>" } : { items }) });
  }
  return table;
}

/** Processes a table as one worker does; each call is another worker. */
async function start(table: MadeTable, { signal } = new AbortController(), passes = createPasses(pipeline)) {
  const house = await loadHouse(sql, () => undefined, table.house);
  if (house === null) throw new Error("the house was made before");
  return processUnread({ sql, passes, house, signal }, table.id);
}

/** Processes what is left, and returns how many payloads each transaction stored. */
async function finish(work: Awaited<ReturnType<typeof start>>): Promise<number[]> {
  const stored: number[] = [];
  for await (const { rows } of work) stored.push(rows.marks.length);
  return stored;
}

/** Holds the head of a table, so that nothing that changes it ends before `free`. */
async function holdHead(table: MadeTable) {
  const [locked, freeing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const freed = sql.begin(async (tx) => {
    await tx`select from table_heads where table_id = ${table.id} for no key update`;
    locked.resolve();
    await freeing.promise;
  });
  await locked.promise;
  return { free: freeing.resolve, freed };
}

/** The lease of a house that was never polled. */
const leaseOf = ({ house }: MadeTable) => ({ house, shard: 0, epoch: 0n });

/** A payload of one round, as it is kept when its table cannot be read. */
function unreadPayload({ id }: MadeTable, second: number): Parameters<typeof keepUnreadPayload>[2] {
  const body = JSON.stringify({ rounds: [makeItem(second, 1.5)] });
  return {
    tableId: id,
    path: "/rounds",
    status: 200,
    contentType: null,
    bytes: body.length,
    sha256: hash("sha256", body),
    body: gzipSync(body),
    requestedAt: sevenDigits(atSecond(second)),
    receivedAt: sevenDigits(atSecond(second + 0.1)),
    error: "the table is damaged",
  };
}

async function expectAll(table: MadeTable, rounds: number): Promise<void> {
  const ids = (await storedRounds(sql, table)).map(({ id }) => id);
  expect(ids).toEqual(Array.from({ length: rounds }, (_, place) => String(place + 1)));
  expect(await followChain(sql, table)).toBe(rounds);
  const left = await sql`select state, count(*)::integer from payloads where table_id = ${table.id} group by state`;
  expect(left).toEqual([{ state: "read", count: rounds }]);
}

describe("a backlog of payloads", () => {
  it("is stored in several transactions, in order, with one chain", async () => {
    const table = await makeBacklog(250);
    expect(await finish(await start(table))).toEqual([100, 100, 50]);
    await expectAll(table, 250);
  });

  it("is stored once when another process stores it while the next payloads are computed", async () => {
    const table = await makeBacklog(250);
    const slow = await start(table);
    expect((await slow.next()).value).toMatchObject({ rows: { marks: { length: 100 } } });
    expect(await finish(await start(table))).toEqual([100, 50]);
    expect(await finish(slow)).toEqual([]);
    await expectAll(table, 250);
  });

  it("is stored in smaller transactions after polls moved the head while earlier ones were computed", async () => {
    const table = await makeBacklog(250);
    const passes = createPasses(pipeline);
    let computed = 0;
    const countTables = async () => {
      computed += 1;
      if (computed <= 4) await sql`update table_heads set version = version + 1 where table_id = ${table.id}`;
      return passes.countTables();
    };
    const stored = await finish(await start(table, new AbortController(), { ...passes, countTables }));
    expect(stored.filter((payloads) => payloads > 50)).toEqual([]);
    await expectAll(table, 250);
  });

  it("is known to the cached state also when another process adds a payload while the last one is stored", async () => {
    const table = await makeBacklog(1);
    const passes = createPasses(pipeline);
    const held = await holdHead(table);
    const work = await start(table, new AbortController(), passes);
    const storing = work.next();
    await lockWaits(sql, 1);
    const adding = keepUnreadPayload(pipeline, leaseOf(table), unreadPayload(table, 2), "4s");
    held.free();
    await Promise.all([held.freed, storing, adding]);
    await work.return(undefined);
    const [head] = await sql<{ version: bigint; hasUnread: boolean }[]>`
      select
        h.version,
        exists (select from payloads p where p.table_id = h.table_id and p.state = 'unread') as "hasUnread"
      from table_heads h
      where h.table_id = ${table.id}`;
    // whether the added one was read too depends on the machine
    const isWrong = { version: head?.version, hasUnread: !head?.hasUnread };
    expect(passes.states.get(table.id)).not.toMatchObject(isWrong);
    await finish(await start(table));
    await expectAll(table, 2);
  });

  it("is known to a state that was loaded while the payload was stored", async () => {
    const table = await makeTable(sql);
    const head = await holdHead(table);
    const adding = keepUnreadPayload(pipeline, leaseOf(table), unreadPayload(table, 1), "4s");
    await lockWaits(sql, 1);
    const loading = loadStates(createPasses(pipeline), [table.id]);
    await lockWaits(sql, 2);
    head.free();
    await Promise.all([head.freed, adding]);
    expect((await loading).get(table.id)).toMatchObject({ version: 1n, hasUnread: true });
  });

  it("is continued by another process when one ends while the next payloads are computed", async () => {
    const table = await makeBacklog(250);
    const killed = await start(table);
    await killed.next();
    await killed.return(undefined);
    expect((await finish(await start(table))).reduce((all, stored) => all + stored, 0)).toBe(150);
    await expectAll(table, 250);
  });

  it("knows that the last payload of the transaction before proves nothing", async () => {
    const table = await makeBacklog(102, [100]);
    await finish(await start(table));
    const absences = await sql<{ id: string; known: boolean }[]>`
      select round_id as id, absent_at is not null as known
      from rounds
      where table_id = ${table.id}
        and seq >= 99
      order by seq`;
    expect(absences).toEqual([
      { id: "99", known: true },
      { id: "101", known: false },
      { id: "102", known: true },
    ]);
  });

  it("has one refused payload when PostgreSQL refuses its round in the second transaction", async () => {
    const table = await makeBacklog(250);
    await sql.unsafe(`
      create function refuse_round() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
      create trigger refuse_round before insert on rounds for each row when (new.round_id = '150') execute function refuse_round()`);
    try {
      await finish(await start(table));
    } finally {
      await sql.unsafe("drop trigger refuse_round on rounds; drop function refuse_round()");
    }
    const refused = await sql<{ reason: string }[]>`
      select refused_reason as reason
      from payloads
      where table_id = ${table.id}
        and state <> 'read'`;
    expect(refused).toEqual([{ reason: expect.stringContaining("our own code failed") }]);
    const ids = (await storedRounds(sql, table)).map(({ id }) => Number(id));
    expect(ids).toHaveLength(249);
    expect(ids).not.toContain(150);
    expect(await followChain(sql, table)).toBe(249);
  });

  it("finds older rounds of the transaction before, which is being stored", async () => {
    const table = await makeTable(sql);
    for (let second = 1; second <= 202; second += 1) {
      const numbers = [2 * second - 1, 2 * second, ...(second === 101 ? [40] : [])];
      const items = numbers.map((number) => makeItem(number, 1 + (number % 90) / 100));
      await makePayload(sql, table, { second, items: items.toReversed() });
    }
    expect(await finish(await start(table))).toEqual([100, 100, 2]);
    expect(await followChain(sql, table)).toBe(404);
  });

  it.for([
    ["the transaction before", 101],
    ["the same transaction", 99],
  ] as const)(
    "knows that a response with an older round of %s, even unreadable, continues the sequence",
    async ([, place]) => {
      const table = await makeTable(sql, { round_ids: "opaque", feed: feedEntry({ order: "newest_first" }) });
      for (let second = 1; second <= 202; second += 1) {
        const newest = [2 * second, 2 * second - 1].map((number) => makeItem(number, 1 + (number % 90) / 100));
        const shared =
          second === place ? makeItem(40, "x") : makeItem(2 * second - 2, 1 + ((2 * second - 2) % 90) / 100);
        await makePayload(sql, table, { second, items: [...newest, shared] });
      }
      await finish(await start(table));
      const gaps = await sql`
      select round_id
      from rounds
      where table_id = ${table.id}
        and after_gap`;
      expect(gaps).toEqual([]);
    },
  );

  it("is tried once, and stays unread, when too many others wait for the thread", async () => {
    const table = await makeBacklog(3);
    const house = await loadHouse(sql, () => undefined, table.house);
    if (house === null) throw new Error("the house was made before");
    const large = { body: Buffer.alloc(LARGEST_HERE + 1, "<"), now: atSecond(1), path: "/", kind: "poll" } as const;
    const others = new AbortController();
    const [, game = "", market = ""] = table.name.split("/");
    const fill = async () => {
      while (!others.signal.aborted) await readBody(house, { name: table.name, game, market }, large, others);
    };
    const filled = Promise.allSettled(Array.from({ length: 1_000 }, fill));
    const own = new AbortController();
    const tries = vi.spyOn(own.signal, "addEventListener"); // each of them listens
    await expect(finish(await start(table, own))).rejects.toThrow(ThreadBusyError);
    others.abort();
    await filled;
    expect(tries).toHaveBeenCalledTimes(1);
    await eventually(async () => expect(await finish(await start(table))).toEqual([3]));
    await expectAll(table, 3);
  });

  it("has one refused payload when the body of one is missing", async () => {
    const table = await makeBacklog(3);
    await sql`
      update payloads
      set body = null, body_of = 0
      where table_id = ${table.id}
        and requested_at = ${atSecond(2)}`;
    await finish(await start(table));
    const states = await sql<{ state: string }[]>`
      select state
      from payloads
      where table_id = ${table.id}
      order by received_at`;
    expect(states.map(({ state }) => state)).toEqual(["read", "refused", "read"]);
  });
});

it("tables with unread payloads are listed from the one that waits longest, whatever their ids", async () => {
  const entries = ["m0", "m1", "m2"].map((market) => tableEntry({ market }));
  const [first, second] = (await makeHouse(sql, { tables: entries })) as [MadeTable, MadeTable, MadeTable];
  await makePayload(sql, first, { second: 5 });
  await makePayload(sql, first, { second: 9 });
  await makePayload(sql, second, { second: 4 });
  expect(await listUnreadTables(sql, first.house)).toEqual([second.id, first.id]);
});
