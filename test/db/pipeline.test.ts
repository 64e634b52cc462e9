import { once } from "node:events";
import { createConnection, createServer, type AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, openPipeline, type Pipeline, type Queryable, type Sql } from "../../src/db/client.ts";
import { isConnectionError } from "../../src/db/errors.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let pipeline: Pipeline;
let other: Sql;

beforeAll(async () => {
  database = await createDatabase();
  pipeline = openPipeline(database.url, { name: "pipeline", max: 1 });
  other = connect(database.url, { name: "other", max: 1 });
  await other`create table kept (n integer constraint n_is_kept_once primary key)`;
  await other`create table child (n integer constraint child_has_a_parent references kept deferrable initially deferred)`;
});

afterAll(async () => {
  await pipeline.end({ timeout: 1 });
  await other.end({ timeout: 1 });
  await database.drop();
});

async function pidOf(connection: Queryable): Promise<number> {
  const [row] = await connection<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return row?.pid ?? 0;
}

const insert = (n: number) => pipeline<{ n: number }[]>`insert into kept values (${n}) returning n`;

describe("a transaction that is sent whole", () => {
  it("gives the rows of each statement and commits", async () => {
    const [first, second, none] = await pipeline.transact([
      insert(1),
      pipeline<{ sum: number }[]>`select sum(n)::integer as sum from kept`,
      pipeline`update kept set n = n where n < ${0}`,
    ]);
    expect([first, second, none.count]).toEqual([[{ n: 1 }], [{ sum: 1 }], 0]);
    expect(await other`select n from kept`).toEqual([{ n: 1 }]);
  });

  it("takes a mode, and no statements", async () => {
    expect(await pipeline.transact([])).toEqual([]);
    await expect(pipeline.transact([insert(2)], "read only")).rejects.toMatchObject({ code: "25006" });
    const [row] = await pipeline.transact([pipeline`show transaction_isolation`], "isolation level repeatable read");
    expect(row).toEqual([{ transaction_isolation: "repeatable read" }]);
  });

  it("is rejected once with the first error, rolled back, and leaves the connection as it was", async () => {
    const pid = await pidOf(pipeline);
    const again = () => pipeline`select n + ${1}::integer as m from kept where n = 1`;
    const failed = pipeline.transact([insert(3), insert(1), again(), insert(4)]);
    await expect(failed).rejects.toMatchObject({ code: "23505", constraint: "n_is_kept_once" });
    expect(await pipeline.transact([insert(3), again()])).toEqual([[{ n: 3 }], [{ m: 2 }]]);
    expect(await pidOf(pipeline)).toBe(pid);
    expect(await other`select n from kept order by n`).toEqual([{ n: 1 }, { n: 3 }]);
  });

  it("is rejected with what the server refuses at COMMIT", async () => {
    const pid = await pidOf(pipeline);
    const orphan = pipeline.transact([insert(5), pipeline`insert into child values (${6})`]);
    await expect(orphan).rejects.toMatchObject({ code: "23503", constraint: "child_has_a_parent" });
    expect(await pipeline.transact([pipeline`select n from kept where n = ${5}`])).toEqual([[]]);
    expect(await pidOf(pipeline)).toBe(pid);
  });

  it("sends nothing when one of its values cannot be bound", async () => {
    const missing = ({} as Record<string, number>)["n"] as number;
    await expect(pipeline.transact([insert(7), insert(missing)])).rejects.toThrow("found undefined");
    expect(await other`select n from kept where n = 7`).toEqual([]);
  });

  it("plans its statements again after a table was changed", async () => {
    await other`create table changed (a integer)`;
    const look = () => pipeline.transact([pipeline`select * from changed`]);
    expect(await look()).toEqual([[]]);
    await other`alter table changed add column b integer`;
    await expect(look()).rejects.toMatchObject({ code: "0A000" });
    await other`insert into changed values (1, 2)`;
    expect(await look()).toEqual([[{ a: 1, b: 2 }]]);
  });

  it("has five seconds at the server", async () => {
    const [rows] = await pipeline.transact([pipeline`show transaction_timeout`]);
    expect(rows).toEqual([{ transaction_timeout: "5s" }]);
  });

  it("is rejected when its connection is lost, and the next one uses another", async () => {
    const pid = await pidOf(pipeline);
    const lost = pipeline
      .transact([insert(8), pipeline`select pg_sleep(30)`, insert(9)])
      .catch((thrown: unknown) => thrown);
    await eventually(
      async () => (await other`select from pg_stat_activity where pid = ${pid} and wait_event = 'PgSleep'`).length > 0,
    );
    await other`select pg_terminate_backend(${pid}, 5000)`;
    const error = await lost;
    expect(isConnectionError(error)).toBe(true);
    expect(await eventually(() => pipeline.transact([insert(8)]))).toEqual([[{ n: 8 }]]);
  });

  it("waits for no response before everything is sent", async () => {
    const target = new URL(database.url);
    let isHeld = false;
    const server = createServer((near) => {
      const far = createConnection({ host: target.hostname, port: Number(target.port) });
      far.on("error", () => undefined).on("close", () => near.destroy());
      near.on("error", () => undefined).on("close", () => far.destroy());
      const held: Buffer[] = [];
      near.on("data", (sent: Buffer) => {
        far.write(sent);
        if (sent.includes("commit")) isHeld = false;
        if (!isHeld) for (const response of held.splice(0)) near.write(response);
      });
      far.on("data", (response: Buffer) => void (isHeld ? held.push(response) : near.write(response)));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = new URL(database.url);
    url.port = String((server.address() as AddressInfo).port);
    const held = openPipeline(url.href, { name: "held", max: 1 });
    try {
      await held`select 1`;
      isHeld = true;
      expect(await held.transact([held`select 1 as n`, held`select 2 as n`])).toEqual([[{ n: 1 }], [{ n: 2 }]]);
    } finally {
      await held.end({ timeout: 1 });
      server.close();
    }
  });
});
