import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { newestRounds, NO_ROUNDS } from "../../src/published/held-rounds.ts";
import { loadMemory, type Memory } from "../../src/published/memory.ts";
import { verify } from "../../src/verify/verify.ts";
import { createPasses } from "../../src/pass/passes.ts";
import { resetNewestNumber } from "../../src/corrections/reset-newest.ts";
import backfillGap from "../../jobs/backfill-gap.ts";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { testContext } from "../support/context.ts";
import { eventually } from "../support/eventually.ts";
import { openTestDatabase } from "../support/database.ts";
import { feedEntry, forgetHouses } from "../support/houses.ts";
import {
  atSecond,
  followChain,
  makeItem,
  makePayload,
  makeTable,
  openNotices,
  storedRounds,
  type MadeTable,
} from "../support/make.ts";

const WRONG = 9_001_007;

const { sql, pipeline } = await openTestDatabase({ max: 4 });
beforeEach(() => forgetHouses(sql));

let second = 0;
/** A response with these ids, newest first, taken in by a worker that begins with nothing. */
async function take(table: MadeTable, ...ids: number[]): Promise<void> {
  await makePayload(sql, table, { second: second++, items: ids.map((id) => makeItem(id, 1.5 + (id % 7))) });
  await normalizeRounds.run({ house: table.house }, testContext(sql, { passes: createPasses(pipeline) }).context);
}

const reset = (table: MadeTable, to: bigint | null) =>
  sql.begin((tx) => resetNewestNumber(tx, table.id, { to, by: "ann", reason: "one response said so" }));

it("a wrong number that was believed is set back, and the rounds after it are on time again", async () => {
  const table = await makeTable(sql);
  await take(table, 1_006, 1_005);
  await take(table, WRONG, 1_006);
  await take(table, WRONG + 1, WRONG);
  for (const id of [1_007, 1_008, 1_009]) await take(table, id, id - 1);
  expect((await openNotices(sql, table))["ids"]).toMatch(/older than round 9001008/);
  expect(await reset(table, null)).toMatchObject({ ok: true, from: BigInt(WRONG + 1), to: 1_009n });
  await take(table, 1_010, 1_009);
  const rounds = await storedRounds(sql, table);
  expect(rounds.filter(({ late }) => late).map(({ id }) => id)).toEqual(["1007", "1008", "1009"]);
  expect(rounds.at(-1)).toMatchObject({ id: "1010", late: false });
  expect(await openNotices(sql, table)).toEqual({});
  expect(await sql`select to_number, state from gaps`).toEqual([{ to_number: 1_009n, state: "filled" }]);
  expect(await followChain(sql, table)).toBe(rounds.length);
  expect((await verify(sql, { tableId: table.id })).first_failure).toBeNull();
});

it("keeps the part of a gap below the number: a round that is missing there is still requested", async () => {
  const table = await makeTable(sql);
  await take(table, 100, 99);
  await take(table, WRONG, 100);
  await take(table, WRONG + 1, WRONG);
  for (const id of [101, 102, 103, 104, 106, 107, 108, 109, 110]) await take(table, id, 100);
  expect(await reset(table, 110n)).toMatchObject({ ok: true });
  expect(
    await sql`select from_number, to_number, missing, filled, state from gaps where table_id = ${table.id}`,
  ).toEqual([{ from_number: 101n, to_number: 110n, missing: 10n, filled: 9n, state: "open" }]);
  await take(table, 105, 104);
  expect(await sql`select filled, state from gaps where table_id = ${table.id}`).toEqual([
    { filled: 10n, state: "filled" },
  ]);
  await take(table, 111, 110);
  expect((await storedRounds(sql, table)).at(-1)).toMatchObject({ id: "111", late: false });
  expect((await verify(sql, { tableId: table.id })).first_failure).toBeNull();
});

it("stores the round of a number that is not stored yet late, and the gap below the number is filled", async () => {
  const table = await makeTable(sql);
  await take(table, 1_006, 1_005);
  await take(table, WRONG, 1_006);
  await take(table, WRONG + 1, WRONG);
  expect(await reset(table, 1_010n)).toMatchObject({ ok: true });
  await take(table, 1_010, 1_009, 1_008, 1_007, 1_006);
  await take(table, 1_011, 1_010);
  expect(await sql`select state, error from payloads where state <> 'read'`).toEqual([]);
  const rounds = await storedRounds(sql, table);
  expect(rounds.filter(({ late }) => late).map(({ id }) => id)).toEqual(["1007", "1008", "1009", "1010"]);
  expect(rounds.at(-1)).toMatchObject({ id: "1011", late: false });
  expect(await sql`select to_number, missing, filled, state from gaps`).toEqual([
    { to_number: 1_010n, missing: 4n, filled: 4n, state: "filled" },
  ]);
  expect((await verify(sql, { tableId: table.id })).first_failure).toBeNull();
});

describe("a gap that was too large to be requested", () => {
  /** Gap 101 to 9,001,006 is given up; then 101 to 110 arrive late, without 105. */
  async function makeGivenUp(): Promise<MadeTable> {
    const table = await makeTable(sql);
    for (const ids of [[100], [WRONG, 100], [WRONG + 1, WRONG]]) await take(table, ...ids);
    const [gap] = await sql<{ id: string }[]>`select id::text from gaps where table_id = ${table.id}`;
    expect(await backfillGap.run({ gap: gap?.id ?? "" }, testContext(sql).context)).toEqual({ given_up: 1 });
    for (const id of [101, 102, 103, 104, 106, 107, 108, 109, 110]) await take(table, id, 100);
    return table;
  }

  const gapsOf = ({ id }: MadeTable) =>
    sql`
      select to_number, missing, filled, state, closed_by, reason, attempts, cursor_round_id as cursor
      from gaps
      where table_id = ${id}
      order by id`;

  it("ends at the number, and its rounds are requested", async () => {
    const table = await makeGivenUp();
    await sql`update gaps set attempts = 7, cursor_round_id = '9000000'`;
    expect(await reset(table, 110n)).toMatchObject({ ok: true });
    const trimmed = { to_number: 110n, missing: 10n, filled: 9n, closed_by: null, reason: null };
    expect(await gapsOf(table)).toEqual([{ ...trimmed, state: "open", attempts: 0, cursor: null }]);
    expect((await openNotices(sql, table))["gap"]).toMatch(
      /^1 of the rounds 101 to 110 is missing .*; trying to fetch it$/,
    );
  });

  it("stays given up if an operator closed it", async () => {
    const table = await makeGivenUp();
    await sql`update gaps set closed_by = 'eve', reason = 'it was wrong'`;
    expect(await reset(table, 110n)).toMatchObject({ ok: true });
    const closed = { state: "given_up", closed_by: "eve", reason: "it was wrong" };
    expect(await gapsOf(table)).toMatchObject([{ to_number: 110n, missing: 10n, filled: 9n, ...closed }]);
  });

  it("states the reset as its reason if it lies above the number", async () => {
    const table = await makeGivenUp();
    const [before] = await sql`select closed_at from gaps where table_id = ${table.id}`;
    expect(await reset(table, 99n)).toMatchObject({ ok: true });
    const reason = "the newest number was reset to 99: one response said so";
    expect(await gapsOf(table)).toMatchObject([{ to_number: 9_001_006n, state: "given_up", closed_by: "ann", reason }]);
    expect(await sql`select closed_at from gaps where table_id = ${table.id}`).toEqual([before]);
  });
});

it("counts no round above the number for the part of the gap below it", async () => {
  const table = await makeTable(sql);
  await take(table, 100, 99);
  await take(table, WRONG, 100);
  await take(table, WRONG + 1, WRONG);
  for (const id of [101, 102, 104, 105, 106]) await take(table, id, 100);
  expect(await reset(table, 104n)).toMatchObject({ ok: true });
  expect(
    await sql`select from_number, to_number, missing, filled, state from gaps where table_id = ${table.id}`,
  ).toEqual([{ from_number: 101n, to_number: 104n, missing: 4n, filled: 3n, state: "open" }]);
});

it("leaves no number above it missing in the audit of the house, in passes and in verify", async () => {
  const table = await makeTable(sql);
  const missing = async () => {
    await sql`delete from published_readings where table_id = ${table.id}`; // the next response publishes one, with the audit
    await take(table, ++newest, newest - 1);
    const [row] = await sql<{ missing: bigint }[]>`
      select missing from house_audits where table_id = ${table.id} order by hour desc limit 1`;
    return Number(row?.missing);
  };
  let newest = 1_006;
  await take(table, 1_006, 1_005);
  await take(table, WRONG, 1_006);
  await take(table, WRONG + 1, WRONG);
  for (newest = 1_008; newest < 1_010; newest += 1) await take(table, newest);
  expect(await missing()).toBeGreaterThan(8_000_000);
  await reset(table, null);
  expect(await missing()).toBe(1); // 1007
  const again = WRONG + 10;
  await take(table, again, newest);
  await take(table, again + 1, again);
  await take(table, ++newest, newest - 1);
  await reset(table, null);
  expect(await missing()).toBe(1);
  expect(await sql`select above from number_resets where table_id = ${table.id}`).toEqual([{ above: 2 }, { above: 2 }]);
  expect((await verify(sql, { tableId: table.id })).first_failure).toBeNull();
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`update number_resets set above = above + 1 where table_id = ${table.id}`;
  });
  expect(await missing()).toBe(3);
  expect((await verify(sql, { tableId: table.id })).first_failure).toMatchObject({
    kind: "audit",
    expected: "missing 1",
    found: "missing 3",
  });
});

it("lets callers see newer rounds before the wrong one, in a running process and in one that starts later", async () => {
  const table = await makeTable(sql);
  const { log } = testContext(sql).context;
  const load = async () => {
    const memory = await loadMemory(sql, { bufferRounds: 6, liveWindowSeconds: 300 }, log);
    onTestFinished(() => memory.close());
    return memory;
  };
  const idsIn = ({ tables }: Memory) => {
    const rounds = newestRounds(tables.byId.get(table.id)?.rounds ?? NO_ROUNDS, 6);
    return (JSON.parse(`[${rounds}]`) as { round_id: string }[]).map(({ round_id }) => Number(round_id));
  };
  await take(table, 1_006, 1_005);
  await take(table, WRONG, 1_006);
  await take(table, WRONG + 1, WRONG);
  for (const id of [1_007, 1_008, 1_009]) await take(table, id, id - 1);
  const running = await load();
  expect(idsIn(running)).toEqual([WRONG + 1, WRONG, 1_009, 1_008, 1_007, 1_006]);
  const expectBoth = async (ids: number[]) => {
    running.refresh([table.id]);
    await eventually(() => expect(idsIn(running)).toEqual(ids));
    expect(idsIn(await load())).toEqual(ids);
  };
  await reset(table, null);
  await expectBoth([1_009, WRONG + 1, WRONG, 1_008, 1_007, 1_006]);
  await take(table, 1_010, 1_009);
  await expectBoth([1_010, 1_009, WRONG + 1, WRONG, 1_008, 1_007]);
  for (const id of [1_011, 1_012, 1_013, 1_014]) await take(table, id, id - 1);
  await expectBoth([1_014, 1_013, 1_012, 1_011, 1_010, 1_009]);
});

describe("a time that was ahead, in a table whose ids are not consecutive", () => {
  const opaque = () => makeTable(sql, { round_ids: "opaque", feed: { ...feedEntry(), occurred_at: "at" } });
  /** A response with these rounds, newest first: ids and the seconds at which they were played. */
  async function takeTimed(table: MadeTable, ...rounds: [id: string, at: number][]): Promise<void> {
    const items = rounds.map(([id, at]) => makeItem(id, 1.5 + (Math.abs(at) % 7), { at: atSecond(at) }));
    await makePayload(sql, table, { second: second++, items });
    await normalizeRounds.run({ house: table.house }, testContext(sql, { passes: createPasses(pipeline) }).context);
  }

  async function placesOf(table: MadeTable): Promise<[id: string, late: boolean, gap: boolean][]> {
    return (await storedRounds(sql, table)).map(({ id, late, gap }) => [id, late, gap]);
  }

  it("is cleared, and the rounds after it are on time again, the first after a gap", async () => {
    const table = await opaque();
    await takeTimed(table, ["b", -10], ["a", -20]);
    await takeTimed(table, ["c", 80_000], ["b", -10]);
    await takeTimed(table, ["e", 1], ["d", 0]);
    for (const [id, at] of [
      ["f", 2],
      ["g", 3],
    ] as const)
      await takeTimed(table, [id, at], ["e", 1]);
    expect((await openNotices(sql, table))["ids"]).toMatch(
      /older than round c, .*; if the time of that round is wrong/,
    );
    const done = await reset(table, null);
    expect(done).toMatchObject({ ok: true, from: expect.stringMatching(/^20.*Z$/), to: null });
    await takeTimed(table, ["h", 4], ["g", 3], ["f", 2]);
    await takeTimed(table, ["i", 5], ["h", 4]);
    expect(await placesOf(table)).toEqual([
      ["a", false, false],
      ["b", false, false],
      ["c", false, false],
      ["d", true, false],
      ["e", true, false],
      ["f", true, false],
      ["g", true, false],
      ["h", false, true],
      ["i", false, false],
    ]);
    expect((await openNotices(sql, table))["ids"]).toBeUndefined();
    expect((await verify(sql, { tableId: table.id })).first_failure).toBeNull();
  });

  it("is cleared, and the next on-time round follows a gap if an older on-time one is still listed", async () => {
    const table = await opaque();
    const old: [id: string, at: number][] = [
      ["b", -10],
      ["a", -20],
    ];
    await takeTimed(table, ...old);
    await takeTimed(table, ["c", 80_000], ...old);
    const played: [id: string, at: number][] = [];
    for (const [at, id] of ["d", "e", "f", "g"].entries()) {
      played.unshift([id, at]);
      await takeTimed(table, ...played, ...old);
    }
    await reset(table, null);
    await takeTimed(table, ["h", 4], ...played, ...old);
    expect(await placesOf(table)).toEqual([
      ["a", false, false],
      ["b", false, false],
      ["c", false, false],
      ["d", true, false],
      ["e", true, false],
      ["f", true, false],
      ["g", true, false],
      ["h", false, true],
    ]);
    const check = await verify(sql, { tableId: table.id });
    expect(check.first_failure).toBeNull();
  });

  it("is not cleared without a late round as evidence, nor with a number", async () => {
    const table = await opaque();
    expect(await reset(table, null)).toMatchObject({ ok: false, problem: expect.stringMatching(/has no rounds yet/) });
    await takeTimed(table, ["a", 0]);
    expect(await reset(table, null)).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/no round of .* was late since round a/),
    });
    expect(await reset(table, 7n)).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/are not consecutive numbers/),
    });
  });
});

it("is refused upwards, and without a late round as evidence", async () => {
  const table = await makeTable(sql);
  await take(table, 1_006, 1_005);
  expect(await reset(table, 1_006n)).toMatchObject({
    ok: false,
    problem: expect.stringMatching(/below the newest known, 1006/),
  });
  expect(await reset(table, null)).toMatchObject({
    ok: false,
    problem: expect.stringMatching(/no round of .* was late since 1006/),
  });
});
