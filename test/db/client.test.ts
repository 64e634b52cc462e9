import { once } from "node:events";
import { createConnection, createServer, type AddressInfo, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Queryable, type Sql, type Transaction } from "../../src/db/client.ts";
import { ConnectionLostError, isConnectionError, violatedConstraint } from "../../src/db/errors.ts";
import { openTestDatabase } from "../support/database.ts";
import { copyText } from "../support/copy-text.ts";
import { eventually } from "../support/eventually.ts";

const { sql, url: databaseUrl } = await openTestDatabase({ max: 1 });
let other: Sql;

beforeAll(async () => {
  other = connect(databaseUrl, { name: "other", max: 1 });
});

afterAll(async () => {
  await other.end();
});

async function pidOf(connection: Queryable): Promise<number> {
  const [row] = await connection<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return row?.pid ?? 0;
}

/** Ends a connection as a restart of the server does, and waits until it is gone. */
async function cut(pid: number): Promise<void> {
  await other`select pg_terminate_backend(${pid})`;
  await eventually(async () => (await other`select from pg_stat_activity where pid = ${pid}`).length === 0);
}

/** A lost connection that was idle shows at the next statement at the latest. */
async function poolWorks(pool: Sql): Promise<void> {
  await eventually(() =>
    pidOf(pool).then(
      (pid) => pid > 0,
      (error: unknown) => {
        expect(isConnectionError(error)).toBe(true);
        return false;
      },
    ),
  );
}

describe("a statement", () => {
  it("binds values of every kind and reads them back", async () => {
    const at = new Date("2026-01-02T03:04:05.678Z");
    const [row] = await sql`
      select
        ${"it's"}::text as text,
        ${7}::integer as number,
        ${2n ** 60n} as bigint,
        ${true} as yes,
        ${null}::text as nothing,
        ${at} as at,
        ${at} - interval '1 day' as "dayBefore",
        ${Buffer.from([0, 255])} as bytes,
        ${sql.json({ a: ["\u0041", null] })} as json,
        ${[1, 2]}::integer[] as numbers,
        ${["a,b", 'c"d', "NULL", "\\"]}::text[] as texts,
        ${[at]}::timestamptz[] as times,
        ${[1n, 2n]}::bigint[] as bigints,
        array[[1, 2], [3, 4]]::bigint[] as nested,
        array['one']::name[] as names,
        1.50::numeric as exact,
        date '2026-01-02' as date,
        interval '90 minutes' as interval`;
    expect(row).toEqual({
      text: "it's",
      number: 7,
      bigint: 2n ** 60n,
      yes: true,
      nothing: null,
      at,
      dayBefore: new Date("2026-01-01T03:04:05.678Z"),
      bytes: Buffer.from([0, 255]),
      json: { a: ["A", null] },
      numbers: [1, 2],
      texts: ["a,b", 'c"d', "NULL", "\\"],
      times: [at],
      bigints: [1n, 2n],
      nested: [
        [1n, 2n],
        [3n, 4n],
      ],
      names: ["one"],
      exact: "1.50",
      date: new Date("2026-01-02T00:00:00Z"),
      interval: "01:30:00",
    });
  });

  it("is put together from fragments and identifiers, whose values stay bound", async () => {
    const condition = (n: number) => sql`n > ${n}`;
    const rows = await sql<{ 'a"b': number }[]>`
      select n as ${sql('a"b')} from generate_series(1, 9) n where ${condition(5)} and ${condition(7)}`;
    expect(rows).toEqual([{ 'a"b': 8 }, { 'a"b': 9 }]);
    expect(rows.count).toBe(2);
  });

  it("is refused with the place of a value that is undefined", async () => {
    const missing = ({} as Record<string, string>)["id"] as string;
    await expect(sql`select ${1}, ${missing}`).rejects.toThrow("found undefined after: …select $1,");
  });

  it("is not sent before it is waited for, and is sent once", async () => {
    await sql`create table sent (n integer)`;
    const waiting = sql`insert into sent values (1)`;
    expect(await other`select from sent`).toHaveLength(0);
    await waiting;
    await waiting;
    expect(await other`select from sent`).toHaveLength(1);
  });

  it("reads with a plan that fits after the table was changed", async () => {
    await other`create table changed (a integer)`;
    const look = () => sql`select * from changed`;
    expect(await look()).toEqual([]);
    await other`alter table changed add column b integer`;
    await other`insert into changed values (1, 2)`;
    expect(await look()).toEqual([{ a: 1, b: 2 }]);
  });

  it("is ended at the server when it is cancelled", async () => {
    const leaving = new AbortController();
    const ended = sql.until(leaving.signal)`select pg_sleep(60)`.catch((error: unknown) => error);
    await eventually(async () => {
      const running = await other`
        select from pg_stat_activity
        where datname = current_database() and query = 'select pg_sleep(60)' and state = 'active'`;
      return running.length > 0;
    });
    leaving.abort();
    expect(await ended).toMatchObject({ code: "57014" });
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }]);
  });

  it("names the constraint that refused it", async () => {
    await sql`create table bounded (n integer constraint n_is_small check (n < 10))`;
    const error: unknown = await sql`insert into bounded values (10)`.catch((thrown: unknown) => thrown);
    expect(violatedConstraint(error)).toBe("n_is_small");
    expect(violatedConstraint(new Error("other"))).toBeNull();
  });

  it("reads rows some at a time", async () => {
    const sizes: number[] = [];
    for await (const rows of sql`select n from generate_series(1, 25) n`.cursor(10)) sizes.push(rows.length);
    expect(sizes).toEqual([10, 10, 5]);
    for await (const rows of sql`select n from generate_series(1, 25) n`.cursor(10)) {
      expect(rows).toHaveLength(10);
      break;
    }
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }]);
  });
});

describe("a transaction", () => {
  it("gives what its work gives, and is rolled back when that throws", async () => {
    await sql`create table kept (n integer)`;
    expect(await sql.begin(async (tx) => tx`insert into kept values (1) returning n`)).toEqual([{ n: 1 }]);
    const failed = sql.begin(async (tx) => {
      await tx`insert into kept values (2)`;
      throw new Error("changed my mind");
    });
    await expect(failed).rejects.toThrow("changed my mind");
    await sql.begin(async (tx) => {
      const undone = tx.savepoint(async (inner) => {
        await inner`insert into kept values (3)`;
        throw new Error("not this one");
      });
      await expect(undone).rejects.toThrow("not this one");
      await tx`insert into kept values (4)`;
    });
    expect(await sql`select n from kept order by n`).toEqual([{ n: 1 }, { n: 4 }]);
  });

  it("fails when one of its statements failed, although its work caught the error", async () => {
    const swallowed = sql.begin(async (tx) => {
      await tx`select 1 / 0`.catch(() => undefined);
    });
    await expect(swallowed).rejects.toThrow("division by zero");
  });

  it("takes a mode and a list of statements", async () => {
    const both = await sql.begin("read only", (tx) => [tx`select 1 as n`, tx`select 2 as n`]);
    expect(both).toEqual([[{ n: 1 }], [{ n: 2 }]]);
    await expect(sql.begin("read only", (tx) => tx`create table no (n integer)`)).rejects.toThrow("read-only");
  });

  it("refuses statements after its end", async () => {
    let leaked: Transaction | null = null;
    await sql.begin(async (tx) => {
      leaked = tx;
      await tx`select 1`;
    });
    await expect(leaked!`select 1`).rejects.toThrow("this one has ended");
  });

  it("fails when its connection is lost while a statement runs", async () => {
    const lost = sql.begin(async (tx) => {
      const pid = await pidOf(tx);
      await Promise.all([tx`select pg_sleep(30)`, cut(pid)]);
    });
    await expect(lost).rejects.toThrow(/terminating connection|connection to PostgreSQL was lost/);
    await poolWorks(sql);
  });

  it("fails when its connection is lost between two statements, and refuses every later one", async () => {
    await sql`create table touched (n integer)`;
    const gate = Promise.withResolvers<void>();
    const late = Promise.withResolvers<unknown>();
    const lost = sql.begin(async (tx) => {
      await cut(await pidOf(tx));
      await gate.promise;
      await tx`insert into touched values (1)`.catch((error: unknown) => {
        late.resolve(error);
        throw error;
      });
    });
    const loss = lost.catch((error: unknown) => error);
    const next = connect(databaseUrl, { name: "next", max: 1 });
    const rolledBack = next.begin(async (tx) => {
      await tx`insert into touched values (2)`;
      gate.resolve();
      expect(await late.promise).toBeInstanceOf(ConnectionLostError);
      throw new Error("rolled back");
    });
    await expect(rolledBack).rejects.toThrow("rolled back");
    expect(await loss).toMatchObject({ message: "the connection to PostgreSQL was lost" });
    await next.end();
    await poolWorks(sql);
    expect(await sql`select n from touched`).toEqual([]);
  });

  it("rejects a savepoint whose connection is lost", async () => {
    let inner: unknown = null;
    const lost = sql.begin(async (tx) => {
      await tx
        .savepoint(async (savepoint) => {
          await Promise.all([savepoint`select pg_sleep(30)`, cut(await pidOf(savepoint))]);
        })
        .catch((error: unknown) => {
          inner = error;
          throw error;
        });
    });
    await expect(lost).rejects.toThrow(/terminating connection|connection to PostgreSQL was lost/);
    expect(inner).toBeInstanceOf(Error);
    await poolWorks(sql);
  });
});

describe("a COPY", () => {
  it("rejects with what the server refuses at its end, and its transaction is rolled back", async () => {
    await sql`create table copied (n integer primary key)`;
    const copyTwice = sql.begin(async (tx) => {
      await tx`insert into copied values (1)`;
      await copyText(await tx`copy copied from stdin`.writable(), "2\n2\n");
    });
    await expect(copyTwice).rejects.toMatchObject({ code: "23505" });
    await copyText(await sql`copy copied from stdin`.writable(), "3\n4\n");
    expect(await sql`select n from copied order by n`).toEqual([{ n: 3 }, { n: 4 }]);
  });

  it("ends with its connection", async () => {
    const pid = await pidOf(sql);
    await sql`create table cut_short (n integer)`;
    const copy = await sql`copy cut_short from stdin`.writable();
    const ended = once(copy, "error");
    await cut(pid);
    const [error] = (await ended) as [Error];
    expect(error.message).toMatch(/terminat|ECONNRESET/);
    await poolWorks(sql);
    expect(await sql`select n from cut_short`).toEqual([]);
  });

  it("that is not read to its end costs its connection, and the server's locks with it", async () => {
    await sql`create table half_read as select n from generate_series(1, 2000000) n`;
    const pid = await pidOf(sql);
    for await (const _ of await sql`copy half_read to stdout`.readable()) break;
    await poolWorks(sql);
    await expect
      .poll(() => other`select pid from pg_stat_activity where pid = ${pid}`, { timeout: 10_000 })
      .toHaveLength(0);
  });

  it("is read whole", async () => {
    const chunks: Buffer[] = [];
    for await (const chunk of await sql`copy (select generate_series(1, 3)) to stdout`.readable()) {
      chunks.push(chunk as Buffer);
    }
    expect(Buffer.concat(chunks).toString()).toBe("1\n2\n3\n");
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }]);
  });
});

/** A way to the database that can stop forwarding what is open, without closing anything. */
async function openWay() {
  const target = new URL(databaseUrl);
  const ways = new Set<{ near: Socket; far: Socket }>();
  const server = createServer((near) => {
    const far = createConnection({ host: target.hostname, port: Number(target.port) });
    const way = { near, far };
    ways.add(way);
    for (const side of [near, far]) {
      side.on("error", () => undefined).on("close", () => (near.destroy(), far.destroy(), ways.delete(way)));
    }
    near.pipe(far).pipe(near);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = new URL(databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    silence() {
      for (const { near, far } of ways) {
        near.unpipe(far);
        far.unpipe(near);
        near.pause();
      }
      return ways.size;
    },
    close() {
      for (const side of [...ways].flatMap(({ near, far }) => [near, far])) side.destroy();
      server.close();
    },
  };
}

describe("when connections go silent without a reset", () => {
  it("a statement and a transaction are rejected, and the next ones use new connections", async () => {
    const way = await openWay();
    const pool = connect(way.url, { name: "silent", max: 4, use: "request" });
    try {
      await Promise.all(Array.from({ length: 4 }, () => pool`select pg_sleep(0.1)`));
      expect(way.silence()).toBe(4);
      const [statement, transaction] = await Promise.allSettled([pool`select 1`, pool.begin((tx) => tx`select 1`)]);
      for (const result of [statement, transaction]) {
        expect(result).toMatchObject({ status: "rejected", reason: { code: "CONNECTION_LOST" } });
      }
      // two more connections went silent: a caller who waited for one would be rejected too
      const rows = await Promise.all(Array.from({ length: 4 }, () => pool`select 1 as n`));
      expect(rows).toEqual(Array.from({ length: 4 }, () => [{ n: 1 }]));
    } finally {
      await pool.end({ timeout: 1 });
      way.close();
    }
  });

  it("a COPY in each direction is rejected", async () => {
    const way = await openWay();
    const pool = connect(way.url, { name: "silent", max: 2, use: "request" });
    try {
      await other`create table silent_copy (n integer)`;
      const writable = await pool`copy silent_copy from stdin`.writable();
      const readable = await pool`copy (select generate_series(1, 3000000)) to stdout`.readable();
      way.silence();
      const read = async () => {
        for await (const _ of readable);
      };
      const refused = { status: "rejected", reason: { message: expect.stringContaining("no progress") as string } };
      expect(await Promise.allSettled([copyText(writable, "1\n"), read()])).toMatchObject([refused, refused]);
      expect(await pool`select 1 as n`).toEqual([{ n: 1 }]);
    } finally {
      await pool.end({ timeout: 1 });
      way.close();
    }
  });

  it("a pool closes in time", async () => {
    const way = await openWay();
    const pool = connect(way.url, { name: "silent", max: 2, use: "long" });
    await pool`select 1`;
    way.silence();
    const waiting = pool`select 1`.catch((error: unknown) => error);
    await pool.end({ timeout: 0.1 });
    expect(await waiting).toMatchObject({ cause: { message: expect.stringContaining("closed") as string } });
    await expect(pool`select 1`).rejects.toThrow("closed");
    way.close();
  });
});

it("an unreachable server is a connection error that names the cause", async () => {
  const gone = connect("postgres://nobody@127.0.0.1:9/none", { name: "gone" });
  const error: unknown = await gone`select 1`.catch((thrown: unknown) => thrown);
  expect(isConnectionError(error)).toBe(true);
  expect(error).toMatchObject({ cause: { code: "ECONNREFUSED" } });
  await gone.end();
});
