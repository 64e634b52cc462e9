import { beforeEach, describe, expect, it } from "vitest";
import { createProver } from "../../src/houses/fairness/prove.ts";
import { loadHouse } from "../../src/houses/store.ts";
import { loadState } from "../../src/pass/add.ts";
import { listTablesToRevise, reviseScores, type RevisedScores } from "../../src/pass/stores/revise-scores-store.ts";
import type { PassState } from "../../src/pass/compute/state.ts";
import { rereadRange } from "../../src/reread/reread.ts";
import { decideConflict, reviseRound } from "../../src/corrections/revision.ts";
import { openTestDatabase } from "../support/database.ts";
import { feedEntry } from "../support/houses.ts";
import { atSecond, makeTable, type MadeTable } from "../support/make.ts";
import { givePasses, timesFrom } from "../support/passes.ts";

const MULTIPLIERS = [187, 340, 101, 1250, 222, 100, 5000, 150, 1001];
const ANN = { by: "ann", reason: "the house confirmed it" };

const { sql } = await openTestDatabase();
let table: MadeTable;
let house = 0;
beforeEach(async () => {
  house += 1;
  table = await makeTable(sql, {}, { id: `house-${house}` });
});

function rounds(count: number): number[] {
  return Array.from({ length: count }, (_, n) => MULTIPLIERS[(n * n + n) % MULTIPLIERS.length] ?? 100);
}

const revise = (): Promise<RevisedScores> => sql.begin((tx) => reviseScores(tx, table.id));

interface Scored {
  forecastId: string;
  rev: number;
  reason: number;
}

/** First scores whose span contains the round with this seq. */
async function scoredAcross(seq: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select s.forecast_id as id
    from scores s
    join forecasts f on f.forecast_id = s.forecast_id
    where s.table_id = ${table.id}
      and s.rev = 1
      and s.status = 'scored'
      and f.cutoff_seq < ${seq}
      and s.settled_seq >= ${seq}
    order by f.seq`;
  return rows.map(({ id }) => id);
}

function revisedScores(): Promise<Scored[]> {
  return sql<Scored[]>`
    select 'f' || table_id || '-' || forecast_seq as "forecastId", rev, reason
    from score_revisions
    where table_id = ${table.id}
    order by revision`;
}

/** Fails unless every score of the table, in the order of the chain, follows the one before and the head is the last. */
async function expectOneChain(): Promise<void> {
  const links = await sql<{ before: string; after: string }[]>`
    select encode(prev_hash, 'hex') as before, encode(substr(hashes, length(hashes) - 31), 'hex') as after
    from score_sets
    where table_id = ${table.id}
    union all
    select encode(prev_hash, 'hex'), encode(hash, 'hex')
    from score_revisions
    where table_id = ${table.id}`;
  const next = new Map(links.map(({ before, after }) => [before, after]));
  expect(next.size).toBe(links.length);
  let hash = "0".repeat(64);
  for (let n = 0; n < links.length; n++) hash = next.get(hash) ?? "broken";
  const [head] = await sql`select encode(score_hash, 'hex') as hash from table_heads where table_id = ${table.id}`;
  expect(head).toEqual({ hash });
}

/** Plays on from what is stored. */
async function playOn(count: number): Promise<PassState> {
  return givePasses(sql, table, rounds(count), { from: await loadState(sql, table.id) });
}

/** The forecasts that were open when the round was disputed and have ended since, with their reasons. */
async function reasonsOfEnded(seqs: readonly bigint[]): Promise<Set<string>> {
  const rows = await sql<{ reason: string }[]>`
    select distinct reason
    from scores
    where table_id = ${table.id}
      and forecast_id = any(${seqs.map((seq) => `f${table.id}-${seq}`)}::text[])`;
  return new Set(rows.map(({ reason }) => reason));
}

describe("a round that a person revises", () => {
  it("voids each forecast that was scored across it, once, with rev 2, in the chain of scores", async () => {
    await givePasses(sql, table, rounds(80));
    const expected = await scoredAcross(30);
    expect(expected.length).toBeGreaterThan(3);
    await sql.begin((tx) => reviseRound(tx, { tableId: table.id, roundId: "30" }, { ...ANN, to: null }));
    expect(await revisedScores()).toEqual(expected.map((forecastId) => ({ forecastId, rev: 2, reason: 5 })));
    await expectOneChain();
    expect(await listTablesToRevise(sql, table.house)).toEqual([]);
    const { head } = await loadState(sql, table.id);
    expect(await revise()).toMatchObject({ voided: 0, head: { scoreHash: head.scoreHash } });
    await playOn(5);
    await expectOneChain();
  });

  it("voids windows that are open across it by the pass that settles them", async () => {
    const { open } = await givePasses(sql, table, rounds(40));
    await sql.begin((tx) => reviseRound(tx, { tableId: table.id, roundId: "40" }, { ...ANN, to: 777n }));
    const across = open.filter(({ cutoffSeq }) => cutoffSeq < 40n);
    expect(across.length).toBeGreaterThan(0);
    const after = await playOn(1);
    expect(after.open.filter(({ seq }) => across.some((forecast) => forecast.seq === seq))).toEqual([]);
    expect(await reasonsOfEnded(across.map(({ seq }) => seq))).toEqual(new Set(["operator"]));
    await expectOneChain();
  });

  it("that was revised twice keeps one revision of each score", async () => {
    await givePasses(sql, table, rounds(60));
    const which = { tableId: table.id, roundId: "30" };
    await sql.begin((tx) => reviseRound(tx, which, { ...ANN, to: null }));
    const first = await revisedScores();
    await sql.begin((tx) => reviseRound(tx, which, { ...ANN, to: 300n }));
    expect(await revisedScores()).toEqual(first);
  });
});

describe("several disputed rounds", () => {
  it("void each forecast across them once, by the first of them and its first cause", async () => {
    await givePasses(sql, table, rounds(90));
    await sql`
      insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
      select ${table.id}::integer, (n * 7 % 60 + 20)::text, 1, n + 1, ''
      from generate_series(1, 30) n`;
    await sql`
      insert into round_revision (table_id, seq, round_id, from_hundredths, reason, decided_by, prev_hash, hash)
      select ${table.id}::integer, n, n::text, 100, 'test', 'ann', '', ''
      from unnest(array[27, 41, 85]) n`;
    const expected = await sql`
      select distinct on (s.forecast_seq) s.forecast_seq, d.reason, d.cause
      from scores s
      join (
        select round_id::bigint as seq, 3 as reason, id as cause from conflicts where table_id = ${table.id}
        union all
        select seq, 5, id from round_revision where table_id = ${table.id}
      ) d on d.seq > s.cutoff_seq and d.seq <= s.settled_seq
      where s.table_id = ${table.id}
        and s.status = 'scored'
      order by s.forecast_seq, d.seq, d.reason, d.cause`;
    expect(new Set(expected.map(({ reason }) => reason as unknown))).toEqual(new Set([3, 5]));
    await revise();
    expect(
      await sql`
        select forecast_seq, reason, cause
        from score_revisions
        where table_id = ${table.id}
        order by forecast_seq`,
    ).toEqual([...expected]);
    await expectOneChain();
  });

  it("with thousands of results each are read once, so that the statement ends", async () => {
    await givePasses(sql, table, rounds(250), { times: timesFrom(Date.now() - 3_600_000, 4_000) });
    const [expected] = await sql<{ n: number }[]>`
      select count(*)::integer as n
      from scores
      where table_id = ${table.id}
        and status = 'scored'
        and 25 > cutoff_seq
        and 25 <= settled_seq`;
    await sql`
      insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
      select ${table.id}::integer, '25', 1, n + 1, ''
      from generate_series(1, 10000) n`;
    const { voided } = await sql.begin(async (tx) => {
      await tx`set local statement_timeout = '3s'`;
      return reviseScores(tx, table.id);
    });
    expect(voided).toBe(expected?.n);
    expect(voided).toBeGreaterThan(0);
  });
});

describe("a round that is received with another result", () => {
  it("by a poll voids the forecasts across it as a conflict, and deciding it changes no score again", async () => {
    const state = await givePasses(sql, table, rounds(60));
    const expected = await scoredAcross(50);
    const across = state.open.filter(({ cutoffSeq }) => cutoffSeq < 50n);
    await givePasses(sql, table, [{ roundId: "50", hundredths: 9_999 }], { from: state });
    expect(await listTablesToRevise(sql, table.house)).toEqual([{ id: table.id, name: table.name }]);
    const { voided, windows } = await revise();
    expect({ voided, windows }).toEqual({ voided: expected.length, windows: expected.length - 1 });
    expect(await revisedScores()).toEqual(expected.map((forecastId) => ({ forecastId, rev: 2, reason: 3 })));
    const [conflict] = await sql<{ id: bigint }[]>`select id from conflicts where table_id = ${table.id}`;
    await sql.begin((tx) => decideConflict(tx, conflict?.id ?? 0n, { ...ANN, take: "other" }));
    expect(await revise()).toMatchObject({ voided: 0 });
    await playOn(1);
    expect(await reasonsOfEnded(across.map(({ seq }) => seq))).toEqual(new Set(["conflict"]));
    await expectOneChain();
  });

  it("by reading stored payloads again voids them in the same transaction", async () => {
    await givePasses(
      sql,
      table,
      rounds(20).map((hundredths) => hundredths * 100),
    );
    const [before] = await sql<{ n: number }[]>`
      select count(*)::integer as n from scores where table_id = ${table.id} and status = 'scored'`;
    await makeTable(sql, { feed: feedEntry({ scale: 0.1 }) }, { id: table.house });
    const settings = await loadHouse(sql, () => undefined, table.house);
    if (settings === null) throw new Error("there is no house");
    const range = { house: table.house, tableId: null, from: atSecond(0), to: atSecond(7200), state: null };
    const { signal } = new AbortController();
    const work = { dryRun: false, by: "ann", most: 1000, signal };
    expect(await rereadRange(sql, settings, createProver(), range, work)).toMatchObject({ conflicts: 20, rounds: 0 });
    expect(await revisedScores()).toHaveLength(before?.n ?? 0);
    await expectOneChain();
    expect(await rereadRange(sql, settings, createProver(), range, work)).toMatchObject({ conflicts: 0 });
    expect(await revise()).toMatchObject({ voided: 0 });
  });
});
