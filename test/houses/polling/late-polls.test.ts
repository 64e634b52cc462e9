import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect, type Sql } from "../../../src/db/client.ts";
import { requirePolling } from "../../../src/cli/run/readiness.ts";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import { findLatePolls, listMissingRuns } from "../../../src/houses/polling/polling-store.ts";
import { deletePause, insertPause } from "../../../src/queue/store.ts";
import { createDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { listPollSchedules } from "../../../src/houses/store.ts";
import { houseEntry, pauseHouse, resumeHouse } from "../../support/houses.ts";

let sql: Sql;
let drop: () => Promise<void>;
beforeEach(async () => {
  const database = await createDatabase();
  sql = connect(database.url, { name: "test" });
  drop = async () => {
    await sql.end({ timeout: 1 });
    await database.drop();
  };
  await applyHouses(sql, [houseEntry({ id: "alpha" }), houseEntry({ id: "beta" })]);
  for (const id of ["alpha", "beta"]) await polledAgo(id, 3_600);
});
afterEach(() => drop());

const late = async () => (await findLatePolls(sql)).late;

async function polledAgo(house: string, seconds: number): Promise<void> {
  await sql`
    update poll_leases
    set last_poll_at = clock_timestamp() - ${seconds} * interval '1 second'
    where house_id = ${house}`;
  await sql`update houses set updated_at = clock_timestamp() - interval '2 hours' where id = ${house}`;
}

describe("a house whose poll is due", () => {
  it("is late although another house is polled", async () => {
    expect(await late()).toEqual(["alpha", "beta"]);
    await polledAgo("beta", 1);
    expect(await findLatePolls(sql)).toEqual({ late: ["alpha"], due: 2, longestPollMs: 5_000 });
  });

  it("is late although a worker holds its lease, whose polls may all hang", async () => {
    await sql`update poll_leases set lease_until = clock_timestamp() + interval '5 seconds'`;
    expect(await late()).toEqual(["alpha", "beta"]);
  });

  it("is not late while its circuit is open, it is disabled or paused, nor right after it is resumed", async () => {
    await sql`
      update poll_leases
      set circuit = 'open', next_allowed_at = clock_timestamp() + interval '1 minute'
      where house_id = 'alpha'`;
    expect(await late()).toEqual(["beta"]);
    await pauseHouse(sql, { house: "beta", by: "ana", reason: "maintenance" });
    expect(await findLatePolls(sql)).toMatchObject({ late: [], due: 0 });
    await resumeHouse(sql, "beta");
    expect(await findLatePolls(sql)).toMatchObject({ late: [], due: 1 });
    await sql`update houses set enabled = false where id = 'beta'`;
    await sql`update poll_leases set next_allowed_at = '-infinity'`;
    expect(await late()).toEqual(["alpha"]);
  });

  it("is not late while the queue of polls is paused", async () => {
    await insertPause(sql, { queue: "poll-house", by: "ana", reason: "maintenance", until: null });
    expect(await late()).toEqual([]);
    await deletePause(sql, "poll-house", null);
    expect(await late()).toEqual(["alpha", "beta"]);
  });
});

describe("the run of a house's polls", () => {
  const missing = async () => (await listMissingRuns(sql)).map(({ house }) => house);

  it("is missing before its first poll, and when the next one is 5 s late", async () => {
    // a poll is due after 2 s: it is missing 7 s after the last one
    const found = await eventually(async () => {
      await polledAgo("alpha", 4);
      const houses = await missing();
      return !houses.includes("alpha") && houses;
    });
    expect(found).toEqual(["beta"]);
    await polledAgo("alpha", 10);
    expect(await missing()).toEqual(["alpha", "beta"]);
    await polledAgo("beta", 1);
    await sql`update poll_leases set last_poll_at = null where house_id = 'alpha'`;
    const runs = await listMissingRuns(sql);
    expect(runs).toEqual([expect.objectContaining({ house: "alpha", shard: 0 })]);
    expect(runs).toMatchObject((await listPollSchedules(sql)).slice(0, 1).map(({ payload }) => payload));
  });

  it("is not missing while the budget of the house allows no request", async () => {
    await applyHouses(sql, [houseEntry({ id: "alpha", requests_per_minute: 1 }), houseEntry({ id: "beta" })]);
    for (const house of ["alpha", "beta"]) await polledAgo(house, 40);
    expect(await missing()).toEqual(["beta"]);
  });

  it("is not missing while the house may not be polled, or is polled", async () => {
    const both = ["alpha", "beta"];
    expect(await missing()).toEqual(both);
    await sql`update poll_leases set next_allowed_at = clock_timestamp() + interval '1 minute' where house_id = 'alpha'`;
    await sql`update poll_leases set lease_until = clock_timestamp() + interval '1 minute' where house_id = 'beta'`;
    expect(await missing()).toEqual([]);
    await sql`update poll_leases set next_allowed_at = '-infinity', lease_until = '-infinity'`;
    await insertPause(sql, { queue: "poll-house", by: "ana", reason: "maintenance", until: null });
    expect(await missing()).toEqual([]);
    await deletePause(sql, "poll-house", null);
    await pauseHouse(sql, { house: "alpha", by: "ana", reason: "maintenance" });
    await sql`update houses set enabled = false where id = 'beta'`;
    expect(await missing()).toEqual([]);
  });
});

describe("a process is not ready", () => {
  const polls = { queue: "poll-house", active: 1, taking: true, unfinishedMs: 0 };
  const health = (changed: Partial<typeof polls>) => ({
    redis: true,
    taking: true,
    leading: false,
    clockProblem: null,
    queues: [{ ...polls, ...changed }],
  });
  const well = { late: [], due: 12, longestPollMs: 5_000 };

  it.each([
    ["while houses are late", { ...well, late: ["alpha"] }, health({}), "1 of 12 houses that are due are not polled"],
    ["that does no work itself, while houses are late", { ...well, late: ["alpha"] }, null, "1 of 12 houses that are"],
    ["while none of its own polls is done", well, health({ unfinishedMs: 26_000 }), "for more than 25 s"],
    ["while it takes no polls", well, health({ taking: false }), "takes no work from some queues"],
  ])("%s", (_, lateness, state, message) => {
    expect(() => requirePolling(lateness, state)).toThrow(message);
  });

  it.each([
    ["polls in time", well, health({ unfinishedMs: 24_000 })],
    ["does not poll at all", { ...well, late: ["alpha"] }, health({ queue: "send-mail" })],
  ])("and is if it %s", (_, lateness, state) => {
    expect(() => requirePolling(lateness, state)).not.toThrow();
  });
});
