import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { createLease, type Lease } from "../../src/db/lease.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
let first: Lease;
let second: Lease;
beforeEach(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "test", max: 4 });
  first = lease("first");
  second = lease("second");
});
afterEach(async () => {
  vi.restoreAllMocks();
  await sql.end({ timeout: 1 });
  await database.drop();
});

const lease = (holder: string, leaseMs = 10_000) => createLease(sql, { name: "role", holder, leaseMs });
const refused = { isHeld: false, freeInMs: expect.any(Number) };

/** Lets another process acquire the lease after `holder`, whose own clock does not notice. */
async function depose(holder: string): Promise<void> {
  const { count } = await sql`
    update leases
    set expires_at = clock_timestamp() - interval '1 second'
    where holder = ${holder}`;
  expect(count).toBe(1);
}

describe("a lease", () => {
  it("has one holder, who keeps it and its epoch", async () => {
    expect([await first.hold(), await second.hold()]).toEqual([{ isHeld: true, epoch: 1n }, refused]);
    expect([await first.hold(), await second.hold()]).toEqual([{ isHeld: true, epoch: 1n }, refused]);
    expect([first.isHeld(), second.isHeld()]).toEqual([true, false]);
  });

  it("goes to one of many contenders that ask together", async () => {
    const contenders = Array.from({ length: 20 }, (_, n) => lease(`contender ${n}`));
    for (const epoch of [1n, 2n]) {
      const states = await Promise.all(contenders.map((one) => one.hold()));
      expect(states.filter(({ isHeld }) => isHeld)).toEqual([{ isHeld: true, epoch }]);
      await Promise.all(contenders.map((one) => one.release()));
    }
  });

  it("expires unless it is renewed, and another process acquires it in the next epoch", async () => {
    const brief = lease("brief", 3_000);
    expect(await brief.hold()).toEqual({ isHeld: true, epoch: 1n });
    await eventually(async () => (await second.hold()).isHeld);
    expect(brief.isHeld()).toBe(false);
    expect(await brief.hold()).toEqual(refused);
    expect(await second.hold()).toEqual({ isHeld: true, epoch: 2n });
  });

  it("is renewed in the same epoch after it expired if no other process acquired it", async () => {
    const brief = lease("brief", 1);
    await brief.hold();
    await eventually(() => !brief.isHeld());
    await brief.hold();
    expect(await sql`select holder, epoch from leases`).toEqual([{ holder: "brief", epoch: 1n }]);
  });

  it("expires later each time it is renewed", async () => {
    await first.hold();
    const [before] = await sql<{ at: Date }[]>`select expires_at as at from leases`;
    await eventually(async () => {
      await first.hold();
      const later = await sql`select from leases where expires_at > ${before?.at ?? ""}`;
      return later.length === 1;
    });
    expect(await second.hold()).toEqual(refused);
  });

  it("refuses a renewal and a release from an earlier epoch", async () => {
    const stale = lease("stale", 1);
    await stale.hold();
    await depose("stale");
    // the same name again, as after a lost response: only the epoch differs
    expect(await lease("stale").hold()).toEqual({ isHeld: true, epoch: 2n });
    expect(await stale.hold()).toEqual(refused);
    await sql`update leases set epoch = 3`;
    await first.release();
    expect(await second.hold()).toEqual(refused);
  });

  it("is free immediately when it is released, and not when another process releases", async () => {
    await first.hold();
    await second.release();
    expect(await second.hold()).toEqual(refused);
    await first.release();
    expect(first.isHeld()).toBe(false);
    expect(await second.hold()).toEqual({ isHeld: true, epoch: 2n });
    await first.release();
    expect(await lease("third").hold()).toEqual(refused);
  });

  it("reports when another process may acquire it", async () => {
    await lease("brief", 5_000).hold();
    const state = await second.hold();
    const freeInMs = state.isHeld ? 0 : state.freeInMs;
    expect(freeInMs).toBeGreaterThan(0);
    expect(freeInMs).toBeLessThan(5_200);
  });

  it("depends on the database's clock, not on the machine's", async () => {
    await first.hold();
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 86_400_000);
    expect(await lease("ahead").hold()).toEqual(refused);
    vi.spyOn(Date, "now").mockReturnValue(0);
    expect(await lease("behind").hold()).toEqual(refused);
    expect(first.isHeld()).toBe(true);
  });

  it("from another server, as in a restored backup, does not keep anybody waiting", async () => {
    await first.hold();
    await sql`
      update leases
      set expires_at = 'infinity',
          server_started_at = server_started_at - interval '1 day'`;
    expect(await second.hold()).toEqual({ isHeld: true, epoch: 2n });
  });

  it("outlives a restart of the server, since its holder still counts on it", async () => {
    await first.hold();
    await sql`update leases set server_started_at = server_started_at - interval '1 day'`;
    expect([await second.hold(), first.isHeld()]).toEqual([refused, true]);
    expect(await first.hold()).toEqual({ isHeld: true, epoch: 1n });
  });

  it("is not held if the database cannot be reached", async () => {
    const nowhere = connect("postgres://nobody@127.0.0.1:9/none", { name: "test", max: 1 });
    const unreachable = createLease(nowhere, { name: "role", holder: "nobody" });
    await expect(unreachable.hold()).rejects.toMatchObject({ code: "CONNECTION_LOST" });
    expect(unreachable.isHeld()).toBe(false);
    await nowhere.end({ timeout: 1 });
  });
});
