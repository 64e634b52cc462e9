import { beforeEach, describe, expect, test } from "vitest";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import { createLeaseTaker, type PollRun } from "../../../src/houses/polling/lease-store.ts";
import { openTestDatabase } from "../../support/database.ts";
import { forgetHouses, houseEntry } from "../../support/houses.ts";

const { sql, pipeline } = await openTestDatabase();
beforeEach(async () => {
  await forgetHouses(sql);
  await applyHouses(sql, [houseEntry()]);
});

/** A process with a run of polls of the house, one a minute; `single` polls belong to no run. */
function startRun() {
  const take = createLeaseTaker(pipeline);
  const run: PollRun = { everyMs: 60_000, epoch: null };
  const ask = async (own: PollRun | undefined) => {
    const [house] = await sql<{ updatedAt: string }[]>`select updated_at::text as "updatedAt" from houses`;
    const request = { house: "alpha", shard: 0, updatedAt: house?.updatedAt ?? "", timeoutMs: 1_000 };
    return (await take({ ...request, run: own })) !== null;
  };
  return { poll: () => ask(run), single: () => ask(undefined), again: () => ask({ ...run, epoch: null }) };
}

/** The last poll was saved so many seconds ago. */
async function saved(secondsAgo: number): Promise<void> {
  await sql`
    update poll_leases
    set lease_until = '-infinity', last_poll_at = clock_timestamp() - ${secondsAgo} * interval '1 second'`;
}

describe("of two runs that poll the same house at the same moments", () => {
  test("the one that is later in a moment is refused, until the other ends", async () => {
    const [ours, theirs] = [startRun(), startRun()];
    expect(await ours.poll()).toBe(true);
    await saved(0);
    expect(await theirs.poll(), "the same moment").toBe(false);
    await saved(0);
    expect(await ours.poll(), "its own last poll was late").toBe(true);
    await saved(60);
    expect(await theirs.poll(), "the next moment").toBe(true);
    await saved(0);
    expect(await ours.poll()).toBe(false);
    await saved(60);
    expect(await ours.poll(), "the other one has ended").toBe(true);
  });

  test("a run that follows another one of the same process begins at once", async () => {
    const ours = startRun();
    expect(await ours.poll()).toBe(true);
    await saved(0);
    expect(await ours.again()).toBe(true);
    await saved(0);
    expect(await ours.poll(), "the first one was repeated").toBe(false);
  });

  test("a single poll is not one of them", async () => {
    const [ours, theirs] = [startRun(), startRun()];
    expect(await ours.poll()).toBe(true);
    await saved(0);
    expect(await theirs.single()).toBe(true);
  });
});

test("ended leases cost a run no poll", async () => {
  const ours = startRun();
  expect(await ours.poll()).toBe(true);
  await saved(60);
  await sql`update poll_leases set lease_epoch = lease_epoch + 1`;
  expect(await ours.poll()).toBe(true);
});
