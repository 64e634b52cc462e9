import { beforeEach, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { createProver } from "../../src/houses/fairness/prove.ts";
import { loadHouse } from "../../src/houses/store.ts";
import { createPasses, type Passes } from "../../src/pass/passes.ts";
import { decideOnItems } from "../../src/corrections/quarantine-decisions.ts";
import { rereadRange, type RereadWork } from "../../src/reread/reread.ts";
import { placeText, readPlace, type Reread } from "../../src/reread/reread-report.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { feedEntry, forgetHouses } from "../support/houses.ts";
import { lockWaits } from "../support/lock-waits.ts";
import {
  atSecond,
  followChain,
  makeItem,
  makePayload,
  makeTable,
  storedRounds,
  type MadeTable,
} from "../support/make.ts";

const never = new AbortController().signal;

const { sql, pipeline } = await openTestDatabase();
let passes: Passes;
beforeEach(async () => {
  passes = createPasses(pipeline);
  await sql`delete from gaps`;
  await sql`delete from conflicts`;
  await forgetHouses(sql);
});

const normalize = () => normalizeRounds.run({ house: "alpha" }, testContext(sql, { passes }).context);

/** Reads everything of the house again, as it is set up now. */
async function reread(work: Partial<RereadWork> = {}, state: "read" | "refused" | null = null): Promise<Reread> {
  const house = await loadHouse(sql, () => undefined, "alpha");
  if (house === null) throw new Error("there is no house");
  const range = { house: "alpha", tableId: null, from: atSecond(-60), to: atSecond(3000), state };
  const options = { dryRun: false, by: "ann", most: 1000, signal: never, ...work };
  return rereadRange(sql, house, createProver(), range, options);
}

const items = (newest: number, oldest: number, field = "multiplier") =>
  Array.from({ length: newest - oldest + 1 }, (_, n) => newest - n).map((id) => ({ id, [field]: 1 + (id % 90) / 100 }));

async function everything(table: MadeTable): Promise<unknown> {
  return {
    rounds: await storedRounds(sql, table),
    conflicts: await sql`select round_id, other_hundredths, times from conflicts order by id`,
    quarantine: await sql`select round_id, code, state, times from quarantine order by id`,
    payloads:
      await sql`select received_at, state, refused_reason, items, new_rounds from payloads order by received_at`,
  };
}

describe("payloads that could not be read", () => {
  it("are read after the adapter is fixed: late, listed, and filling gaps, as the preview states", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: items(103, 101) });
    await makePayload(sql, table, { second: 1, body: JSON.stringify({ games: items(106, 102) }) });
    await makePayload(sql, table, { second: 2, body: JSON.stringify({ games: items(107, 103) }) });
    await makePayload(sql, table, { second: 3, items: items(110, 108) });
    await normalize();
    await makeTable(sql, { feed: feedEntry({ items: "games || rounds" }) });

    const before = await everything(table);
    const preview = await reread({ dryRun: true });
    expect(preview).toMatchObject({ payloads: 4, readable: 2, rounds: 4, conflicts: 0, refused: [], next: null });
    expect(await everything(table)).toEqual(before);

    const done = await reread();
    expect(done).toEqual(preview);
    const late = (await storedRounds(sql, table)).filter((round) => round.late);
    expect(late.map(({ id, source }) => `${id} ${source}`)).toEqual(
      ["104", "105", "106", "107"].map((id) => `${id} history`),
    );
    expect(await followChain(sql, table)).toBe(10);
    const [gap] = await sql`select state, filled::integer from gaps`;
    expect(gap).toEqual({ state: "filled", filled: 4 });
    const states = await sql`select distinct state, refused_reason from payloads`;
    expect(states).toEqual([{ state: "read", refused_reason: null }]);

    const after = await everything(table);
    const again = await reread();
    expect(again).toMatchObject({ payloads: 4, readable: 0, rounds: 0, conflicts: 0, quarantined: 0, released: 0 });
    expect(await everything(table)).toEqual(after);
  });

  it("stay refused with the current reason, counted by it, also if they were kept beyond their day", async () => {
    const table = await makeTable(sql);
    const first = await makePayload(sql, table, { second: 0, body: "not even JSON" });
    await makePayload(sql, table, { second: 1, body: "not even JSON " });
    await normalize();
    await sql`
      insert into payloads_kept (
        house_id, table_id, kind, requested_at, received_at, path, status, bytes, sha256, body, state, refused_reason
      )
      select 'alpha', table_id, kind, requested_at, received_at, path, status, bytes, sha256, body, state, refused_reason
      from payloads`;
    await sql`delete from payloads where received_at = ${first}::timestamptz`;
    const { refused, payloads } = await reread();
    expect({ payloads, refused }).toEqual({ payloads: 2, refused: [{ reason: expect.any(String), payloads: 2 }] });
    const [kept] =
      await sql`select state, reread_at is not null as again from payloads_kept where received_at = ${first}::timestamptz`;
    expect(kept).toEqual({ state: "refused", again: true });
  });
});

describe("payloads that were read", () => {
  it("with many results of one round give at most 20 conflicts of it, as the preview states", async () => {
    const table = await makeTable(sql);
    const rising = (from: number) => Array.from({ length: 15 }, (_, n) => ({ id: 2, multiplier: from + n / 100 }));
    await makePayload(sql, table, { second: 0, items: items(3, 1) });
    await makePayload(sql, table, { second: 1, items: rising(2) });
    await makePayload(sql, table, { second: 2, items: rising(3) });
    await normalize();
    const counted = () => sql`select count(*)::integer as listed, sum(further)::integer as further from conflicts`;
    expect(await counted()).toEqual([{ listed: 20, further: 10 }]);
    expect(await reread({ dryRun: true })).toMatchObject({ conflicts: 0 });
    expect(await reread()).toMatchObject({ conflicts: 0 });
    expect(await counted()).toEqual([{ listed: 20, further: 10 }]);
    await sql`delete from conflicts`;
    expect(await reread({ dryRun: true })).toMatchObject({ conflicts: 20 });
    expect(await reread()).toMatchObject({ conflicts: 20 });
    expect(await reread()).toMatchObject({ conflicts: 0 });
    expect(await counted()).toEqual([{ listed: 20, further: 0 }]);
  });

  it("give conflicts if the fixed adapter reads other results, each counted once however often", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: [makeItem(2, 150), makeItem(1, 250)] });
    await makePayload(sql, table, { second: 1, items: [makeItem(3, 350), makeItem(2, 150)] });
    await normalize();
    await makeTable(sql, { feed: feedEntry({ scale: 0.01 }) });
    expect(await reread({ dryRun: true })).toMatchObject({ conflicts: 3, rounds: 0 });
    expect(await reread()).toMatchObject({ conflicts: 3, rounds: 0 });
    expect(await reread()).toMatchObject({ conflicts: 0 });
    const conflicts =
      await sql`select round_id, other_hundredths::integer as other, times from conflicts order by round_id`;
    expect(conflicts).toEqual([250, 150, 350].map((other, n) => ({ round_id: String(n + 1), other, times: 1 })));
    expect((await storedRounds(sql, table)).map(({ x }) => x)).toEqual([250, 150, 350]);
  });

  it("let no item out of quarantine that is refused again beyond those that are listed one by one", async () => {
    const table = await makeTable(sql);
    const stuck = (newest: number, oldest: number) => items(newest, oldest).map(({ id }) => makeItem(id, 1.23));
    await makePayload(sql, table, { second: 0, items: stuck(200, 1) });
    await makePayload(sql, table, { second: 1, items: stuck(260, 60) });
    await makePayload(sql, table, { second: 2, items: stuck(261, 61) });
    await normalize();
    const before = await everything(table);
    const nothing = { rounds: 0, known: 5, released: 0 };
    expect(await reread({ dryRun: true })).toMatchObject(nothing);
    for (let run = 0; run < 2; run += 1) expect(await reread()).toMatchObject(nothing);
    expect(await everything(table)).toEqual(before);
  });

  it("let items out of quarantine that can be read now, and keep an instant crash out no longer", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: [makeItem(3, 1.5), makeItem(2, 0), makeItem(1, 1.2)] });
    await normalize();
    await makeTable(sql, { feed: feedEntry({ instant: [0] }) });
    expect(await reread({ dryRun: true })).toMatchObject({ rounds: 1, released: 1 });
    expect(await reread()).toMatchObject({ rounds: 1, released: 1, known: 2 });
    const [item] = await sql`select state, decided_by, round_id from quarantine`;
    expect(item).toEqual({ state: "released", decided_by: "ann", round_id: "2" });
    expect((await storedRounds(sql, table)).map(({ id, x, late }) => [id, x, late])).toEqual([
      ["1", 1.2, false],
      ["3", 1.5, false],
      ["2", 1, true],
    ]);
  });
});

describe("repeats of one result that a person released", () => {
  it("are stored when their payloads are read again, and those that were not released stay quarantined", async () => {
    const table = await makeTable(sql);
    const same = (newest: number) => Array.from({ length: newest }, (_, n) => makeItem(newest - n, 1));
    await makePayload(sql, table, { second: 0, items: same(5) });
    await makePayload(sql, table, { second: 1, items: same(8) });
    await normalize();
    await makePayload(sql, table, { second: 2, items: [makeItem(9, 2.5), ...same(8)] });
    await normalize();
    const open = await sql<{ id: bigint; round: string }[]>`
      select id, round_id as round from quarantine where code = 'stuck_feed' and state = 'open' order by round_id`;
    expect(open.map(({ round }) => round)).toEqual(["6", "7", "8"]);
    expect(await reread()).toMatchObject({ rounds: 0, released: 0 });
    const released = open.slice(0, 2).map(({ id }) => id);
    const decision = { state: "released", by: "ann", reason: "the house confirmed them" } as const;
    expect(await sql.begin((tx) => decideOnItems(tx, released, decision))).toMatchObject({ ok: true });
    expect(await reread({ dryRun: true })).toMatchObject({ rounds: 2, quarantined: 0 });
    expect(await reread()).toMatchObject({ rounds: 2, quarantined: 0 });
    const late = (await storedRounds(sql, table)).filter((round) => round.late);
    expect(late.map(({ id, x }) => [id, x])).toEqual([
      ["6", 1],
      ["7", 1],
    ]);
    const [gap] = await sql`select state, missing::integer, filled::integer from gaps`;
    expect(gap).toEqual({ state: "open", missing: 3, filled: 2 });
    const left = await sql`select round_id, state, decided_by from quarantine where state = 'open'`;
    expect(left).toEqual([{ round_id: "8", state: "open", decided_by: null }]);
  });
});

describe("a long range", () => {
  it("is read in parts that join on to each other, and a place in it survives a URL", async () => {
    const table = await makeTable(sql);
    for (let second = 0; second < 5; second++) {
      await makePayload(sql, table, { second, body: JSON.stringify({ games: items(second + 3, second + 1) }) });
    }
    await normalize();
    await makeTable(sql, { feed: feedEntry({ items: "games" }) });
    const first = await reread({ most: 2 });
    expect(first).toMatchObject({ payloads: 2, rounds: 4 });
    const next = readPlace(placeText(first.next ?? { requestedAt: "", tableId: 0 }));
    expect(next).not.toBeNull();
    expect(await reread({ after: next })).toMatchObject({ payloads: 3, rounds: 3, next: null });
    const stopped = new AbortController();
    stopped.abort();
    expect(await reread({ until: stopped.signal })).toMatchObject({ payloads: 0 });
    expect(readPlace("yesterday")).toBeNull();
  });

  it("gives the result of one run if two run concurrently", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, body: JSON.stringify({ games: items(20, 1) }) });
    await normalize();
    await makeTable(sql, { feed: feedEntry({ items: "games" }) });
    const running: Promise<Reread>[] = [];
    await sql.begin(async (holder) => {
      await holder`select from table_heads for no key update`;
      running.push(reread(), reread());
      await lockWaits(sql, 2); // both have found the payload refused
    });
    const both = await Promise.all(running);
    expect(both.map(({ rounds }) => rounds).toSorted((a, b) => a - b)).toEqual([0, 20]);
    expect(both.map(({ readable }) => readable).toSorted((a, b) => a - b)).toEqual([0, 1]);
    expect([...(await sql`select state, new_rounds from payloads`)]).toEqual([{ state: "read", new_rounds: 20 }]);
    expect(await followChain(sql, table)).toBe(20);
    expect((await storedRounds(sql, table)).every(({ late }) => late)).toBe(true);
    // what they come before is on time all the same, and misses nothing
    await makePayload(sql, table, { second: 1, body: JSON.stringify({ games: items(23, 21) }) });
    await makePayload(sql, table, { second: 2, body: JSON.stringify({ rounds: items(26, 24) }) });
    await makePayload(sql, table, { second: 3, body: JSON.stringify({ games: items(28, 27) }) });
    await normalize();
    await makeTable(sql, { feed: feedEntry({ items: "games || rounds" }) });
    await reread();
    const [gap] = await sql`select from_number::integer as "from", to_number::integer as "to", state from gaps`;
    expect(gap).toEqual({ from: 24, to: 26, state: "filled" });
    const onTime = (await storedRounds(sql, table)).filter(({ late }) => !late);
    expect(onTime.map(({ id }) => id)).toEqual(["21", "22", "23", "27", "28"]);
  });
});
