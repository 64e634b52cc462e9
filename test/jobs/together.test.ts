import { describe, expect, test } from "vitest";
import issueForecasts from "../../jobs/issue-forecasts.ts";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import scoreAccuracy from "../../jobs/score-accuracy.ts";
import type { Sql, Transaction } from "../../src/db/client.ts";
import { lockAccuracy } from "../../src/forecasts/score-store.ts";
import { createWorld, type World } from "../forecasts/world.ts";
import { testContext, type TestContext } from "../support/context.ts";
import { makeItem, makePayload } from "../support/make.ts";

type Counts = Record<string, number>;

/** Houses with a table each, all polled, and a way to run a job of each over one pool of connections. */
async function makeHouses(count: number) {
  const worlds: World[] = [];
  for (let n = 0; n < count; n++) worlds.push(await createWorld({ connections: 6 }));
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

/** Runs `work` while another transaction holds something. */
async function whileHeld(sql: Sql, hold: (tx: Transaction) => Promise<unknown>, work: () => Promise<void>) {
  await sql.begin(async (tx) => {
    await hold(tx);
    await work();
  });
}

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
    const { sql, worlds, run } = await makeHouses(2);
    const [free, held] = worlds as [World, World];
    for (const { tableId } of worlds) await makePayload(sql, { id: tableId }, answer(1, [2, 1]));
    let waiting: Promise<Counts> | undefined;
    await whileHeld(
      sql,
      (tx) => tx`select from tables where id = ${held.tableId} for no key update`,
      async () => {
        waiting = run(normalizeRounds, held);
        expect(await run(normalizeRounds, free)).toMatchObject({ rounds: 2 });
        expect(await isOver(waiting)).toBe(false);
      },
    );
    expect(await waiting).toMatchObject({ rounds: 2 });
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
    const { sql, worlds, run } = await makeHouses(2);
    const [free, held] = worlds as [World, World];
    await play(worlds);
    let waiting: Promise<Counts> | undefined;
    await whileHeld(
      sql,
      (tx) => tx`select from tables where id = ${held.tableId} for no key update`,
      async () => {
        waiting = run(issueForecasts, held);
        expect(await run(issueForecasts, free)).toMatchObject({ issued: 1 });
        expect(await isOver(waiting)).toBe(false);
      },
    );
    expect(await waiting).toMatchObject({ issued: 1 });
  });

  test("are issued for every table where they are more than a transaction takes", async () => {
    const tables = Array.from({ length: 60 }, () => ({}));
    const first = await createWorld({ tables, connections: 6 });
    const second = await createWorld({ tables });
    await first.sql`update houses set enabled = true where id = ${first.house}`;
    await first.sql`update tables set enabled = true where house_id = ${first.house}`;
    for (const world of [first, second])
      for (const tableId of world.tableIds) await world.play([{ hundredths: 150, absentAgo: 1 }], tableId);
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

  test("wait for none of which somebody else sums a table, and it is scored once that is over", async () => {
    const { sql, worlds, run } = await makeHouses(2);
    const [free, held] = worlds as [World, World];
    await scored(worlds);
    let waiting: Promise<Counts> | undefined;
    await whileHeld(
      sql,
      (tx) => lockAccuracy(tx, [held.tableId]),
      async () => {
        waiting = run(scoreAccuracy, held);
        expect(await run(scoreAccuracy, free)).toMatchObject({ scored: 1 });
        expect(await isOver(waiting)).toBe(false);
      },
    );
    expect(await waiting).toMatchObject({ scored: 1 });
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
