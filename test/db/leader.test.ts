import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { type Leadership, openLeadership } from "../../src/db/leader.ts";
import { createDatabase } from "../support/database.ts";

const LOCK = 0x7268_0099;

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
let first: Leadership;
let second: Leadership;
beforeEach(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "test", max: 1 });
  first = openLeadership(database.url, LOCK);
  second = openLeadership(database.url, LOCK);
});
afterEach(async () => {
  await Promise.all([first.close(), second.close(), sql.end({ timeout: 1 })]);
  await database.drop();
});

/** Cuts the connection that holds the place, as a restart or a fail-over of the server would. */
async function cutLeader(): Promise<number> {
  const cut = await sql`
    select pg_terminate_backend(pid, 5000)
    from pg_locks
    where locktype = 'advisory'
      and granted
      and database = (select oid from pg_database where datname = current_database())`;
  return cut.length;
}

/** Asks whose connection was cut, which may find out by asking: then the next tick asks again. */
async function holdAfterCut(leadership: Leadership): Promise<boolean> {
  return leadership.hold().catch(() => leadership.hold());
}

describe("leadership", () => {
  it("is held by one at a time, and kept", async () => {
    expect([await first.hold(), await second.hold()]).toEqual([true, false]);
    expect([await first.hold(), await second.hold()]).toEqual([true, false]);
  });

  it("passes on when the leader's connection is cut, and the old leader finds out", async () => {
    await first.hold();
    expect(await cutLeader()).toBe(1);
    expect(await second.hold()).toBe(true);
    expect(await holdAfterCut(first)).toBe(false);
  });

  it("can be taken again by the old leader where nobody else came", async () => {
    await first.hold();
    await cutLeader();
    expect([await holdAfterCut(first), await second.hold()]).toEqual([true, false]);
  });

  it("is free at once when it is given back or closed", async () => {
    await first.hold();
    await first.release();
    expect(await second.hold()).toBe(true);
    await second.close();
    expect(await first.hold()).toBe(true);
  });

  it("is lost, and says so, where the database is gone", async () => {
    const nowhere = openLeadership("postgres://nobody@127.0.0.1:9/none", LOCK);
    await expect(nowhere.hold()).rejects.toThrow(/ECONNREFUSED/);
    await nowhere.close();
  });
});
