import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { listPeriodicTasks } from "../../jobs/periodic.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { holdHouse } from "../../src/houses/polling/lease-store.ts";
import { deletePause, insertPause } from "../../src/queue/store.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { forgetHouses, houseEntry, pauseHouse } from "../support/houses.ts";

const { sql } = await openTestDatabase();
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  await forgetHouses(sql);
  await applyHouses(sql, [houseEntry({ id: "alpha" }), houseEntry({ id: "beta" })]);
  await sql`update houses set updated_at = clock_timestamp() - interval '2 hours'`;
  await polledAgo(1);
});
afterEach(async () => {
  vi.useRealTimers();
  await sql`truncate alerts`;
});

async function polledAgo(seconds: number): Promise<void> {
  await sql`update poll_leases set last_poll_at = clock_timestamp() - ${seconds} * interval '1 second'`;
}

const GIB = 2 ** 30;
/** Holds alpha until a time relative to the next 00:00 UTC, after it stored some bytes on a day relative to today. */
const heldUntil = async (to: string, { bytes = 2 * GIB, day = 0 } = {}) => sql`
  update poll_leases
  set
    last_poll_at = now() - interval '2 hours',
    next_allowed_at = (date_trunc('day', now(), 'UTC') + interval '1 day') + ${to}::interval,
    bytes_on = (now() at time zone 'UTC')::date + ${day}::integer,
    bytes_today = ${bytes},
    last_error_at = now() - interval '2 hours',
    last_error = 'too many bytes'
  where house_id = 'alpha'`;

/** Returns a function that runs a periodic task and lists the open alerts, as "kind subject: text". */
function runsOf(name: string) {
  const task = listPeriodicTasks().find((listed) => listed.name === name);
  return async (): Promise<string[]> => {
    await task?.run(testContext(sql).context);
    const open = await sql<{ text: string }[]>`
      select kind || ' ' || subject || ': ' || text as text
      from alerts
      where closed_at is null
      order by 1`;
    return open.map(({ text }) => text);
  };
}

describe("the alert not_polled", () => {
  it("opens when a due poll has not started for a minute, and closes with the next poll", async () => {
    const run = runsOf("alert-polls");
    expect(await run()).toEqual([]);
    await polledAgo(3_600);
    expect(await run()).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(await run()).toEqual([
      expect.stringMatching(/^not_polled alpha: .*alpha is due and .* poll-house/),
      expect.stringMatching(/^not_polled beta: /),
    ]);
    await sql`update poll_leases set last_poll_at = clock_timestamp() where house_id = 'alpha'`;
    expect(await run()).toEqual([expect.stringMatching(/^not_polled beta: /)]);
    await pauseHouse(sql, { house: "beta", by: "ana", reason: "maintenance" });
    expect(await run()).toEqual([]);
  });

  it("stays closed while staff paused the queue", async () => {
    await polledAgo(3_600);
    await heldUntil("2 seconds");
    await insertPause(sql, { queue: "poll-house", by: "ana", reason: "maintenance", until: null });
    const run = runsOf("alert-polls");
    await run();
    vi.advanceTimersByTime(60_000);
    expect(await run()).toEqual([]);
    await deletePause(sql, "poll-house", null);
  });

  describe("about a house that is held", () => {
    it("opens when its bytes of the day are spent, until 00:00 UTC", async () => {
      const run = runsOf("alert-polls");
      await heldUntil("2 seconds");
      expect(await run()).toEqual([
        expect.stringMatching(
          /^not_polled alpha: the house alpha is not polled before .* 00:00 UTC \(too many bytes\)$/,
        ),
      ]);
      await heldUntil("2 seconds", { day: -1 });
      expect(await run()).toEqual([]);
    });

    it("stays closed during a Retry-After, however long ago the last poll was", async () => {
      const run = runsOf("alert-polls");
      await sql`update poll_leases set last_poll_at = now() - interval '2 hours'`;
      await holdHouse(sql, "alpha", 900_000);
      expect(await run()).toEqual([]);
      await heldUntil("10 minutes", { bytes: GIB });
      expect(await run()).toEqual([]);
      await heldUntil("-1 second");
      expect(await run()).toEqual([]);
    });
  });
});

describe("missing partitions of today and tomorrow", () => {
  const run = runsOf("alert-partitions");
  const drop = async (): Promise<string> => {
    const [partition] = await sql<{ name: string }[]>`
      select 'payloads_' || to_char((now() at time zone 'UTC')::date + 1, 'YYYYMMDD') as name`;
    await sql`drop table ${sql(partition?.name ?? "")}`;
    return partition?.name ?? "";
  };

  it("are created within seconds, without an alert", async () => {
    expect(await run()).toEqual([]);
    const name = await drop();
    expect(await run()).toEqual([]);
    expect(await sql`select from pg_inherits where inhrelid = to_regclass(${name})`).toHaveLength(1);
  });

  it("open an alert with the reason while they cannot be created", async () => {
    await drop();
    await sql`alter function make_day_partitions (date, integer) rename to make_no_partitions`;
    try {
      expect(await run()).toEqual([
        expect.stringMatching(/^partitions payloads_\d{8}: .*make_day_partitions.*does not exist.*roundhouse migrate/),
      ]);
    } finally {
      await sql`alter function make_no_partitions (date, integer) rename to make_day_partitions`;
    }
    expect(await run()).toEqual([]);
  });
});
