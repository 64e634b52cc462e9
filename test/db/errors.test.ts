import { once } from "node:events";
import type { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connect, type Sql, type Transaction } from "../../src/db/client.ts";
import { within } from "../../src/within.ts";
import { createDatabase } from "../support/database.ts";
import { copyText } from "../support/copy-text.ts";
import { eventually } from "../support/eventually.ts";
import { countLeaks } from "./leaks.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let other: Sql;
let sql: Sql;
beforeAll(async () => {
  database = await createDatabase();
  other = connect(database.url, { name: "other", max: 1 });
});
beforeEach(async () => {
  sql = connect(database.url, { name: "test", max: 1, use: "request" });
  await other`drop table if exists kept`;
  await other`create table kept (n integer)`;
});
afterEach(() => sql.end({ timeout: 1 }));
afterAll(async () => {
  await other.end({ timeout: 1 });
  await database.drop();
});

const caught = (promise: PromiseLike<unknown>) =>
  Promise.resolve(promise).then(
    () => null,
    (error: unknown) => error,
  );

async function isRunning(text: string): Promise<boolean> {
  const running = await other`
    select from pg_stat_activity
    where datname = current_database() and query = ${text} and state = 'active'`;
  return running.length > 0;
}

describe("a transaction", () => {
  it.each([
    ["a COPY from the client", (tx: Transaction) => tx`copy kept from stdin`.writable()],
    ["a COPY to the client", (tx: Transaction) => tx`copy (select generate_series(1, 1000000)) to stdout`.readable()],
    [
      "a cursor",
      async (tx: Transaction) => tx`select generate_series(1, 100)`.cursor(10)[Symbol.asyncIterator]().next(),
    ],
  ])("that leaves %s open fails with the error of its work, and the next statement runs", async (_, leaveOpen) => {
    const failed = sql.begin(async (tx) => {
      await tx`insert into kept values (1)`;
      await leaveOpen(tx);
      throw new Error("of the work");
    });
    await expect(failed).rejects.toThrow("of the work");
    expect(await sql`select n from kept`).toEqual([]);
    const unfinished = sql.begin(async (tx) => {
      await tx`insert into kept values (1)`;
      await leaveOpen(tx);
    });
    await expect(unfinished).rejects.toThrow("read to its end first");
    expect(await sql`select n from kept`).toEqual([]);
  });

  it.each([
    [
      "cursor",
      async (tx: Transaction) => {
        for await (const _ of tx`select 1 / (n - 2) from generate_series(1, 3) n`.cursor(1));
      },
    ],
    ["COPY from the client", async (tx: Transaction) => copyText(await tx`copy kept from stdin`.writable(), "x\n")],
    [
      "COPY to the client",
      async (tx: Transaction) => {
        for await (const _ of await tx`copy (select 1 / 0) to stdout`.readable());
      },
    ],
    ["statement that nothing waits for", (tx: Transaction) => void tx`select 1 / 0`.catch(() => undefined)],
  ])("fails when a %s failed, although its work caught the error", async (_, fail) => {
    const swallowed = sql.begin(async (tx) => {
      await tx`insert into kept values (1)`;
      await Promise.resolve(fail(tx)).catch(() => undefined);
    });
    await expect(swallowed).rejects.toThrow();
    expect(await sql`select n from kept`).toEqual([]);
    expect(await sql.begin((tx) => tx`select 1 as n`)).toEqual([{ n: 1 }]);
  });

  it("sends no statement after its COMMIT, which could run in another transaction", async () => {
    const late = Promise.withResolvers<unknown>();
    await sql.begin(async (tx) => {
      await tx`select 1`;
      setImmediate(() => late.resolve(caught(tx`insert into kept values (1)`)));
    });
    expect(await late.promise).toMatchObject({ message: expect.stringContaining("has ended") as string });
    expect(await sql`select n from kept`).toEqual([]);
  });

  it("fails at its deadline and frees its connection, although its work waits for something else", async () => {
    const pool = connect(database.url, { name: "test", max: 1, use: "meter" });
    const hung = Promise.withResolvers<void>();
    const late = caught(pool.begin(() => hung.promise));
    expect(await late).toMatchObject({ message: "a transaction did not end within 6000 ms" });
    expect(await pool`select 1 as n`).toEqual([{ n: 1 }]);
    hung.resolve();
    await pool.end({ timeout: 1 });
  });
});

describe("a pool", () => {
  it("keeps nothing of a statement that has ended", async () => {
    expect(await countLeaks({ databaseUrl: database.url, what: "statements" })).toBeLessThan(100);
  });

  it("sends no cancel request after the statement ended, when two callers cancelled it", async () => {
    const [leaving, second] = [new AbortController(), new AbortController()];
    const ended = caught(sql.until(leaving.signal).until(second.signal)`select pg_sleep(61)`);
    await eventually(() => isRunning("select pg_sleep(61)"));
    leaving.abort();
    second.abort();
    expect(await ended).toMatchObject({ code: "57014" });
    expect(await caught(sql`select pg_sleep(1.2)`)).toBeNull();
  });

  it("cancels a cursor's statement when the caller leaves", async () => {
    const leaving = new AbortController();
    const read = async () => {
      for await (const _ of sql.until(leaving.signal)`select pg_sleep(62)`.cursor(1));
    };
    const ended = caught(read());
    await eventually(() => isRunning("select pg_sleep(62)"));
    leaving.abort();
    expect(await ended).toMatchObject({ message: "canceling statement due to user request" });
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }]);
  });

  it("reads no more rows of a cursor when the caller has left", async () => {
    const leaving = new AbortController();
    const read = async () => {
      for await (const _ of sql.until(leaving.signal)`select generate_series(1, 9)`.cursor(1)) leaving.abort();
    };
    expect(await caught(read())).toMatchObject({ name: "AbortError" });
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }]);
  });

  it("gives back the connection of a cursor that is left when the connection is lost", async () => {
    const read = async () => {
      for await (const [row] of sql`select pg_backend_pid() as pid from generate_series(1, 9)`.cursor(1)) {
        await other`select pg_terminate_backend(${row?.["pid"]})`;
        break;
      }
    };
    await caught(read());
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }]);
  });

  it("closes in time while a transaction waits for something else", async () => {
    const hung = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const transaction = caught(
      sql.begin(async () => {
        begun.resolve();
        await hung.promise;
      }),
    );
    await begun.promise;
    await within(20_000, "the end of a pool", sql.end({ timeout: 0.1 })).finally(() => hung.resolve());
    expect(await transaction).toMatchObject({ code: "CONNECTION_LOST" });
  });

  it("does not hand out a connection that the server is closing", async () => {
    const ended = caught(sql`select pg_terminate_backend(pg_backend_pid())`);
    const next = sql`select 1 as n`;
    expect(await Promise.all([ended, next])).toMatchObject([{ code: "57P01" }, [{ n: 1 }]]);
  });

  it("names the statement that failed, since the stack of its error does not lead to it", async () => {
    const error = (await caught(sql`select ${1} / 0`)) as Error;
    expect(error.stack).toContain("in the statement: select $1 / 0");
  });

  it("names why a connection was lost between two statements", async () => {
    const lost = await caught(
      sql.begin(async (tx) => {
        const [row] = await tx`select pg_backend_pid() as pid`;
        await other`select pg_terminate_backend(${row?.["pid"]})`;
        await eventually(
          async () => (await other`select from pg_stat_activity where pid = ${row?.["pid"]}`).length === 0,
        );
        await new Promise(setImmediate); // the server's last message is read before the next statement is sent
        await tx`select 1`;
      }),
    );
    expect(lost).toMatchObject({ code: "CONNECTION_LOST", cause: { code: "57P01" } });
  });
});

describe("a COPY that the server refuses", () => {
  it("leaves the connection to the statement that runs next", async () => {
    const copy = await sql`copy missing to stdout`.readable();
    const next = sql`select pg_sleep(0.3)`.then(() => "slept");
    const read = async (stream: Readable) => {
      for await (const _ of stream);
    };
    expect(await caught(read(copy))).toMatchObject({ code: "42P01" });
    expect(await next).toBe("slept");
  });

  it("rejects a writer that writes later", async () => {
    const copy = await sql`copy missing from stdin`.writable();
    await sql`select 1`;
    expect(await caught(copyText(copy, "1\n"))).toMatchObject({ code: "42P01" });
    const second = await sql`copy kept from stdin`.writable();
    second.write("x\n");
    second.write(Buffer.alloc(100_000, "1\n"));
    await once(second, "error");
    expect(await caught(copyText(second, "1\n"))).toMatchObject({ code: "22P02" });
    expect(await caught(finished(second))).toMatchObject({ code: "22P02" });
  });
});

describe("a bound value", () => {
  it("is refused when an element of an array is undefined or an object", async () => {
    const elements = [1, undefined] as number[];
    await expect(sql`select ${elements}::integer[]`).rejects.toThrow("found undefined");
    const objects = [[sql.json({ a: 1 })]] as unknown as string[];
    await expect(sql`select ${objects}::jsonb[]`).rejects.toThrow("found a value of type object");
  });

  it("never becomes part of the statement's text, whatever its shape", async () => {
    const shaped = { template: { strings: ["1; drop table kept"], values: [] } } as unknown as string;
    await expect(sql`select ${shaped}`).rejects.toThrow("expected a value that can be bound");
  });

  it("is read back as it was written", async () => {
    const elements = ["", "NULL", "null", null, 'a"b', "a\\b", "{}", "a,b", " x ", "\n", "'", "é"];
    const [row] = await sql`
      select
        ${elements}::text[] as elements,
        ${[Buffer.from([0, 92, 34, 255]), null]}::bytea[] as bytes,
        ${[true, null, false]}::boolean[] as flags,
        ${[-(2n ** 63n), null]}::bigint[] as bigints,
        ${sql.json([1, "a", null, [{}]])} as list,
        ${sql.json(null)} as "jsonNull",
        ${[
          ["a", null],
          ["{", "}"],
        ]}::text[] as nested,
        ${[]}::text[] as empty`;
    expect(row).toEqual({
      elements,
      bytes: [Buffer.from([0, 92, 34, 255]), null],
      flags: [true, null, false],
      bigints: [-(2n ** 63n), null],
      list: [1, "a", null, [{}]],
      jsonNull: null,
      nested: [
        ["a", null],
        ["{", "}"],
      ],
      empty: [],
    });
  });
});
