import { beforeEach, describe, expect, it } from "vitest";
import backfillGap from "../../../jobs/backfill-gap.ts";
import normalizeRounds from "../../../jobs/normalize-rounds.ts";
import { createProver } from "../../../src/houses/fairness/prove.ts";
import { hundredthsOf } from "../../../src/houses/fairness/outcome.ts";
import { fairnessSettings } from "../../../src/houses/fairness/settings.ts";
import { createPasses, type Passes } from "../../../src/pass/passes.ts";
import { proveStored, type ProvenRange } from "../../../src/rounds/proofs/prove-stored.ts";
import { verify } from "../../../src/verify/verify.ts";
import { roundhouse } from "../../cli/world.ts";
import { madeChain, type MadeChain } from "../../houses/fairness/made-chain.ts";
import { testContext } from "../../support/context.ts";
import { openTestDatabase } from "../../support/database.ts";
import { feedEntry, forgetHouses } from "../../support/houses.ts";
import { importFile, type Row } from "../../support/import-file.ts";
import { followChain, makePayload, makeTable, storedRounds, type MadeTable } from "../../support/make.ts";
import { assignments } from "../../support/assignments.ts";

const blaze = madeChain("a1", "salt", "blaze");
const oldEra = madeChain("b2", "old salt", "ethercrash", { rounds: 100 });
const newEra = madeChain("c3", "new salt", "bustabit-raw", { rounds: 20_000, after: 100 });
const ERAS = [oldEra.settings, newEra.settings];

const { sql, pipeline, url } = await openTestDatabase();
let passes: Passes;
beforeEach(async () => {
  passes = createPasses(pipeline);
  await sql`delete from gaps`;
  await sql`delete from conflicts`;
  await sql`alter table gaps alter column id restart`;
  await forgetHouses(sql);
});

/** A table with these proofs; again with others, its settings are changed. */
function provable(fairness: unknown, roundIds = "consecutive"): Promise<MadeTable> {
  return makeTable(sql, { feed: feedEntry({ hash: "hash" }), round_ids: roundIds, fairness });
}

/** Rounds of a chain as a house lists them, newest first, by number or by opaque names. */
function listed(chain: MadeChain, newest: number, oldest: number, name = (round: number) => String(round)) {
  return Array.from({ length: newest - oldest + 1 }, (_, n) => newest - n).map((round) => ({
    id: name(round),
    hash: chain.hash(round),
    multiplier: chain.hundredths(round) / 100,
  }));
}

/** A name without order, as short ids are. */
const named = (round: number) => `r${((round * 7919) % 10_007).toString(36)}`;

let seconds = 0;
/** Reads one payload after the other. */
async function take(table: MadeTable, ...payloads: (readonly unknown[])[]): Promise<Record<string, number>> {
  for (const items of payloads) await makePayload(sql, table, { second: seconds++, previous: null, items });
  return normalizeRounds.run({ house: table.house }, testContext(sql, { passes }).context);
}

async function anchor() {
  const [row] =
    await sql`select proof_number as number, encode(proof_hash, 'hex') as hash, proof_of as of from table_heads`;
  return row;
}

async function refusals(): Promise<string[]> {
  return (await sql<{ reason: string }[]>`select reason from quarantine order by id`).map(({ reason }) => reason);
}

function importRows(table: MadeTable, rows: readonly { id: string; multiplier: number; hash: string }[]) {
  return importFile(
    sql,
    table,
    rows.map(({ id, multiplier, hash }) => [id, String(multiplier), null, hash]),
  );
}

/** Proves what is stored again, from one place to another. */
function prove(
  table: MadeTable,
  fairness: unknown,
  options: { roundIds?: "consecutive" | "opaque"; from?: number; to?: number } = {},
): Promise<ProvenRange> {
  const { roundIds = "consecutive", from = 0, to = 1_000_000_000 } = options;
  const range = { by: roundIds === "opaque" ? "seq" : "number", from: BigInt(from), to: BigInt(to) } as const;
  const work = { table, roundIds, fairness: fairnessSettings.parse(fairness), range };
  const { signal } = new AbortController();
  return proveStored(sql, createProver(), work, { signal, progress: () => undefined });
}

describe("rounds with opaque ids", () => {
  it("are proven by their hashes, over rounds that were missed, with their place as anchor", async () => {
    const table = await provable(blaze.settings, "opaque");
    await take(table, listed(blaze, 1_010, 1_001, named));
    expect(await anchor()).toEqual(blaze.point(1_010));
    await take(table, listed(blaze, 1_012, 1_003, named), listed(blaze, 1_319, 1_310, named));
    const rounds = await storedRounds(sql, table);
    expect(rounds).toHaveLength(22);
    expect(rounds.every(({ verified, late }) => verified === true && !late)).toBe(true);
    expect(await anchor()).toEqual(blaze.point(1_319));
    expect((await verify(sql, { tableId: table.id })).first_failure).toBeNull();
  });

  it("are quarantined if the result, the hash, or the owner of the hash does not fit", async () => {
    const table = await provable(blaze.settings, "opaque");
    await take(table, listed(blaze, 1_005, 1_001, named));
    const [good, ...rest] = listed(blaze, 1_008, 1_006, named);
    await take(table, [
      { ...good, id: "again" },
      { ...good, multiplier: 77.77 },
      { id: "invented", hash: "ee".repeat(32), multiplier: 1 },
      ...rest,
      ...listed(blaze, 1_005, 1_001, named),
    ]);
    expect((await storedRounds(sql, table)).map(({ id }) => id)).toEqual(
      ["again", 1_007, 1_006, 1_005, 1_004, 1_003, 1_002, 1_001]
        .map((id) => (id === "again" ? id : named(Number(id))))
        .toReversed(),
    );
    expect((await refusals()).map((reason) => reason.replace(/\d+\.\d\d/g, "n"))).toEqual([
      "the hash gives nx, the house sent nx",
      expect.stringMatching(/^the hash (gives nx, the house sent nx|leads back to no proven round)/),
    ]);
    await take(table, [{ ...listed(blaze, 1_007, 1_007)[0], id: "stolen" }, ...listed(blaze, 1_007, 1_003, named)]);
    expect((await refusals()).at(-1)).toBe(`the hash is that of ${named(1_007)}`);
    await take(table, [{ ...listed(blaze, 1_008, 1_008)[0], id: "stolen, too" }]);
    expect((await refusals()).at(-1)).toBe("the hash is that of again");
  });

  it("are refused if an old round is repeated under a new id, however long ago it was played", async () => {
    const table = await provable(blaze.settings, "opaque");
    await take(table, listed(blaze, 1_050, 1_001, named));
    await take(table, [{ ...listed(blaze, 1_003, 1_003)[0], id: "new" }, ...listed(blaze, 1_050, 1_045, named)]);
    expect(await refusals()).toEqual([`the hash is that of ${named(1_003)}`]);
    // right after the payload that brings it, which is not taken in yet
    await take(table, listed(blaze, 1_055, 1_049, named), [
      { ...listed(blaze, 1_053, 1_053)[0], id: "newer" },
      ...listed(blaze, 1_055, 1_055, named),
    ]);
    expect((await refusals()).at(-1)).toBe(`the hash is that of ${named(1_053)}`);
    expect(await storedRounds(sql, table)).toHaveLength(55);
  });

  it("are of the era of their neighbors, though their result would fit another one's", async () => {
    const next = madeChain("e5", "new salt", "blaze");
    const table = await provable([blaze.settings, next.settings], "opaque");
    const rounds = listed(next, 1_020, 1_001, named);
    const at = rounds.findIndex(({ multiplier }, n) => {
      const other = hundredthsOf(blaze.chain, next.hash(1_020 - n)) / 100;
      return n > 2 && n < 18 && other !== multiplier;
    });
    const missed = rounds[at];
    if (missed === undefined) throw new Error("expected a round with two results");
    await take(
      table,
      rounds.filter((round) => round !== missed),
    );
    const lie = { ...missed, multiplier: hundredthsOf(blaze.chain, missed.hash) / 100 };
    // the newest rounds are left out: only those older than the missed one and right above it are next to it
    await take(table, [...rounds.slice(1, at), lie, ...rounds.slice(at + 1)]);
    expect(await refusals()).toEqual([expect.stringMatching(/^the hash gives/)]);
    await take(table, [...rounds.slice(1, at), missed, ...rounds.slice(at + 1)]);
    expect(await storedRounds(sql, table)).toHaveLength(20);
  });

  it("without a hash are stored, unproven", async () => {
    const table = await provable(blaze.settings, "opaque");
    await take(table, [{ id: "x", multiplier: 1.5 }]);
    expect(await storedRounds(sql, table)).toMatchObject([{ id: "x", verified: null }]);
  });
});

describe("a house that begins a new chain", () => {
  it("needs its new era declared, and nothing else: then its rounds are proven and what was missed is computed", async () => {
    const table = await provable(oldEra.settings);
    await take(table, listed(oldEra, 90, 88));
    expect(await take(table, listed(newEra, 5_103, 5_101))).toMatchObject({ rounds: 0, quarantined: 3 });
    const again = await provable(ERAS);
    expect(again.id).toBe(table.id);
    await take(table, listed(newEra, 5_104, 5_102));
    expect(await anchor()).toEqual(newEra.point(5_104));
    // of the old era none later than 90 was seen: 91 to 100 cannot be computed, 101 to 5,101 can
    expect(await backfillGap.run({ gap: "1" }, testContext(sql, { passes }).context)).toEqual({ failed: 1 });
    await sql`update gaps set next_attempt_at = now(), lease_until = '-infinity'`;
    await take(table, listed(oldEra, 100, 98));
    expect(await backfillGap.run({ gap: "1" }, testContext(sql, { passes }).context)).toEqual({
      computed: 7,
      filled: 1,
    });
    const rounds = await storedRounds(sql, table);
    expect(rounds).toHaveLength(5_104 - 87);
    expect(rounds.every(({ verified }) => verified === true)).toBe(true);
    expect(new Map(rounds.map(({ id, x }) => [id, x])).get("4000")).toBe(newEra.hundredths(4_000) / 100);
    expect(await followChain(sql, table)).toBe(rounds.length);
    expect((await verify(sql, { tableId: table.id })).first_failure).toBeNull();
    expect(await prove(table, ERAS)).toMatchObject({
      ok: true,
      checked: { rounds: rounds.length, proven: rounds.length, without_hash: 0, without_era: 0 },
      chains: [
        { chain: "ethercrash", rounds: 13, first: 88, last: 100 },
        { chain: "bustabit-raw", rounds: 5_004, first: 101, last: 5_104 },
      ],
    });
  });

  it("leaves rounds of no era unproven, and they are no fault once one is declared for them", async () => {
    const table = await provable({ ...oldEra.settings, from: 1, to: 100 });
    await take(table, [...listed(newEra, 103, 101), ...listed(oldEra, 100, 99)]);
    expect((await storedRounds(sql, table)).map(({ verified }) => verified)).toEqual([true, true, null, null, null]);
    expect(await prove(table, { ...oldEra.settings, from: 1, to: 100 })).toMatchObject({
      ok: true,
      checked: { rounds: 5, proven: 2, without_era: 3 },
    });
    await provable(ERAS);
    await take(table, listed(newEra, 104, 104));
    expect((await verify(sql, { tableId: table.id })).first_failure).toBeNull();
    expect(await prove(table, ERAS)).toMatchObject({ ok: true, checked: { proven: 6, without_era: 0 } });
  });
});

describe("imported rounds", () => {
  it("are proven by their hashes if ids are opaque, and the newest becomes the anchor", async () => {
    const table = await provable(blaze.settings, "opaque");
    const rows = listed(blaze, 1_030, 1_001, named).toReversed();
    const imported = await importRows(table, [...rows, { id: "wrong", multiplier: 77.77, hash: blaze.hash(1_031) }]);
    expect(imported).toMatchObject({
      inserted: 30,
      refused: [{ line: 32, reason: expect.stringMatching(/^the proof/) }],
    });
    expect((await storedRounds(sql, table)).every(({ verified }) => verified === true)).toBe(true);
    expect(await anchor()).toEqual(blaze.point(1_030));
    expect(await importRows(table, rows)).toMatchObject({ inserted: 0, skipped: 30, refused: [] });
    await take(table, listed(blaze, 1_034, 1_032, named));
    expect(await anchor()).toEqual(blaze.point(1_034));
  });

  it("prove one round each if ids are opaque, in the file and with stored rounds", async () => {
    const table = await provable(blaze.settings, "opaque");
    await take(table, listed(blaze, 1_010, 1_001, named));
    const older = listed(blaze, 1_000, 991, named);
    const [copied] = listed(blaze, 995, 995, () => "copied");
    const [stolen] = listed(blaze, 1_005, 1_005, () => "stolen");
    if (copied === undefined || stolen === undefined) throw new Error("expected rounds");
    const rows = [...older, { ...copied, hash: copied.hash.toUpperCase() }, stolen, ...older.slice(0, 2)];
    expect(await importRows(table, rows)).toMatchObject({
      inserted: 10,
      skipped: 2,
      refused: [
        { line: 12, reason: `the proof fails: the hash is that of ${named(995)}` },
        { line: 13, reason: `the proof fails: the hash is that of ${named(1_005)}` },
      ],
    });
  });

  it("with an unclear multiplier own no hash", async () => {
    const table = await provable(blaze.settings, "opaque");
    const [first, second] = listed(blaze, 1_002, 1_001, named);
    if (first === undefined || second === undefined) throw new Error("expected rounds");
    const rows: Row[] = [
      ["unclear", "1,234", null, first.hash],
      [first.id, `${first.multiplier}`, null, first.hash],
      [second.id, `${second.multiplier}`.replace(".", ","), null, second.hash],
    ];
    const multiplierShape = (text: string) => (text === "1,234" ? "comma_and_three" : "comma_decimals");
    const imported = await importFile(sql, table, rows, { multiplierShape });
    expect(imported).toMatchObject({ inserted: 2, refused: [{ line: 2 }] });
    expect(imported.refused[0]?.reason).toContain("expected a multiplier with one meaning");
  });

  it("that fail their proof own no hash", async () => {
    const table = await provable(blaze.settings, "opaque");
    const [first] = listed(blaze, 1_001, 1_001, named);
    if (first === undefined) throw new Error("expected a round");
    const wrong = { id: "wrong", multiplier: 77.77, hash: first.hash };
    expect(await importRows(table, [wrong, first])).toMatchObject({ inserted: 1, refused: [{ line: 2 }] });
    expect(await storedRounds(sql, table)).toMatchObject([{ id: first.id, verified: true }]);
  });

  it("of several eras are each proven in their own, those of none stay unproven", async () => {
    const table = await provable([{ ...oldEra.settings, to: 95 }, newEra.settings]);
    const rows = [...listed(oldEra, 100, 91), ...listed(newEra, 110, 101)];
    expect(await importRows(table, rows)).toMatchObject({ inserted: 20, refused: [] });
    const verified = new Map((await storedRounds(sql, table)).map((round) => [Number(round.id), round.verified]));
    expect([91, 95, 96, 100, 101, 110].map((id) => verified.get(id))).toEqual([true, true, null, null, true, true]);
    expect(await anchor()).toEqual(newEra.point(110));
  });
});

describe("proving stored rounds again", () => {
  async function withRounds(): Promise<MadeTable> {
    const table = await provable(ERAS);
    await take(table, [...listed(newEra, 140, 101), ...listed(oldEra, 100, 91)], listed(newEra, 6_000, 5_900));
    return table;
  }
  const tamper = (round: number, column: "hundredths" | "proof_hash", value: string | number | null) =>
    sql`update rounds set ${assignments(sql, { [column]: value })}, verified = null where round_id = ${String(round)}`;

  it("goes back to the published ends, over gaps, within the range that is asked for", async () => {
    const table = await withRounds();
    expect(await prove(table, ERAS)).toMatchObject({ ok: true, checked: { rounds: 151, proven: 151 }, failures: 0 });
    const part = await prove(table, ERAS, { from: 95, to: 5_950 });
    expect(part).toMatchObject({ ok: true, checked: { rounds: 97, proven: 97 } });
  });

  it("counts rounds without a hash separately, and reports the expected value of each failure", async () => {
    const table = await withRounds();
    await tamper(120, "proof_hash", null);
    expect(await prove(table, ERAS)).toMatchObject({
      ok: true,
      checked: { rounds: 151, proven: 150, without_hash: 1 },
    });
    await tamper(5_920, "hundredths", 7_777);
    await tamper(5_930, "proof_hash", newEra.hash(5_931));
    await tamper(5_940, "proof_hash", "no hash");
    const { ok, failures, first_failure, checked } = await prove(table, ERAS);
    expect([ok, failures, checked.proven, checked.rounds]).toEqual([false, 3, 147, 151]);
    expect(first_failure).toMatchObject({ id: expect.stringMatching(/^59[234]0$/) });
    const one = await prove(table, ERAS, { from: 5_915, to: 5_925 });
    expect(one.first_failure).toEqual({
      kind: "multiplier",
      id: "5920",
      expected: `${(newEra.hundredths(5_920) / 100).toFixed(2)}x`,
      found: "77.77x",
    });
  });

  it("names a hash that is not of the chain, though its multiplier fits, and the end that none leads to", async () => {
    const table = await withRounds();
    const other = madeChain("d4", "new salt", "bustabit-raw", { rounds: 10 });
    await sql`update rounds set proof_hash = decode(${other.hash(5)}, 'hex'), hundredths = ${other.hundredths(5)} where round_id = '5920'`;
    expect((await prove(table, ERAS)).first_failure).toEqual({
      kind: "link",
      id: "5920",
      expected: newEra.hash(5_920),
      found: other.hash(5),
    });
    const elsewhere = [oldEra.settings, { ...newEra.settings, terminating_hash: "ff".repeat(32) }];
    const lost = await prove(table, elsewhere);
    expect(lost).toMatchObject({ ok: false, checked: { proven: 10 }, failures: 141 });
    expect(lost.first_failure?.kind).toBe("end");
  });

  it("holds if ids are opaque, with late rounds between, and finds a repeated hash", async () => {
    const table = await provable(blaze.settings, "opaque");
    await take(table, listed(blaze, 1_010, 1_001, named), listed(blaze, 1_100, 1_091, named));
    await take(table, listed(blaze, 1_100, 1_085, named));
    const opaque = { roundIds: "opaque" as const };
    expect(await prove(table, blaze.settings, opaque)).toMatchObject({
      ok: true,
      checked: { rounds: 26, proven: 26 },
      chains: [{ chain: "blaze", rounds: 26, first: 1_001, last: 1_100 }],
    });
    await sql`
      update rounds
      set (proof_hash, hundredths) = (select proof_hash, hundredths from rounds where round_id = ${named(1_004)})
      where round_id = ${named(1_005)}`;
    expect((await prove(table, blaze.settings, opaque)).first_failure).toMatchObject({
      kind: "repeated",
      id: named(1_005),
    });
  });

  it("finds a repeated hash across many rounds, and ends at its limit", async () => {
    const table = await provable(newEra.settings, "opaque");
    await importRows(table, listed(newEra, 5_300, 101, (round) => `x${round}`).toReversed());
    await sql`
      update rounds
      set (proof_hash, hundredths) = (select proof_hash, hundredths from rounds where round_id = 'x110')
      where round_id = 'x5290'`;
    const all = await prove(table, newEra.settings, { roundIds: "opaque" });
    expect(all).toMatchObject({ failures: 1, first_failure: { kind: "repeated", id: "x5290" } });
    expect(all.checked).toMatchObject({ rounds: 5_200, proven: 5_199 });
    const stop = new AbortController();
    const work = { table, roundIds: "opaque" as const, fairness: fairnessSettings.parse(newEra.settings) };
    const range = { by: "seq" as const, from: 0n, to: 10_000n };
    const done: number[] = [];
    const progress = (rounds: number) => {
      done.push(rounds);
      if (rounds > 0) stop.abort(new Error("interrupted"));
    };
    const proving = proveStored(sql, createProver(), { ...work, range }, { signal: stop.signal, progress });
    await expect(proving).rejects.toThrow("interrupted");
    expect(done).toEqual([0, 5_000]);
  });

  it("is a command that exits with 1 if a round fails, with its own options", async () => {
    const table = await withRounds();
    await tamper(5_920, "hundredths", 7_777);
    const place = { env: { DATABASE_URL: url, REDIS_URL: "redis://127.0.0.1:1" } };
    const args = ["verify", "rounds", "--table", table.name, "--from", "101", "--json"];
    const { code, stdout, stderr } = await roundhouse(args, place);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`proving ${table.name}`)]);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      table: table.name,
      checked: { rounds: 141, proven: 140 },
      failures: 1,
      first_failure: { kind: "multiplier", id: "5920", found: "77.77x" },
    });
  });
});
