import { describe, expect, it } from "vitest";
import { timesFrom } from "../../support/passes.ts";
import { generatedRounds } from "../streams.ts";
import { createWorld, type World } from "../world.ts";

const GAMES = generatedRounds(80).map(({ hundredths }) => hundredths);

async function publishedOf({ sql, tableId }: World) {
  const [row] = await sql<{ reading: { seq: string; rounds: number; facts: { name: string }[] } }[]>`
    select reading
    from published_readings
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

/** Lets the ten seconds between two published readings pass. */
async function waitForTurn({ sql, tableId }: World): Promise<void> {
  await sql`
    update published_readings
    set reading = jsonb_set(reading, '{made_at}', '"2026-11-21T04:00:00.0000000Z"')
    where table_id = ${tableId}`;
}

describe("readings", () => {
  it("are published with the rounds that the model learns, at most every ten seconds", async () => {
    const world = await createWorld();
    await world.play(GAMES.slice(0, 60));
    const published = await publishedOf(world);
    expect(published).toMatchObject({ seq: "60", rounds: 60 });
    expect(published?.facts.map(({ name }) => name)).toContain("gap:pink");
    await world.play([150]);
    expect(await publishedOf(world)).toEqual(published);
    await waitForTurn(world);
    await world.play([150]);
    expect(await publishedOf(world)).toMatchObject({ seq: "62", rounds: 62 });
  });

  it("are published immediately when a fact becomes unusual", async () => {
    const world = await createWorld();
    await world.play(GAMES.slice(0, 60));
    const before = await publishedOf(world);
    await world.play(Array.from({ length: 40 }, (_, n) => 5_000 + n)); // no fair table does that
    expect((await publishedOf(world))?.seq).not.toBe(before?.seq);
  });

  it("keep what the house declared when the table began, though the file may say something else by now", async () => {
    const world = await createWorld();
    await world.play(GAMES.slice(0, 10));
    await world.sql`update tables set settings = settings || '{"house_edge": 0.2}' where id = ${world.tableId}`;
    await waitForTurn(world);
    await world.play(GAMES.slice(10, 20));
    expect((await auditsOf(world)).at(-1)).toMatchObject({ edge_ppm: 10_000, tested: 20 });
  });
});

describe("the audit of a house", () => {
  it("has a row of each hour with rounds, which counts what is proven, missing, and in conflict", async () => {
    const world = await createWorld();
    const times = timesFrom(Date.now() - 2 * 3_600_000, 1_000);
    const old = [150, 250].map((hundredths, at) => ({ hundredths, roundId: String(at + 1) }));
    await world.play(old, world.tableId, { times });
    await world.play([{ hundredths: 260, roundId: "2" }]);
    await world.play([{ hundredths: 150, roundId: "5", proofHash: "ab".repeat(32), verified: true }]);
    expect(await auditsOf(world)).toMatchObject([
      { seq: "2", rounds: 2, tested: 2, proven: 0, missing: 0, gaps: 0, conflicts: 0 },
      { seq: "3", rounds: 3, tested: 3, proven: 1, missing: 2, gaps: 1, conflicts: 1 },
    ]);
    await waitForTurn(world);
    await world.addLate("computed", [{ hundredths: 9900, roundId: "3", proofHash: "cd".repeat(32), verified: true }]);
    expect((await auditsOf(world)).at(-1)).toMatchObject({ seq: "4", rounds: 4, tested: 3, proven: 2, missing: 1 });
  });

  it("counts failed proofs, also after their rows are deleted", async () => {
    const world = await createWorld();
    await world.sql`
      insert into quarantine (table_id, code, reason, item, item_sha256)
      values (${world.tableId}, 'proof_mismatch', 'another multiplier', '{}', 'a')`;
    await world.play([150]);
    await world.sql`delete from quarantine where table_id = ${world.tableId}`;
    await waitForTurn(world);
    await world.play([250]);
    expect(await auditsOf(world)).toMatchObject([{ proofs_failed: 1, rounds: 2 }]);
  });
});
