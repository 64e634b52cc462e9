import { describe, expect, it } from "vitest";
import { verify } from "../../../src/forecasts/verify/verify.ts";
import { generatedRounds } from "../streams.ts";
import { createWorld, saveConflict, type World } from "../world.ts";

const GAMES = generatedRounds(120).map(({ hundredths }) => hundredths);

async function readingOf({ sql, tableId }: World) {
  const [row] = await sql<{ text: string; hash: string; seq: string }[]>`
    select memory as text, memory_hash as hash, learned_seq::text as seq
    from reading_memories
    where table_id = ${tableId}`;
  return row;
}

async function publishedOf({ sql, tableId }: World) {
  const [row] = await sql<
    { reading: { seq: string; rounds: number; facts: { name: string; value: number | null }[] } | null }[]
  >`
    select reading
    from published_now
    where table_id = ${tableId}`;
  return row?.reading ?? null;
}

async function auditsOf({ sql, tableId }: World) {
  return sql<Record<string, unknown>[]>`
    select
      utc_text(hour) as hour, seq::text, rounds::integer, tested::integer, edge_ppm, ln_e::text, ln_e_max::text,
      proven::integer, missing::integer, gaps::integer, proofs_failed::integer, conflicts::integer
    from house_audits
    where table_id = ${tableId}
    order by hour`;
}

describe("readings", () => {
  it("are made with the rounds that the model learns, and twice is once", async () => {
    const world = await createWorld();
    await world.play(GAMES.slice(0, 60));
    await world.issue();
    const first = await readingOf(world);
    expect(first?.seq).toBe("60");
    const published = await publishedOf(world);
    expect(published).toMatchObject({ seq: "60", rounds: 60 });
    expect(published?.facts.map(({ name }) => name)).toContain("gap:pink");
    await world.issue();
    expect(await readingOf(world)).toEqual(first);
    expect(await publishedOf(world)).toEqual(published);
  });

  it("are the same however the rounds came: one by one, at once, or made anew after the memory was lost", async () => {
    const world = await createWorld();
    for (const game of GAMES.slice(0, 12)) {
      await world.play([game]);
      await world.issue();
    }
    await world.play(GAMES.slice(12));
    await world.issue();
    const [kept, audits, published] = [await readingOf(world), await auditsOf(world), await publishedOf(world)];
    const at = (row: typeof published) => ({ ...row, made_at: null });
    await world.sql`delete from reading_memories where table_id = ${world.tableId}`;
    await world.issue();
    expect(await readingOf(world)).toEqual(kept);
    expect(await auditsOf(world)).toEqual(audits);
    expect(at(await publishedOf(world))).toEqual(at(published));
    await world.sql`update reading_memories set memory = replace(memory, '"streak"', '"strike"') where table_id = ${world.tableId}`;
    await world.play([150]);
    await world.issue();
    const other = await createWorld();
    await other.play([...GAMES, 150]);
    await other.issue();
    expect((await readingOf(world))?.text).toBe((await readingOf(other))?.text);
  });

  it("keep what the house declared when the table began, though the file may say something else by now, until they are made anew", async () => {
    const world = await createWorld();
    await world.play(GAMES.slice(0, 10));
    await world.issue();
    await world.sql`update tables set settings = settings || '{"house_edge": 0.2}' where id = ${world.tableId}`;
    await world.play(GAMES.slice(10, 20));
    await world.issue();
    expect((await auditsOf(world)).at(-1)).toMatchObject({ edge_ppm: 10_000, tested: 20 });
    await world.sql`delete from reading_memories where table_id = ${world.tableId}`;
    await world.issue();
    expect((await auditsOf(world)).at(-1)).toMatchObject({ edge_ppm: 200_000, tested: 20 });
  });
});

describe("the audit of a house", () => {
  it("has a row of each hour with rounds, which counts what is proven, missing, and in conflict", async () => {
    const world = await createWorld();
    await world.play([
      { hundredths: 150, roundId: "1", requestedAgo: 7200 },
      { hundredths: 250, roundId: "2", requestedAgo: 7200 },
    ]);
    await world.issue();
    await saveConflict(world.sql, world.tableId, "2");
    await world.play([{ hundredths: 150, roundId: "5", proofHash: "ab".repeat(32) }]);
    await world.issue();
    expect(await auditsOf(world)).toMatchObject([
      { seq: "2", rounds: 2, tested: 2, proven: 0, missing: 0, gaps: 0, conflicts: 0 },
      { seq: "3", rounds: 3, tested: 3, proven: 1, missing: 2, gaps: 1, conflicts: 1 },
    ]);
    await world.play([{ hundredths: 9900, roundId: "3", late: true, source: "computed", proofHash: "cd".repeat(32) }]);
    await world.issue();
    expect((await auditsOf(world)).at(-1)).toMatchObject({ seq: "4", rounds: 4, tested: 3, proven: 2, missing: 1 });
  });

  it("counts proofs that failed, and goes on counting those that are deleted", async () => {
    const world = await createWorld();
    await world.sql`
      insert into quarantine (table_id, code, reason, item, item_sha256)
      values (${world.tableId}, 'proof_mismatch', 'another multiplier', '{}', 'a')`;
    await world.play([150]);
    await world.issue();
    await world.sql`delete from quarantine where table_id = ${world.tableId}`;
    await world.play([250]);
    await world.issue();
    expect(await auditsOf(world)).toMatchObject([{ proofs_failed: 1, rounds: 2 }]);
  });
});

describe("verify", () => {
  it("makes every reading and audit row anew, and names the one that was changed", async () => {
    const world = await createWorld({ ownDatabase: true });
    const { sql, tableId, tableName } = world;
    const rounds = GAMES.slice(0, 60).map((hundredths, index) => ({ hundredths, requestedAgo: index < 30 ? 7200 : 0 }));
    await world.play(rounds.slice(0, 30));
    await world.play(rounds.slice(30));
    await world.issue();
    await world.score();
    expect((await verify(sql)).first_failure).toBeNull();

    const [audit] = await auditsOf(world);
    const changes = [
      ["ln_e", "ln_e = ln_e - 1"],
      ["tested", "tested = tested + 1"],
      ["proven", "proven = proven - 1"],
      ["missing", "missing = missing + 1"],
      ["a deleted row", null],
    ] as const;
    for (const [, change] of changes) {
      const failure = await failureAfter(
        world,
        change === null
          ? `delete from house_audits where table_id = ${tableId} and hour = '${String(audit?.["hour"])}'`
          : `update house_audits set ${change} where table_id = ${tableId} and hour = '${String(audit?.["hour"])}'`,
      );
      expect(failure).toMatchObject({ kind: "audit", id: `${tableName} ${String(audit?.["hour"])}` });
    }
    for (const change of [
      `update reading_memories set memory_hash = repeat('0', 64) where table_id = ${tableId}`,
      `update reading_memories set memory = replace(memory, '"streak"', '"strike"') where table_id = ${tableId}`,
      `update reading_memories set memory = regexp_replace(memory, '"streak":[^,]*', '"streak":77'),
        memory_hash = encode(sha256(regexp_replace(memory, '"streak":[^,]*', '"streak":77')::bytea), 'hex')
        where table_id = ${tableId}`,
      `delete from reading_memories where table_id = ${tableId}`,
    ]) {
      expect(await failureAfter(world, change)).toMatchObject({ kind: "reading", id: tableName });
    }
    expect(
      await failureAfter(
        world,
        `update published_now set reading = jsonb_set(reading, '{rounds}', '7') where table_id = ${tableId}`,
      ),
    ).toMatchObject({ kind: "published_reading", id: tableName, found: "rounds 7" });
  });
});

/** What verify finds after a change, which is taken back. */
async function failureAfter({ sql }: World, change: string) {
  const tables = ["house_audits", "reading_memories", "published_now"];
  await sql.begin(async (tx) => {
    for (const table of tables) await tx.unsafe(`create table kept_${table} as table ${table}`);
  });
  const done = await sql.unsafe(change);
  expect(done.count).toBeGreaterThan(0);
  const { first_failure: failure } = await verify(sql);
  await sql.begin(async (tx) => {
    for (const table of tables) {
      await tx.unsafe(`delete from ${table}`);
      await tx.unsafe(`insert into ${table} select * from kept_${table}`);
      await tx.unsafe(`drop table kept_${table}`);
    }
  });
  return failure;
}
