import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import pollHouse from "../../jobs/poll-house.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import type { HouseClient } from "../../src/houses/polling/client.ts";
import { createHouseClient } from "../../src/houses/polling/http.ts";
import { touchHeads } from "../../src/tables/heads-store.ts";
import { createPasses, loadStates, type Passes } from "../../src/pass/passes.ts";
import { loadTables } from "../../src/pass/stores/load-store.ts";
import { PAUSE_MS } from "../forecasts/world.ts";
import { respondWith, startBadHouse, type BadHouse } from "../support/bad-house.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { feedEntry, forgetHouses, houseEntry, tableEntry } from "../support/houses.ts";
import { importFile, type Row } from "../support/import-file.ts";
import { followChain, makeHouse, storedRounds, type MadeTable } from "../support/make.ts";
import { allowSetAge } from "../support/set-age.ts";

const { sql, pipeline, url } = await openTestDatabase({ max: 6 });
let http: HouseClient;
let house: BadHouse;
let passes: Passes;
beforeEach(async () => {
  passes = createPasses(pipeline);
  await forgetHouses(sql);
  await sql`delete from queue_controls`;
  house = await startBadHouse();
  http = createHouseClient({ version: "0.0.0" });
});
afterEach(async () => {
  await http.close();
  await house.close();
});

/** A page of the three newest rounds, whose multipliers follow from their ids. */
function page(newest: number): string {
  const rounds = [newest, newest - 1, newest - 2].map((id) => ({ id, multiplier: 1 + ((id * 37) % 190) / 100 }));
  return JSON.stringify({ rounds });
}

/** A house of as many tables at /0, /1 … */
async function makeTables(count: number, changed: Record<string, unknown> = {}): Promise<MadeTable[]> {
  return makeHouse(sql, {
    base_url: house.url,
    tables: Array.from({ length: count }, (_, n) =>
      tableEntry({ market: `m${n}`, pause_ms: PAUSE_MS, feed: feedEntry({ path: `/${n}` }) }),
    ),
    ...changed,
  });
}

async function makeOne(changed: Record<string, unknown> = {}): Promise<MadeTable> {
  const [table] = await makeTables(1, changed);
  if (table === undefined) throw new Error("expected a table");
  return table;
}

async function run(job: typeof pollHouse | typeof normalizeRounds, using = passes) {
  const { context } = testContext(sql, { passes: using, http, env: { ALLOW_PRIVATE_HOUSES: "1" } });
  return job === pollHouse
    ? pollHouse.run({ house: "alpha", shard: 0 }, context)
    : normalizeRounds.run({ house: "alpha" }, context);
}

/** Polls a page whose newest round is this one, at every path. */
async function poll(newest: number, tables = 1, using = passes): Promise<Record<string, number>> {
  for (let n = 0; n < tables; n += 1) house.on(`/${n}`, respondWith(page(newest)));
  return run(pollHouse, using);
}

async function sets(): Promise<{ cutoff: number; features: number[] }[]> {
  return sql`select cutoff_ordinal::integer as cutoff, features from forecast_sets order by table_id, cutoff_seq`;
}

async function payloads(): Promise<{ state: string; error: string | null }[]> {
  return sql`select state, error from payloads order by received_at`;
}

/** Whether a statement has waited for a lock for more than a second. */
async function isHeldUp(): Promise<boolean> {
  const [waiting] = await sql`
    select
    from pg_stat_activity
    where datname = current_database()
      and backend_type = 'client backend'
      and wait_event_type = 'Lock'
      and query_start < clock_timestamp() - interval '1200 milliseconds'`;
  return waiting !== undefined;
}

describe("a poll", () => {
  it("takes its rounds in, issues a set after the newest one and settles it by the next, in one transaction", async () => {
    const table = await makeOne();
    expect(await poll(3)).toMatchObject({ rounds: 3, forecasts: 0, scores: 0 });
    expect(await poll(4)).toMatchObject({ rounds: 1, forecasts: 10, scores: 0 });
    expect(await poll(5)).toMatchObject({ rounds: 1, scores: 2 }); // the next color, and a window of one round
    expect((await sets()).map(({ cutoff }) => cutoff)).toEqual([4, 5]);
    const [versions] = await sql`
      select
        h.version,
        count(distinct t.xmin)::integer as transactions
      from table_heads h
      cross join (
        select xmin::text from rounds where seq = 5
        union all
        select xmin::text from payloads where received_at = (select max(received_at) from payloads)
        union all
        select xmin::text from forecast_sets where cutoff_seq = 5
        union all
        select xmin::text from score_sets
        union all
        select xmin::text from table_heads
      ) t
      group by h.version`;
    expect(versions).toEqual({ version: 3n, transactions: 1 });
    expect(await followChain(sql, table)).toBe(5);
  });

  it("after the database's clock stepped back stores its rounds, and does not know when they were absent", async () => {
    await makeOne();
    for (const newest of [3, 4]) await poll(newest);
    await sql`update table_heads set responded_at = responded_at + interval '10 seconds', version = version + 1`;
    expect(await poll(5, 1, createPasses(pipeline))).toMatchObject({ rounds: 1, forecasts: 0 });
    expect(await sql`select absent_at from rounds where seq = 5`).toEqual([{ absent_at: null }]);
    expect((await payloads()).map(({ state }) => state)).toEqual(["read", "read", "read"]);
    expect(await poll(6)).toMatchObject({ rounds: 1, forecasts: 3 }); // seven windows are open since the fourth round
  });

  it("announces its rounds, and its table again once a notice changed because of them", async () => {
    const table = await makeOne();
    await poll(3);
    const { context } = testContext(sql, { passes, http, env: { ALLOW_PRIVATE_HOUSES: "1" } });
    const announced: number[][] = [];
    const published = (ids: readonly number[] = []) => void announced.push([...ids]);
    house.on("/0", respondWith(page(9)));
    await pollHouse.run({ house: "alpha", shard: 0 }, { ...context, published });
    expect(await sql`select kind from notices where closed_at is null`).toEqual([{ kind: "gap" }]);
    expect(announced).toEqual([[table.id], [table.id]]);
  });

  it("of a table with open windows replays no round that an import stored since", async () => {
    const table = await makeOne();
    for (let newest = 5_003; newest <= 5_006; newest += 1) await poll(newest);
    const late = (from: number, count: number) =>
      importFile(
        sql,
        table,
        Array.from({ length: count }, (_, n): Row => [String(from + n), "1.50"]),
      );
    expect(await late(1, 3_000)).toMatchObject({ inserted: 3_000 });
    await poll(5_007);
    expect(await late(3_001, 100)).toMatchObject({ inserted: 100 });
    await poll(5_008);
    const [loaded] = await loadTables(pipeline, [table.id], "1s");
    expect(loaded).toMatchObject({ snapshot: { seq: 3_107n }, isWhole: true });
    expect(loaded?.head.openSets[0]).toBe(4n);
    expect(loaded?.replay.map(({ seq }) => seq)).toEqual([5n, 6n, 3_007n, 3_108n]);
    const state = (await loadStates(createPasses(pipeline), [table.id], "1s")).get(table.id);
    expect(state?.open.length).toBeGreaterThan(0);
    expect(state?.open).toEqual(passes.states.get(table.id)?.open);
  });

  it("knows the newest response with nothing new that another worker received", async () => {
    await makeOne();
    const other = createPasses(pipeline);
    await poll(3);
    await poll(3, 1, other);
    await poll(3);
    const [head] = await sql`select responded_at::text from table_heads`;
    await poll(4, 1, other);
    const [round] = await sql`select absent_at::text from rounds where round_id = '4'`;
    expect(round?.["absent_at"]).toBe(head?.["responded_at"]);
  });

  it("that finds nothing new moves when the house was asked, and no version", async () => {
    await makeOne();
    await poll(3);
    const head = async () => (await sql`select version, responded_at::text from table_heads`)[0];
    const before = await head();
    expect(await poll(3)).toMatchObject({ payloads: 0, unchanged: 1 });
    const after = await head();
    expect(after?.["version"]).toBe(before?.["version"]);
    expect(String(after?.["responded_at"]) > String(before?.["responded_at"])).toBe(true);
    expect(await poll(4)).toMatchObject({ rounds: 1, forecasts: 10 });
    const [round] =
      await sql`select absent_at = ${String(after?.["responded_at"])}::timestamptz as same from rounds where seq = 4`;
    expect(round).toEqual({ same: true });
  });

  it("continues from what another worker stored", async () => {
    const table = await makeOne();
    const other = createPasses(pipeline);
    for (let newest = 3; newest < 40; newest += 1) await poll(newest, 1, newest % 2 === 0 ? passes : other);
    expect(await followChain(sql, table)).toBe(39);
    expect((await sets()).length).toBe(36);
    expect(other.states.get(table.id)?.version).toBe(37n);
    expect(passes.states.get(table.id)?.version).toBe(36n);
  });

  it("reads round ids by the setting that was changed meanwhile", async () => {
    const table = await makeOne();
    const uuids = (...ids: string[]) =>
      respondWith(JSON.stringify({ rounds: ids.map((id) => ({ id: `${id}-4f4a`, multiplier: 1.5 })) }));
    house.on("/0", uuids("b", "a"));
    expect(await run(pollHouse)).toMatchObject({ rounds: 0 });
    const changed = tableEntry({ market: "m0", feed: feedEntry({ path: "/0" }), round_ids: "opaque" });
    await applyHouses(sql, [houseEntry({ base_url: house.url, tables: [changed] })]);
    expect(await run(pollHouse)).toMatchObject({ rounds: 2 });
    house.on("/0", uuids("c", "b"));
    expect(await run(pollHouse)).toMatchObject({ rounds: 1 });
    expect((await storedRounds(sql, table)).map(({ id }) => id)).toEqual(["a-4f4a", "b-4f4a", "c-4f4a"]);
  });

  it("is repeated when another process moved a head meanwhile", async () => {
    const table = await makeOne();
    await poll(3);
    house.on("/0", (_, response) => {
      void touchHeads(sql, [table.id]).then(() => response.end(page(4)));
    });
    expect(await run(pollHouse)).toMatchObject({ rounds: 1, forecasts: 10 });
    expect(await followChain(sql, table)).toBe(4);
  });

  it("that is held up for more than a second is saved without a set", async () => {
    const table = await makeOne();
    await poll(3);
    await allowSetAge(url, "1 second");
    onTestFinished(() => allowSetAge(url, "1 minute"));
    const [locked, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holding = sql.begin(async (tx) => {
      await tx`select from table_heads where table_id = ${table.id} for no key update`;
      locked.resolve();
      await held.promise;
    });
    await locked.promise;
    const polled = poll(4);
    await eventually(isHeldUp);
    held.resolve();
    await holding;
    expect(await polled).toMatchObject({ rounds: 1, forecasts: 0 });
    expect(await sets()).toEqual([]);
    await allowSetAge(url, "1 minute");
    expect(await poll(5)).toMatchObject({ rounds: 1, forecasts: 10 });
  });

  it("that the lease before did not end is stored unread first, and read afterwards", async () => {
    const table = await makeOne();
    await poll(3);
    await sql`update poll_leases set lease_until = clock_timestamp() - interval '1 second'`;
    expect(await poll(4)).toMatchObject({ payloads: 1, rounds: 0 });
    expect(await payloads()).toMatchObject([{ state: "read" }, { state: "unread" }]);
    expect(await poll(5)).toMatchObject({ payloads: 1, rounds: 0 });
    expect(await run(normalizeRounds)).toMatchObject({ payloads: 2, rounds: 2 });
    expect(await poll(6)).toMatchObject({ rounds: 1 });
    expect((await sets()).at(-1)?.cutoff).toBe(6);
    expect((await storedRounds(sql, table)).some(({ late, gap }) => late || gap)).toBe(false);
  });
});

it("a round that an operator released is accepted, behind many newer items of one round", async () => {
  const table = await makeOne();
  for (const newest of [3, 4]) await poll(newest);
  house.on("/0", respondWith(page(999_999)));
  await run(pollHouse);
  await sql`update quarantine set state = 'released', decided_by = 'ann', decided_at = now(), decision_reason = 'real'`;
  await sql`
    insert into quarantine (table_id, code, reason, round_id, item, item_sha256, last_seen_at)
    select ${table.id}::integer, 'bad_item', 'test', '5', '{}', n::text, clock_timestamp() + n * interval '1 ms'
    from generate_series(1, 300) n`;
  await touchHeads(sql, [table.id]);
  house.on("/0", respondWith(` ${page(999_999)}`));
  expect(await run(pollHouse, createPasses(pipeline))).toMatchObject({ rounds: 3 });
  expect((await storedRounds(sql, table)).at(-1)).toMatchObject({ id: "999999", late: false });
});

describe("a response that cannot be processed", () => {
  it("is stored alone, unread with the error; the other tables and the poll are saved", async () => {
    const [bad] = await makeTables(3);
    await poll(3, 3);
    await sql`alter table rounds add constraint our_fault check (table_id <> ${sql.unsafe(String(bad?.id))} or seq <> 4)`;
    try {
      expect(await poll(4, 3)).toMatchObject({ payloads: 3, rounds: 2, forecasts: 20 });
      const [kept] = await sql<{ error: string }[]>`select error from payloads where state = 'unread'`;
      expect(kept?.error).toMatch(/our own code failed on this payload.*our_fault/);
      expect(await sql`select lease_until = '-infinity' as ended from poll_leases`).toEqual([{ ended: true }]);
    } finally {
      await sql`alter table rounds drop constraint our_fault`;
    }
    expect(await run(normalizeRounds)).toMatchObject({ payloads: 1, refused: 0, rounds: 1 });
    expect(await poll(5, 3)).toMatchObject({ rounds: 3, forecasts: 30 - 24 });
  });
});

describe("a write of a poll waits for others", () => {
  /** Polls with these passes; `mayWait` of each write is noted. */
  function noted(): { using: Passes; waits: boolean[] } {
    const waits: boolean[] = [];
    const write: Passes["write"] = (given) => (waits.push(given.mayWait), passes.write(given));
    return { using: { ...passes, write }, waits };
  }

  it.each([
    [1_000, true],
    [999, false],
  ])("of a house that is polled every %i ms: %s", async (pollEveryMs, mayWait) => {
    await makeOne({ poll_every_ms: pollEveryMs });
    const { using, waits } = noted();
    await poll(3, 1, using);
    expect(waits).toEqual([mayWait]);
  });

  it("unless it repeats one that was refused", async () => {
    const table = await makeOne();
    const { using, waits } = noted();
    await poll(3, 1, using);
    house.on("/0", (_, response) => {
      void touchHeads(sql, [table.id]).then(() => response.end(page(4)));
    });
    await run(pollHouse, using);
    expect(waits).toEqual([true, true, false]);
  });

  it("unless it stores alone what was refused together", async () => {
    const [bad] = await makeTables(3);
    const { using, waits } = noted();
    await poll(3, 3, using);
    await sql`alter table rounds add constraint our_fault check (table_id <> ${sql.unsafe(String(bad?.id))} or seq <> 4)`;
    try {
      await poll(4, 3, using);
    } finally {
      await sql`alter table rounds drop constraint our_fault`;
    }
    expect(waits.slice(0, 2)).toEqual([true, true]);
    expect(waits.slice(2)).toHaveLength(6); // the bad one three times, the others, and the end
    expect(waits.slice(2)).not.toContain(true);
  });
});

describe("while a queue is paused", () => {
  const pause = (queue: string) =>
    sql`insert into queue_controls (queue, paused_by, reason) values (${queue}, 'ana', 'test')`;

  it("normalize-rounds: payloads are stored unread, and nothing is issued", async () => {
    const table = await makeOne();
    await poll(3);
    await pause("normalize-rounds");
    expect(await poll(4)).toMatchObject({ payloads: 1, rounds: 0, forecasts: 0 });
    expect(await poll(5)).toMatchObject({ payloads: 1, rounds: 0, forecasts: 0 });
    await sql`delete from queue_controls`;
    expect(await poll(6)).toMatchObject({ payloads: 1, rounds: 0 });
    expect(await run(normalizeRounds)).toMatchObject({ payloads: 3, rounds: 3, late: 0 });
    expect(await followChain(sql, table)).toBe(6);
    expect(await poll(7)).toMatchObject({ rounds: 1 });
  });

  it("a table is loaded with all on-time rounds since its oldest open set, however many these are", async () => {
    const entry = tableEntry({
      market: "m0",
      pause_ms: PAUSE_MS,
      round_ids: "opaque",
      feed: feedEntry({ path: "/0" }),
    });
    const table = await makeOne({ tables: [entry] });
    for (const newest of [5_003, 5_004]) await poll(newest);
    await pause("score-accuracy");
    const rounds = Array.from({ length: 2_503 }, (_, n) => ({ id: 7_504 - n, multiplier: 1 + ((n * 37) % 190) / 100 }));
    for (const known of rounds.slice(-3)) known.multiplier = 1 + ((known.id * 37) % 190) / 100;
    house.on("/0", respondWith(JSON.stringify({ rounds })));
    expect(await run(pollHouse)).toMatchObject({ rounds: 2_500, scores: 0, conflicts: 0 });
    await importFile(sql, table, [["1", "1.50"]]);
    const state = (await loadStates(createPasses(pipeline), [table.id], "1s")).get(table.id);
    expect(state?.open.filter(({ end }) => end !== null).length).toBeGreaterThan(1);
    expect(state?.open).toEqual(passes.states.get(table.id)?.open);
  });

  it("no score is revised by stored payloads while scoring is paused", async () => {
    await makeOne();
    for (const newest of [3, 4, 5, 6]) await poll(newest);
    await pause("normalize-rounds");
    await pause("score-accuracy");
    const rounds = [7, 6, 5].map((id) => ({ id, multiplier: id === 6 ? 180 : 1 + ((id * 37) % 190) / 100 }));
    house.on("/0", respondWith(JSON.stringify({ rounds })));
    await run(pollHouse);
    expect(await run(normalizeRounds)).toMatchObject({ conflicts: 1 });
    expect(await sql`select from score_revisions`).toHaveLength(0);
  });

  it("score-accuracy: what ended waits to be settled, until it is resumed", async () => {
    await makeOne();
    await poll(3);
    await poll(4);
    await pause("score-accuracy");
    expect(await poll(5)).toMatchObject({ rounds: 1, scores: 0 });
    expect(await poll(6)).toMatchObject({ rounds: 1, scores: 0 });
    await sql`delete from queue_controls`;
    expect(await poll(7)).toMatchObject({ rounds: 1, scores: 7 });
    const settled = await sql`select settled_seq::integer as seq, features from score_sets order by settled_seq`;
    expect(settled.map(({ seq }) => Number(seq))).toEqual([5, 6, 7]);
  });
});

describe("a table that another session", () => {
  const failures = () => sql<{ failures: number }[]>`select failures_in_row as failures from poll_leases`;
  const roundsOf = async (table: MadeTable | undefined) => (table ? (await storedRounds(sql, table)).length : 0);

  it.each([3, 25])("keeps locked is left out of the poll, and delays none of %i", async (count) => {
    const tables = await makeTables(count);
    const [locked] = tables;
    await poll(3, count);
    const [first] = await sql<{ askedAt: Date }[]>`select max(last_asked_at) as "askedAt" from feeds`;
    await sql.begin(async (tx) => {
      await tx`select from table_heads where table_id = ${locked?.id ?? 0} for no key update`;
      expect(await poll(4, count)).toMatchObject({ rounds: count - 1, busy: 1 });
    });
    expect(await roundsOf(locked)).toBe(3);
    expect(await failures()).toEqual([{ failures: 0 }]);
    expect(await sql`select from feeds where last_asked_at <= ${first?.askedAt ?? null}`).toEqual([]); // or it were first in each poll
    expect(await poll(5, count)).toMatchObject({ rounds: count + 1 });
    expect(await followChain(sql, locked as MadeTable)).toBe(5);
  });

  it("keeps locked is left out though its state must be loaded again", async () => {
    const [locked, ...others] = await makeTables(3);
    await poll(3, 3);
    await sql.begin(async (tx) => {
      await tx`select from table_heads where table_id = ${locked?.id ?? 0} for no key update`;
      expect(await poll(4, 3, createPasses(pipeline))).toMatchObject({ rounds: 2, busy: 1 });
    });
    expect(await Promise.all([locked, ...others].map(roundsOf))).toEqual([3, 4, 4]);
  });

  it("keeps locked reads the response that it shares with others by the next poll", async () => {
    const tables = await makeHouse(sql, {
      base_url: house.url,
      tables: [0, 1].map((n) => tableEntry({ market: `m${n}`, pause_ms: PAUSE_MS, feed: feedEntry({ path: "/0" }) })),
    });
    const respond = (newest: number) =>
      house.on("/0", (request, response) => {
        if (request.headers["if-none-match"] === `"${newest}"`) response.writeHead(304).end();
        else response.setHeader("etag", `"${newest}"`).end(page(newest));
      });
    respond(3);
    await run(pollHouse);
    respond(4);
    await sql.begin(async (tx) => {
      await tx`select from table_heads where table_id = ${tables[1]?.id ?? 0} for no key update`;
      expect(await run(pollHouse)).toMatchObject({ rounds: 1, busy: 1 });
    });
    expect(await run(pollHouse)).toMatchObject({ rounds: 1 });
    expect(await run(pollHouse)).toMatchObject({ unchanged: 2 });
  });

  it("moves for a moment has no gap: the pages of its later rounds are dropped too", async () => {
    const paged = tableEntry({ market: "m0", adapter: "ethercrash", feed: { first_round_id: 1 } });
    const listed = tableEntry({ market: "m1", feed: feedEntry({ path: "/1" }) });
    const [moved] = (await makeHouse(sql, { base_url: house.url, tables: [paged, listed] })) as [MadeTable];
    const play = (id: number) => house.on(`/game/${id}`, respondWith(`<h4>Game ${id} | Crashed @2.00x</h4>`));
    play(1);
    house.on("/1", respondWith(page(3)));
    await run(pollHouse);
    for (const id of [2, 3]) play(id);
    house.on("/1", respondWith(page(4)));
    const { write } = passes;
    let moves = 6; // twice with the other table, four times alone
    const moving: Passes["write"] = async (given) => {
      if (given.tableIds.includes(moved.id) && moves > 0) {
        moves -= 1;
        await touchHeads(sql, [moved.id]);
      }
      await write(given);
    };
    expect(await run(pollHouse, { ...passes, write: moving })).toMatchObject({ rounds: 1, gaps: 0, busy: 1 });
    expect(await run(pollHouse)).toMatchObject({ rounds: 2, gaps: 0 });
    const rounds = await storedRounds(sql, moved);
    expect(rounds.map(({ id, gap }) => [id, gap])).toEqual(["1", "2", "3"].map((id) => [id, false]));
  });

  it("keeps a poll from being ended is no failure of the house", async () => {
    const [held] = await makeTables(3);
    await poll(3, 3);
    const { write } = passes;
    let ends = 0;
    const locked: Passes["write"] = async (given) => {
      if (given.tableIds.length === 0) ends += 1;
      if (given.tableIds.length === 0 && ends === 1) throw Object.assign(new Error("locked"), { code: "55P03" });
      await write(given);
    };
    await sql.begin(async (tx) => {
      await tx`select from table_heads where table_id = ${held?.id ?? 0} for no key update`;
      await expect(poll(4, 3, { ...passes, write: locked })).rejects.toThrow("locked");
    });
    expect([ends, await failures()]).toEqual([2, [{ failures: 0 }]]);
  });

  it("moves before each write stops no other", async () => {
    const [moved, ...others] = await makeTables(3);
    await poll(3, 3);
    const { write } = passes;
    const moving: Passes["write"] = async (given) => {
      if (moved !== undefined && given.tableIds.includes(moved.id)) await touchHeads(sql, [moved.id]);
      await write(given);
    };
    expect(await poll(4, 3, { ...passes, write: moving })).toMatchObject({ rounds: 2, busy: 1 });
    expect(await Promise.all([moved, ...others].map(roundsOf))).toEqual([3, 4, 4]);
    expect(await failures()).toEqual([{ failures: 0 }]);
  });

  it.each(["a", "no"])(
    "keeps locked for a moment is saved by the same poll with %s state, after the others",
    async (has) => {
      const [locked] = await makeTables(3);
      await poll(3, 3);
      if (has === "no") passes = createPasses(pipeline);
      const free = Promise.withResolvers<void>();
      const { write } = passes;
      let saved = 0;
      const freeing: Passes["write"] = async (given) => {
        await write(given);
        saved += 1;
        if (saved === 1) free.resolve(); // the others are
      };
      const { polled } = await sql.begin(async (tx) => {
        await tx`select from table_heads where table_id = ${locked?.id ?? 0} for no key update`;
        const polling = poll(4, 3, { ...passes, write: freeing });
        await free.promise;
        return { polled: polling };
      });
      const counts = await polled;
      expect(counts).toMatchObject({ rounds: 3 });
      expect(counts).not.toHaveProperty("busy");
    },
  );

  it("keeps locked ends no poll whose lease was lost meanwhile", async () => {
    const [locked] = await makeTables(3);
    await poll(3, 3);
    const { write } = passes;
    const losing: Passes["write"] = async (given) => {
      if (given.tableIds.length === 0) await sql`update poll_leases set lease_epoch = lease_epoch + 1`;
      await write(given);
    };
    await sql.begin(async (tx) => {
      await tx`select from table_heads where table_id = ${locked?.id ?? 0} for no key update`;
      expect(await poll(4, 3, { ...passes, write: losing })).toEqual({ lost: 1 });
    });
  });

  it("locks a row that all tables of a house need is waited for", async () => {
    await makeTables(3);
    await poll(3, 3);
    for (const n of [1, 2]) house.on(`/${n}`, respondWith(page(4)));
    const [locked, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const hold = () =>
      sql.begin(async (tx) => {
        await tx`select from poll_leases for no key update`;
        locked.resolve();
        await free.promise;
      });
    let holding: Promise<void> | undefined;
    house.on("/0", (_, response) => {
      holding = hold();
      void locked.promise.then(() => response.end(page(4)));
    });
    const polled = run(pollHouse);
    await eventually(isHeldUp);
    free.resolve();
    await holding;
    expect(await polled).toMatchObject({ rounds: 3 });
  });

  it("locks together with all others of the house is no failure of it", async () => {
    await makeTables(3);
    await poll(3, 3);
    await sql.begin(async (tx) => {
      await tx`select from table_heads for no key update`;
      expect(await poll(4, 3)).toMatchObject({ rounds: 0, busy: 3 });
    });
    expect(await failures()).toEqual([{ failures: 0 }]);
    expect(await poll(5, 3)).toMatchObject({ rounds: 6 });
  });

  it("moves before each write is no failure of a house that has it alone", async () => {
    const moved = await makeOne();
    await poll(3);
    const { write } = passes;
    const moving: Passes["write"] = async (given) => {
      if (given.tableIds.length > 0) await touchHeads(sql, [moved.id]);
      await write(given);
    };
    expect(await poll(4, 1, { ...passes, write: moving })).toMatchObject({ rounds: 0, busy: 1 });
    expect(await failures()).toEqual([{ failures: 0 }]);
    expect(await poll(5)).toMatchObject({ rounds: 2 });
  });
});

describe("polls at the same moment", () => {
  it("share a transaction; a locked row delays only its own poll", async () => {
    await makeHouse(sql, { base_url: house.url, tables: [tableEntry({ feed: feedEntry({ path: "/0" }) })] });
    const others = await startBadHouse();
    others.on("/rounds", respondWith(page(3)));
    house.on("/0", respondWith(page(3)));
    const { context } = testContext(sql, { passes, http, env: { ALLOW_PRIVATE_HOUSES: "1" } });
    const entries = Array.from({ length: 5 }, (_, n) => ({ id: `h${n}`, base_url: others.url }));
    await applyHouses(sql, [
      houseEntry({ base_url: house.url, tables: [tableEntry({ feed: feedEntry({ path: "/0" }) })] }),
      ...entries.map((entry) => houseEntry(entry)),
    ]);
    const [held] = await sql<{ table_id: number }[]>`
      select h.table_id from table_heads h join tables t on t.id = h.table_id where t.house_id = 'alpha'`;
    const free = Promise.withResolvers<void>();
    const holding = sql.begin(async (tx) => {
      await tx`select from table_heads where table_id = ${held?.table_id ?? 0} for no key update`;
      await free.promise;
    });
    const stuck = pollHouse.run({ house: "alpha", shard: 0 }, context);
    const polled = entries.map(({ id }) => pollHouse.run({ house: id, shard: 0 }, context));
    expect((await Promise.all(polled)).every(({ rounds }) => rounds === 3)).toBe(true);
    free.resolve();
    await holding;
    expect(await stuck).toMatchObject({ rounds: 3 });
    await others.close();
  });

  it("of houses with many tables are written one at a time, so that they hold up no house with a few", async () => {
    const many = Array.from({ length: 30 }, (_, n) =>
      tableEntry({ market: `m${n}`, feed: feedEntry({ path: "/many" }) }),
    );
    await applyHouses(sql, [
      houseEntry({ id: "many1", base_url: house.url, tables: many }),
      houseEntry({ id: "many2", base_url: house.url, tables: many }),
      houseEntry({ id: "few", base_url: house.url, tables: [tableEntry({ feed: feedEntry({ path: "/few" }) })] }),
    ]);
    const { context } = testContext(sql, { passes, http, env: { ALLOW_PRIVATE_HOUSES: "1" } });
    const ask = (id: string, newest: number) => {
      for (const path of ["/many", "/few"]) house.on(path, respondWith(page(newest)));
      return pollHouse.run({ house: id, shard: 0 }, context);
    };
    for (const id of ["many1", "many2", "few"]) await ask(id, 3);
    await sql.unsafe(`
      create table gates (open boolean);
      create function await_gate() returns trigger language plpgsql as $$
      begin while not exists (select from gates) loop perform pg_sleep(0.01); end loop; return new; end $$;
      create trigger await_gate before insert on rounds for each row when (new.table_id in (
        ${(await sql<{ id: number }[]>`select min(id) as id from tables where house_id like 'many%' group by house_id`).map(({ id }) => id).join()}
      )) execute function await_gate()`);
    onTestFinished(async () => {
      await sql.unsafe("drop trigger await_gate on rounds; drop function await_gate(); drop table gates");
    });
    const heavy = [ask("many1", 4), ask("many2", 4)];
    const waiting = () => sql`
      select pid, xact_start::text
      from pg_stat_activity
      where datname = current_database()
        and backend_type = 'client backend'
        and wait_event = 'PgSleep'`;
    const before = await eventually(async () => {
      const found = await waiting();
      expect([house.requests.length, found.length]).toEqual([5, 1]);
      return found;
    });
    expect(await ask("few", 4)).toMatchObject({ rounds: 1 });
    expect(await waiting()).toEqual(before); // it did not have to give up first
    await sql`insert into gates values (true)`;
    expect(await Promise.all(heavy)).toMatchObject([{ rounds: 30 }, { rounds: 30 }]);
  });
});
