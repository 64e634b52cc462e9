import { describe, expect, test } from "vitest";
import issueForecasts from "../../jobs/issue-forecasts.ts";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import scoreAccuracy from "../../jobs/score-accuracy.ts";
import type { Sql, Transaction } from "../../src/db/client.ts";
import { lockAccuracy } from "../../src/forecasts/score/score-store.ts";
import { scoreHouse } from "../../src/forecasts/score/score.ts";
import { addRounds, createWorld, type World } from "../forecasts/world.ts";
import { testContext, type TestContext } from "../support/context.ts";
import { eventually } from "../support/eventually.ts";
import { makeItem, makePayload } from "../support/make.ts";

type Counts = Record<string, number>;

/** Houses with a table each, all polled, and a way to run a job of each over one pool of connections. */
async function makeHouses(count: number, tables?: Record<string, unknown>[]) {
  const worlds: World[] = [];
  for (let n = 0; n < count; n++)
    worlds.push(await createWorld({ connections: 6, ...(tables !== undefined && { tables }) }));
  const [first] = worlds;
  if (first === undefined) throw new Error("expected a house, made none");
  const { sql } = first;
  const houses = worlds.map(({ house }) => house);
  // each was put in force alone
  await sql`update houses set enabled = true where id = any(${houses})`;
  await sql`update tables set enabled = true where house_id = any(${houses})`;
  const run = async (
    job: { run(payload: { house: string }, context: TestContext["context"]): Promise<Counts> },
    world: World,
  ): Promise<Counts & { followed: (bigint | null)[] }> => {
    const { context, followed } = testContext(sql);
    return Object.assign(await job.run({ house: world.house }, context), { followed });
  };
  return {
    sql,
    worlds,
    run,
    runAll: (job: Parameters<typeof run>[0]) => Promise.all(worlds.map((world) => run(job, world))),
    /** How many transactions wrote what these tables have in a table of the database. */
    async transactions(table: string): Promise<number> {
      const [row] = await sql<{ n: number }[]>`
        select count(distinct xmin::text)::integer as n
        from ${sql(table)}
        where table_id = any(${worlds.map(({ tableId }) => tableId)})`;
      return row?.n ?? 0;
    },
  };
}

/** A round of each table, in time for a forecast of what follows. */
async function playAll({ sql, tableIds }: World): Promise<void> {
  await sql.begin(async (tx) => {
    for (const id of tableIds) await addRounds(tx, id, [{ hundredths: 150, absentAgo: 1 }]);
  });
}

/** Runs `work` while another transaction holds something. */
async function whileHeld(
  sql: Sql,
  hold: (tx: Transaction) => Promise<unknown>,
  work: (tx: Transaction) => Promise<void>,
) {
  await sql.begin(async (tx) => {
    await hold(tx);
    await work(tx);
  });
}

async function untilBlocked(sql: Sql): Promise<void> {
  await eventually(async () => {
    const rows = await sql`
      select from pg_stat_activity
      where datname = current_database()
        and wait_event_type = 'Lock'`;
    return rows.length > 0;
  });
}

/** Runs a job of two houses, of the second of which something is held, and says what either did and whether it waited. */
async function runBesideHeld(
  { sql, worlds, run }: Awaited<ReturnType<typeof makeHouses>>,
  job: Parameters<typeof run>[0],
  hold: (tx: Transaction, held: World) => Promise<unknown>,
): Promise<{ free: Counts; hasWaited: boolean; held: Counts }> {
  const [free, held] = worlds as [World, World];
  const begun: { free?: Counts; hasWaited?: boolean; held?: Promise<Counts> } = {};
  await whileHeld(
    sql,
    (tx) => hold(tx, held),
    async () => {
      begun.held = run(job, held);
      begun.free = await run(job, free);
      begun.hasWaited = !(await isOver(begun.held));
    },
  );
  return { free: begun.free ?? {}, hasWaited: begun.hasWaited ?? false, held: (await begun.held) ?? {} };
}

const lockTable = (tx: Transaction, { tableId }: World) =>
  tx`select from tables where id = ${tableId} for no key update`;

/** Has it come to its end? */
async function isOver(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<false>((next) => setImmediate(() => next(false)))]);
}

function idsDownFrom(newest: number): number[] {
  return Array.from({ length: newest }, (_, n) => newest - n);
}

describe("answers of houses that come at the same time", () => {
  const answer = (second: number, ids: number[]) => ({ second, items: ids.map((id) => makeItem(id, 1.5 + id / 100)) });

  test("are taken in together, and each run tells of its own", async () => {
    const { sql, worlds, runAll, transactions } = await makeHouses(5);
    const newest = [2, 3, 4, 5, 6];
    const ids: bigint[] = [];
    for (const [n, { tableId }] of worlds.entries()) {
      ids.push(await makePayload(sql, { id: tableId }, answer(1, idsDownFrom(newest[n] ?? 0))));
    }
    const counts = await runAll(normalizeRounds);
    expect(counts.map(({ rounds }) => rounds)).toEqual(newest);
    expect(counts.map(({ followed }) => followed)).toEqual(ids.map((id) => [id]));
    expect(await transactions("rounds")).toBeLessThan(5);
  });

  test("wait for none of which somebody holds a table, and it is taken in once that is let go", async () => {
    const houses = await makeHouses(2);
    const { sql, worlds } = houses;
    for (const { tableId } of worlds) await makePayload(sql, { id: tableId }, answer(1, [2, 1]));
    expect(await runBesideHeld(houses, normalizeRounds, lockTable)).toMatchObject({
      free: { rounds: 2 },
      hasWaited: true,
      held: { rounds: 2 },
    });
  });

  test("of which a house has two tables, one of them held, wait together and are taken in in their order", async () => {
    const houses = await makeHouses(2, [{}, {}]);
    const { sql, worlds } = houses;
    for (const { tableIds } of worlds) for (const id of tableIds) await makePayload(sql, { id }, answer(1, [2, 1]));
    expect(
      await runBesideHeld(
        houses,
        normalizeRounds,
        (tx, held) => tx`select from tables where id = ${held.tableIds[1] ?? 0} for no key update`,
      ),
    ).toMatchObject({ free: { rounds: 4 }, hasWaited: true, held: { rounds: 4 } });
  });

  test("are all taken in, however far one house is behind", async () => {
    const { sql, worlds, runAll } = await makeHouses(3);
    const behind = worlds[0]!;
    for (let n = 1; n <= 130; n++) await makePayload(sql, { id: behind.tableId }, answer(n, [n]));
    for (const { tableId } of worlds.slice(1)) await makePayload(sql, { id: tableId }, answer(1, [2, 1]));
    expect((await runAll(normalizeRounds)).map(({ rounds }) => rounds)).toEqual([130, 2, 2]);
  });

  test("that cannot be read wait for polls of the same houses in the order of polls, not in a circle", async () => {
    const { sql, worlds, run } = await makeHouses(3);
    for (const { tableId } of worlds) await makePayload(sql, { id: tableId }, { second: 1, body: "no JSON" });
    const ids = worlds.map(({ tableId }) => tableId).toSorted((a, b) => a - b);
    let runs: Promise<Counts>[] = [];
    await whileHeld(
      sql,
      (tx) => tx`select from feeds where table_id = ${ids[0] ?? 0} for update`,
      async (tx) => {
        runs = worlds.toReversed().map((world) => run(normalizeRounds, world));
        await untilBlocked(sql);
        // whoever waits for the first holds none of the others
        await tx`select from feeds where table_id = any(${ids}) order by table_id for update nowait`;
      },
    );
    expect((await Promise.all(runs)).map(({ refused }) => refused)).toEqual([1, 1, 1]);
  });

  test("that break the transaction are refused alone", async () => {
    const { sql, worlds, runAll } = await makeHouses(3);
    const bad = worlds[1]!;
    for (const { tableId } of worlds) await makePayload(sql, { id: tableId }, answer(1, [2, 1]));
    await sql.unsafe(`
      create function refuse_all() returns trigger language plpgsql as $$ begin raise 'not this table'; end $$;
      create trigger refuse_all before insert on rounds for each row when (new.table_id = ${bad.tableId})
        execute function refuse_all()`);
    try {
      const counts = await runAll(normalizeRounds);
      expect(counts.map(({ rounds, refused }) => [rounds, refused])).toEqual([
        [2, 0],
        [0, 1],
        [2, 0],
      ]);
    } finally {
      await sql.unsafe("drop trigger refuse_all on rounds; drop function refuse_all");
    }
  });
});

describe("forecasts of houses whose rounds come at the same time", () => {
  const play = async (worlds: readonly World[]) => {
    for (const world of worlds) await world.play([{ hundredths: 150, absentAgo: 1 }]);
  };

  test("are issued by one transaction, and each run tells of its own", async () => {
    const { worlds, runAll, transactions } = await makeHouses(3);
    await play(worlds.slice(0, 2));
    expect((await runAll(issueForecasts)).map(({ learned, issued, windows }) => [learned, issued, windows])).toEqual([
      [1, 1, 9],
      [1, 1, 9],
      [0, 0, 0],
    ]);
    expect(await transactions("forecasts")).toBe(1);
  });

  test("wait for none of which somebody holds a table, and it is spoken of once that is let go", async () => {
    const houses = await makeHouses(2);
    await play(houses.worlds);
    expect(await runBesideHeld(houses, issueForecasts, lockTable)).toMatchObject({
      free: { issued: 1 },
      hasWaited: true,
      held: { issued: 1 },
    });
  });

  test("are not issued where an answer is not read yet, and for all others by the same statement", async () => {
    const { sql, worlds, runAll, transactions } = await makeHouses(3);
    await play(worlds);
    await makePayload(sql, { id: worlds[1]!.tableId }, { second: 1, items: [makeItem(2, 1.5)] });
    expect((await runAll(issueForecasts)).map(({ issued, refused }) => [issued, refused])).toEqual([
      [1, 0],
      [0, 1],
      [1, 0],
    ]);
    expect(await transactions("forecasts")).toBe(1);
  });

  test("are issued though the state of one house is damaged, and that alone is told of", async () => {
    const { sql, worlds, runAll } = await makeHouses(3);
    await play(worlds);
    await runAll(issueForecasts);
    await sql`update model_states set state_hash = repeat('0', 64) where table_id = ${worlds[1]!.tableId}`;
    await play(worlds);
    expect((await runAll(issueForecasts)).map(({ issued, damaged }) => [issued, damaged])).toEqual([
      [1, 0],
      [0, 1],
      [1, 0],
    ]);
  });

  test("speak of what came in while their house was set apart", async () => {
    const { sql, worlds, run } = await makeHouses(1);
    const [world] = worlds as [World];
    await play(worlds);
    let waiting: Promise<Counts> | undefined;
    await whileHeld(
      sql,
      (tx) => tx`select from tables where id = ${world.tableId} for no key update`,
      async (tx) => {
        waiting = run(issueForecasts, world);
        await untilBlocked(sql); // set apart after its tries
        await addRounds(tx, world.tableId, [{ hundredths: 300, absentAgo: 1 }]);
      },
    );
    expect(await waiting).toMatchObject({ learned: 2, issued: 1 });
    const rows =
      await sql`select distinct cutoff_seq::integer as cutoff from forecasts where table_id = ${world.tableId}`;
    expect(rows.map(({ cutoff }) => cutoff as number)).toEqual([2]);
  });

  test("are issued for a small house beside one with more tables than a transaction takes, whoever asked first", async () => {
    const big = await createWorld({ tables: Array.from({ length: 101 }, () => ({})), connections: 6 });
    const small = await createWorld();
    await big.sql`update houses set enabled = true where id = ${big.house}`;
    await big.sql`update tables set enabled = true where house_id = ${big.house}`;
    for (const world of [big, small]) await playAll(world);
    const issue = async ({ house }: World) => issueForecasts.run({ house }, testContext(big.sql).context);
    const [ofBig, ofSmall] = await Promise.all([issue(big), issue(small)]);
    expect([ofBig["issued"], ofSmall["issued"]]).toEqual([101, 1]);
    // it had its turn in the first transaction, which left two of the others
    const [late] = await big.sql<{ n: number }[]>`
      select count(*)::integer as n
      from forecasts f
      where f.table_id = any(${big.tableIds})
        and f.feature = 'next_color'
        and f.issued_at > (select max(issued_at) from forecasts where table_id = any(${small.tableIds}))`;
    expect(late?.n).toBe(2);
  });

  test("are issued for every table where they are more than a transaction takes", async () => {
    const tables = Array.from({ length: 60 }, () => ({}));
    const first = await createWorld({ tables, connections: 6 });
    const second = await createWorld({ tables });
    await first.sql`update houses set enabled = true where id = ${first.house}`;
    await first.sql`update tables set enabled = true where house_id = ${first.house}`;
    for (const world of [first, second]) await playAll(world);
    const issue = async ({ house }: World) => issueForecasts.run({ house }, testContext(first.sql).context);
    const counts = await Promise.all([issue(second), issue(first)]);
    expect(counts.map(({ learned, issued }) => [learned, issued])).toEqual([
      [60, 60],
      [60, 60],
    ]);
  });
});

describe("scores of houses whose rounds come at the same time", () => {
  const scored = async (worlds: readonly World[]) => {
    for (const world of worlds) {
      await world.play([150]);
      await world.play([{ hundredths: 150, absentAgo: 1 }]);
      await world.issue();
      await world.play([230]);
    }
  };

  test("are stored by one transaction and shown together, and each run tells of its own", async () => {
    const { worlds, runAll, transactions } = await makeHouses(5);
    await scored(worlds.slice(0, 4));
    const counts = await runAll(scoreAccuracy);
    expect(counts.map(({ scored: n, published }) => [n, published])).toEqual([
      [1, 50],
      [1, 50],
      [1, 50],
      [1, 50],
      [0, 0],
    ]);
    expect(await transactions("scores")).toBe(1);
    expect(await transactions("published_accuracy")).toBeLessThan(4);
  });

  test("are all stored where they are more than a transaction takes, and marks with them", async () => {
    const { sql, worlds, runAll } = await makeHouses(
      3,
      Array.from({ length: 30 }, () => ({})),
    );
    for (const world of worlds) {
      for (let n = 0; n < 7; n++) {
        await playAll(world);
        await world.issue();
      }
    }
    const counts = await runAll(scoreAccuracy);
    // six a table, since nothing is known of what follows the last
    expect(counts.map(({ scored: n }) => n)).toEqual([180, 180, 180]);
    expect(counts.every(({ windows = 0 }) => windows > 0)).toBe(true);
    const behind = await sql`
      select t.id
      from tables t
      join accuracy_marks m on m.table_id = t.id
      where t.id = any(${worlds.flatMap(({ tableIds }) => tableIds)})
        and m.seq < t.last_seq`;
    expect(behind).toHaveLength(0);
  });

  test("are shown though somebody else sums another table, and that one once it is over", async () => {
    const houses = await makeHouses(2);
    const { sql, worlds } = houses;
    await scored(worlds);
    for (const { house } of worlds) await scoreHouse(sql, house, new AbortController().signal);
    expect(await runBesideHeld(houses, scoreAccuracy, (tx, held) => lockAccuracy(tx, [held.tableId]))).toMatchObject({
      free: { published: 50 },
      hasWaited: true,
      held: { published: 50 },
    });
  });

  test("wait for none of which somebody else sums a table, and it is scored once that is over", async () => {
    const houses = await makeHouses(2);
    await scored(houses.worlds);
    expect(await runBesideHeld(houses, scoreAccuracy, (tx, held) => lockAccuracy(tx, [held.tableId]))).toMatchObject({
      free: { scored: 1 },
      hasWaited: true,
      held: { scored: 1 },
    });
  });

  test("are stored though a row of one house is damaged, and that alone is told of", async () => {
    const { sql, worlds, runAll } = await makeHouses(3);
    await scored(worlds);
    const bad = worlds[1]!;
    await sql`update forecasts set p_ppm = '{0,0,1000000}' where table_id = ${bad.tableId} and feature = 'next_color'`;
    const counts = await runAll(scoreAccuracy);
    expect(counts.map(({ scored: n, damaged = 0 }) => [n, damaged])).toEqual([
      [1, 0],
      [0, 1],
      [1, 0],
    ]);
  });
});
