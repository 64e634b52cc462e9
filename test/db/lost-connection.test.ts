import { beforeAll, describe, expect, it } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";

/** What the driver does to a process when it goes wrong: vitest fails a run in which anything is thrown and not caught. */
let sql: Sql;
let other: Sql;

beforeAll(async () => {
  const database = await createDatabase();
  sql = connect(database.url, { name: "test", max: 1 });
  other = connect(database.url, { name: "other", max: 1 });
  return async () => {
    await sql.end({ timeout: 1 });
    await other.end({ timeout: 1 });
    await database.drop();
  };
});

/** Ends the connection of a transaction, as a restart of the server does, and waits until it is gone. */
async function cut(pid: number): Promise<void> {
  await other`select pg_terminate_backend(${pid})`;
  await eventually(async () => {
    const left = await other`select from pg_stat_activity where pid = ${pid}`;
    return left.length === 0;
  });
}

async function pidOf(connection: Sql | Parameters<Parameters<Sql["begin"]>[1]>[0]): Promise<number> {
  const [row] = await connection<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return row?.pid ?? 0;
}

/** The first statement on the new connection may still be told of the old one's end. */
async function goesOn(): Promise<void> {
  await eventually(async () => (await pidOf(sql)) > 0);
}

describe("a transaction whose connection is lost", () => {
  it("while a statement runs: fails, and the pool goes on", async () => {
    const lost = sql.begin(async (transaction) => {
      const pid = await pidOf(transaction);
      await Promise.all([transaction`select pg_sleep(30)`, cut(pid)]);
    });
    await expect(lost).rejects.toThrow(/terminating connection|CONNECTION_CLOSED|ECONNRESET/);
    await goesOn();
  });

  it("between two statements: fails whatever its work still does, and the work is told", async () => {
    let told: unknown = null;
    let isOver = false;
    const lost = sql.begin(async (transaction) => {
      await cut(await pidOf(transaction));
      await eventually(async () => {
        try {
          await transaction`select 1`;
          return false;
        } catch (error) {
          told = error;
          return true;
        }
      });
      isOver = true;
      return "done all the same";
    });
    await expect(lost).rejects.toThrow(/terminating connection|CONNECTION_CLOSED|ECONNRESET/);
    await eventually(() => isOver);
    expect(told).toBeInstanceOf(Error);
    await goesOn();
  });

  it("touches nobody else's: what its work does later reaches no transaction that has the connection by then", async () => {
    await sql`create table touched (n integer)`;
    const gate = Promise.withResolvers<void>();
    let ended = false;
    const lost = sql.begin(async (transaction) => {
      await cut(await pidOf(transaction));
      await gate.promise;
      try {
        await transaction`insert into touched values (1)`;
      } finally {
        ended = true;
      }
    });
    await expect(lost).rejects.toThrow(/CONNECTION_CLOSED/);
    await goesOn();
    const next = sql.begin(async (transaction) => {
      await transaction`insert into touched values (2)`;
      gate.resolve();
      await eventually(() => ended);
      await transaction`select 1`;
      throw new Error("all of it is undone");
    });
    await expect(next).rejects.toThrow("all of it is undone");
    expect(await sql`select n from touched`).toEqual([]);
  });

  it("inside a savepoint: the savepoint fails too", async () => {
    let inner: unknown = null;
    const lost = sql.begin(async (transaction) => {
      await transaction
        .savepoint(async (savepoint) => {
          await Promise.all([savepoint`select pg_sleep(30)`, cut(await pidOf(savepoint))]);
        })
        .catch((error: unknown) => {
          inner = error;
          throw error;
        });
    });
    await expect(lost).rejects.toThrow(/terminating connection|CONNECTION_CLOSED|ECONNRESET/);
    await eventually(() => inner instanceof Error);
    await goesOn();
  });
});

describe("a transaction whose connection holds", () => {
  it("gives what its work gives, and is undone where that throws", async () => {
    await sql`create table kept (n integer)`;
    expect(await sql.begin(async (transaction) => transaction`insert into kept values (1) returning n`)).toEqual([
      { n: 1 },
    ]);
    const failed = sql.begin(async (transaction) => {
      await transaction`insert into kept values (2)`;
      throw new Error("thought better of it");
    });
    await expect(failed).rejects.toThrow("thought better of it");
    await sql.begin(async (transaction) => {
      const undone = transaction.savepoint(async (savepoint) => {
        await savepoint`insert into kept values (3)`;
        throw new Error("not this one");
      });
      await expect(undone).rejects.toThrow("not this one");
      await transaction`insert into kept values (4)`;
    });
    expect(await sql`select n from kept order by n`).toEqual([{ n: 1 }, { n: 4 }]);
  });

  it("takes options and a list of statements as the driver does", async () => {
    const both = await sql.begin("read only", (transaction) => [
      transaction`select 1 as n`,
      transaction`select 2 as n`,
    ]);
    expect(both).toEqual([[{ n: 1 }], [{ n: 2 }]]);
    await expect(sql.begin("read only", (transaction) => transaction`create table no (n integer)`)).rejects.toThrow(
      "read-only transaction",
    );
  });
});
