import { beforeEach, expect, test } from "vitest";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import { createLeaseTaker } from "../../../src/houses/polling/lease-store.ts";
import { openTestDatabase } from "../../support/database.ts";
import { forgetHouses, houseEntry } from "../../support/houses.ts";

const { sql, pipeline } = await openTestDatabase();
beforeEach(async () => {
  await forgetHouses(sql);
  await applyHouses(sql, [houseEntry()]);
});

const DUE = Date.UTC(2026, 10, 28, 12);

/** Whether a process gets the lease for a poll that is due so many seconds after noon; null for a single poll. */
async function mayPoll(seconds: number | null): Promise<boolean> {
  const [house] = await sql<{ updatedAt: string }[]>`select updated_at::text as "updatedAt" from houses`;
  const dueAt = seconds === null ? null : new Date(DUE + seconds * 1_000);
  const request = { house: "alpha", shard: 0, updatedAt: house?.updatedAt ?? "", timeoutMs: 1_000, dueAt };
  const lease = await createLeaseTaker(pipeline)(request);
  await sql`update poll_leases set lease_until = '-infinity'`;
  return lease !== null;
}

test.for<[number | null, boolean]>([
  [0, false],
  [-1.9, false],
  [0.001, true],
  [-2.1, true],
  [null, true],
])("a poll due %s s after the newest that was saved gets a lease: %s", async ([seconds, expected]) => {
  await sql`update poll_leases set last_due_at = ${new Date(DUE)}`;
  expect(await mayPoll(seconds)).toBe(expected);
});

test("a poll that was not saved is made by another process", async () => {
  expect(await mayPoll(0)).toBe(true);
  expect(await mayPoll(0)).toBe(true);
});
