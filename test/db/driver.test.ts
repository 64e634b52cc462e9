import { once } from "node:events";
import { createConnection, createServer, type AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { copyField, copyLines } from "../../src/db/copy.ts";
import { postgres } from "../../src/db/driver.ts";
import { eventually } from "../support/eventually.ts";
import { createDatabase } from "../support/database.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let other: ReturnType<typeof postgres>;
beforeAll(async () => {
  database = await createDatabase();
  other = postgres(database.url, { max: 1 });
});
afterAll(async () => {
  await other.end();
  await database.drop();
});

const cut = (pid: number) => other`select pg_terminate_backend(${pid}, 5000)`;

describe("the repaired driver", () => {
  // unrepaired it throws where nobody can catch it, which fails the whole run, and the next connection never says a word
  it("refuses a statement on a connection that ended, and its pool goes on", async () => {
    const closed = Promise.withResolvers<void>();
    const sql = postgres(database.url, { max: 1, connect_timeout: 5, onclose: () => closed.resolve() });
    try {
      const reserved = await sql.reserve();
      const [row] = await reserved<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await cut(row?.pid ?? 0);
      await closed.promise;
      await expect(reserved`select 1`).rejects.toThrow("CONNECTION_CLOSED");
      expect(await sql`select 42 as n`).toEqual([{ n: 42 }]);
    } finally {
      await sql.end({ timeout: 1 });
    }
  });

  it("does not blame the first statement on a new connection for the end of the old one", async () => {
    const sql = postgres(database.url, { max: 1 });
    try {
      const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
      const running = sql`select pg_sleep(30)`;
      await Promise.all([
        expect(running).rejects.toThrow(/terminating connection|CONNECTION_CLOSED|ECONNRESET/),
        cut(row?.pid ?? 0),
      ]);
      expect(await sql`select 42 as n`).toEqual([{ n: 42 }]);
    } finally {
      await sql.end({ timeout: 1 });
    }
  });

  // unrepaired it rejects where nobody can catch it, which fails the whole run
  it("asks again for the types of arrays where the connection ended meanwhile, and the statement is answered", async () => {
    const through = new URL(database.url);
    let cuts = 0;
    const proxy = createServer((client) => {
      const server = createConnection({ host: through.hostname, port: Number(target.port) });
      for (const side of [client, server])
        side.on("error", () => undefined).on("close", () => (client.destroy(), server.destroy()));
      server.pipe(client);
      client.on("data", (words) => {
        if (cuts === 0 && words.includes("typarray")) {
          cuts += 1;
          client.destroy();
        } else server.write(words);
      });
    });
    const target = new URL(database.url);
    await once(proxy.listen(0, "127.0.0.1"), "listening");
    through.port = String((proxy.address() as AddressInfo).port);
    const sql = postgres(through.href, { max: 1, connect_timeout: 5, backoff: () => 0.01 });
    try {
      expect(await sql`select ${[1, 2]}::integer[] as ns`).toEqual([{ ns: [1, 2] }]);
      expect(cuts).toBe(1);
    } finally {
      await sql.end({ timeout: 1 });
      proxy.close();
    }
  });

  // unrepaired nobody hears of it: the transaction stays open and the statement after it waits for ever
  it("tells what a COPY is refused for at its end, and its transaction is rolled back", async () => {
    const sql = postgres(database.url, { max: 1 });
    try {
      await sql`create table copied (n integer primary key)`;
      const copyTwice = sql.begin(async (tx) => {
        await tx`insert into copied values (1)`;
        await copyLines(await tx`copy copied from stdin`.writable(), "2\n2\n");
      });
      await expect(copyTwice).rejects.toMatchObject({ code: "23505" });
      await copyLines(await sql`copy copied from stdin`.writable(), `3\n${copyField("4")}\n`);
      expect(await sql`select n from copied order by n`).toEqual([{ n: 3 }, { n: 4 }]);
    } finally {
      await sql.end({ timeout: 1 });
    }
  });

  it("ends a COPY whose connection is lost, and its pool goes on", async () => {
    const sql = postgres(database.url, { max: 1, connect_timeout: 5, backoff: () => 0.01 });
    try {
      const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await sql`create table cut_short (n integer)`;
      const copy = await sql`copy cut_short from stdin`.writable();
      const ended = once(copy, "error");
      await cut(row?.pid ?? 0);
      expect(await ended).toEqual([
        expect.objectContaining({ message: expect.stringMatching(/terminat|CLOSED|ECONNRESET/) }),
      ]);
      expect(await sql`select count(*)::integer as n from cut_short`).toEqual([{ n: 0 }]);
    } finally {
      await sql.end({ timeout: 1 });
    }
  });

  // unrepaired its backend stays, with its locks, for as long as the process lives
  it("ends the connection of a COPY that is not read to its end, and its pool goes on", async () => {
    const sql = postgres(database.url, { max: 1, connect_timeout: 5, backoff: () => 0.01 });
    const outside = postgres(database.url, { max: 1 });
    try {
      await sql`create table half_read as select n from generate_series(1, 2000000) n`;
      const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
      for await (const _ of await sql`copy half_read to stdout`.readable()) break;
      // what is sent before the connection has ended ends with it
      await eventually(() =>
        sql`select 1 as n`.then(
          (rows) => rows.length === 1,
          (error: NodeJS.ErrnoException) => {
            expect(error.code).toBe("CONNECTION_CLOSED");
            return false;
          },
        ),
      );
      await eventually(async () => {
        const left = await outside`select from pg_stat_activity where pid = ${row?.pid ?? 0}`;
        return left.length === 0;
      });
    } finally {
      await sql.end({ timeout: 1 });
      await outside.end({ timeout: 1 });
    }
  });
});
