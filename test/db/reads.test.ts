import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { boundReads, TooManyReadsError } from "../../src/db/reads.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";

const LIMITS = { atOnce: 2, waiting: 2 };
const NEVER = new AbortController().signal;

const { sql, url } = await openTestDatabase({ max: 2 });
let pool: Sql;

beforeAll(async () => {
  pool = connect(url, { name: "reads", max: 1 });
});
afterAll(async () => {
  await pool.end();
});

/** Sessions of the pool that run a statement or hold a transaction open. */
async function busy(): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::integer as n
    from pg_stat_activity
    where datname = current_database()
      and application_name = 'roundhouse reads'
      and state <> 'idle'`;
  return row?.n ?? 0;
}
const sleep = (on: Sql) => on`select pg_sleep(600)`;

/** A read that takes until it is released. */
function held(): { read: () => Promise<string>; begun: Promise<void>; letGo: () => void } {
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const read = async () => {
    begun.resolve();
    await gate.promise;
    return "read";
  };
  return { read, begun: begun.promise, letGo: gate.resolve };
}

describe("a bounded read", () => {
  test("gives what its statements return, with parts of statements, names and transactions", async () => {
    const reads = boundReads(pool, LIMITS);
    const found = await reads(NEVER, async (on) => {
      const part = on`where n > ${1}`;
      const rows = await on<{ n: number }[]>`select n from generate_series(1, 3) n ${part} order by ${on("n")}`;
      const inside = await on.begin("read only", async (tx) => {
        const [row] = await tx<{ n: number }[]>`select 7 as n`;
        return row?.n;
      });
      return [...rows.map(({ n }) => n), inside];
    });
    expect(found).toEqual([2, 3, 7]);
    await expect(reads(NEVER, (on) => on`select 1 / 0`)).rejects.toThrow("division by zero");
  });

  test("whose signal aborts fails with the signal's reason, runs nothing at the server and frees its connection", async () => {
    const reads = boundReads(pool, LIMITS);
    const leaving = new AbortController();
    const reading = reads(leaving.signal, async (on) => {
      await sleep(on);
    });
    const failed = reading.catch((error: unknown) => error);
    await eventually(async () => expect(await busy()).toBe(1));
    leaving.abort(new Error("left"));
    expect(await failed).toMatchObject({ message: "left" });
    await eventually(async () => expect(await busy()).toBe(0));
    expect(await reads(NEVER, (on) => on`select 5 as five`)).toEqual([{ five: 5 }]);
  });

  test("whose signal aborts inside a transaction leaves no transaction open, and sends nothing after that", async () => {
    const reads = boundReads(pool, LIMITS);
    const leaving = new AbortController();
    const later: unknown[] = [];
    const reading = reads(leaving.signal, (on) =>
      on.begin(async (tx) => {
        await tx`select pg_sleep(600)`.catch((error: unknown) => later.push(error));
        await tx`create table never_made (n integer)`;
      }),
    );
    const failed = reading.catch((error: unknown) => error);
    await eventually(async () => expect(await busy()).toBe(1));
    leaving.abort(new Error("left"));
    expect(await failed).toMatchObject({ message: "left" });
    await eventually(async () => expect(await busy()).toBe(0));
    const [made] = await sql`select to_regclass('never_made') as made`;
    expect([made?.["made"], later.length]).toEqual([null, 1]);
  });

  test("waits in order behind earlier ones; beyond the limit it is refused", async () => {
    const reads = boundReads(pool, LIMITS);
    const [one, two] = [held(), held()];
    const order: string[] = [];
    const running = [reads(NEVER, one.read), reads(NEVER, two.read)];
    await Promise.all([one.begun, two.begun]);
    const waiting = ["third", "fourth"].map((name) => reads(NEVER, () => Promise.resolve(order.push(name))));
    await expect(reads(NEVER, () => Promise.resolve())).rejects.toThrow(TooManyReadsError);
    expect(order).toEqual([]);
    one.letGo();
    await Promise.all(waiting);
    expect(order).toEqual(["third", "fourth"]);
    two.letGo();
    expect(await Promise.all(running)).toEqual(["read", "read"]);
  });

  test("whose signal aborts while it waits is never begun, and makes room for another", async () => {
    const reads = boundReads(pool, LIMITS);
    const [one, two] = [held(), held()];
    const running = [reads(NEVER, one.read), reads(NEVER, two.read)];
    await Promise.all([one.begun, two.begun]);
    const leaving = new AbortController();
    let begun = 0;
    const count = () => Promise.resolve((begun += 1));
    const left = reads(leaving.signal, count);
    const stays = reads(NEVER, count);
    const failed = left.catch((error: unknown) => error);
    leaving.abort(new Error("left"));
    expect(await failed).toMatchObject({ message: "left" });
    const takesItsPlace = reads(NEVER, count);
    one.letGo();
    two.letGo();
    await Promise.all([...running, stays, takesItsPlace]);
    expect(begun).toBe(2);
  });

  test("that does not end when it is cancelled keeps its place, so that no more than the limit run", async () => {
    const reads = boundReads(pool, { atOnce: 1, waiting: 1 });
    const one = held();
    const leaving = new AbortController();
    const left = reads(leaving.signal, one.read);
    const failed = left.catch((error: unknown) => error);
    await one.begun;
    leaving.abort(new Error("left"));
    expect(await failed).toMatchObject({ message: "left" });
    let isBegun = false;
    const next = reads(NEVER, () => Promise.resolve((isBegun = true)));
    await pool`select 1`;
    expect(isBegun).toBe(false);
    one.letGo();
    expect(await next).toBe(true);
  });
});
