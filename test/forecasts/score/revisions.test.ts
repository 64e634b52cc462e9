import { describe, expect, test } from "vitest";
import { listPublished } from "../../../src/forecasts/accuracy/published-store.ts";
import { voidsOf } from "../../../src/forecasts/accuracy/figures/sums.ts";
import { runRollingCalibration } from "../../../src/calibration/calibrate.ts";
import { compareCalibrations } from "../../../src/calibration/compare.ts";
import { requestManualRun } from "../../../src/calibration/manual-request.ts";
import { runManualCalibration } from "../../../src/calibration/manual-calibration.ts";
import { K7_1 } from "../../../src/forecasts/model/parameters.ts";
import { promoteCalibration } from "../../../src/calibration/promote.ts";
import { verify } from "../../../src/verify/verify.ts";
import { decideConflict, decideConflicts, reviseRound, type Outcome } from "../../../src/corrections/revision.ts";
import { generatedRounds } from "../streams.ts";
import { timesFrom } from "../../support/passes.ts";
import { createWorld, type World, type WorldOptions } from "../world.ts";

const never = new AbortController().signal;
const who = { by: "ann@example.com", reason: "the house said so" };

const decide = (world: World, take: "kept" | "other", by = who.by): Promise<Outcome> =>
  world.sql.begin(async (tx) => {
    const [conflict] = await tx<{ id: bigint }[]>`
      select id from conflicts where table_id = ${world.tableId} order by id desc limit 1`;
    return decideConflict(tx, conflict?.id ?? 0n, { ...who, take, by });
  });

const revise = (world: World, roundId: string, to: bigint | null, tableId = world.tableId): Promise<Outcome> =>
  world.sql.begin((tx) => reviseRound(tx, { tableId, roundId }, { ...who, to }));

/** A table on which every round had its forecasts. */
async function playedWorld(rounds = 12, options: WorldOptions = {}): Promise<World> {
  const world = await createWorld(options);
  await world.play(
    generatedRounds(rounds).map(({ hundredths }) => hundredths),
    world.tableId,
    { atOnce: 1 },
  );
  return world;
}

/** The house lists another result for a round. */
async function contradict(world: World, roundId: string): Promise<void> {
  const [round] = await world.sql<{ hundredths: bigint }[]>`
    select hundredths from rounds where table_id = ${world.tableId} and round_id = ${roundId}`;
  await world.play([{ roundId, hundredths: Number(round?.hundredths) + 1 }]);
}

async function scoresOn(world: World, roundId: string): Promise<{ rev: number; reason: string }[]> {
  return world.sql`
    select s.rev, s.reason
    from rounds r
    join scores s on s.table_id = r.table_id and s.settled_seq = r.seq
    where r.table_id = ${world.tableId}
      and r.round_id = ${roundId}
      and s.feature_code = 0
    order by s.rev`;
}

async function noticeOf(world: World): Promise<string | null> {
  const [row] = await world.sql<{ text: string | null }[]>`
    select text from notices where table_id = ${world.tableId} and kind = 'conflict' and closed_at is null`;
  return row?.text ?? null;
}

async function openWindows(world: World): Promise<number> {
  const [row] = await world.sql<{ n: number }[]>`
    select count(*)::integer as n from open_forecasts
    where table_id = ${world.tableId} and feature like 'window:%' and cutoff_seq <= 6`;
  return row?.n ?? 0;
}

describe("a conflict that a person decides", () => {
  test("leaves the round as first received, whichever result is chosen, and opens a notice", async () => {
    const world = await playedWorld();
    const [before] = await world.sql`select * from rounds where table_id = ${world.tableId} and round_id = '1008'`;
    await contradict(world, "1008");
    await world.add();
    expect(await scoresOn(world, "1008")).toMatchObject([
      { rev: 1, reason: "" },
      { rev: 2, reason: "conflict" },
    ]);
    const outcome = await decide(world, "other");
    const first = BigInt(String(before?.["hundredths"]));
    expect(outcome).toMatchObject({ ok: true, revised: { roundId: "1008", from: first, to: first + 1n } });
    expect(await noticeOf(world)).toContain("round 1008 was corrected from ");
    expect(await world.sql`select * from rounds where table_id = ${world.tableId} and round_id = '1008'`).toEqual([
      before,
    ]);
    await world.add();
    expect(await scoresOn(world, "1008")).toHaveLength(2);
    await world.add();
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
  });

  test("is kept with a revision that changes nothing, and its notice ends", async () => {
    const world = await playedWorld(4);
    await contradict(world, "1003");
    const outcome = await decide(world, "kept");
    expect(outcome.ok && outcome.revised.from === outcome.revised.to).toBe(true);
    expect(await noticeOf(world)).toBeNull();
    await world.add();
    expect((await scoresOn(world, "1003")).at(-1)).toMatchObject({ reason: "conflict" });
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
  });

  test("is decided by one of two concurrent requests, and the other one learns by whom", async () => {
    const world = await playedWorld(3);
    await contradict(world, "1002");
    const outcomes = await Promise.all([decide(world, "kept", "ann"), decide(world, "other", "bob")]);
    const decided = outcomes.filter(({ ok }) => ok);
    expect(decided).toHaveLength(1);
    const late = outcomes.find(({ ok }) => !ok);
    expect(late).toMatchObject({ problem: expect.stringMatching(/is already decided, at .* by (ann|bob) \(/) });
    const [row] = await world.sql`select count(*)::integer as n from round_revision where table_id = ${world.tableId}`;
    expect(row).toEqual({ n: 1 });
  });
});

describe("several conflicts", () => {
  async function conflictsOf(world: World, roundIds: readonly string[]): Promise<bigint[]> {
    for (const roundId of roundIds) await contradict(world, roundId);
    const rows = await world.sql<{ id: bigint }[]>`
      select id from conflicts where table_id = ${world.tableId} order by id desc`;
    return rows.map(({ id }) => id);
  }

  test("are decided in the same way, all or none, and the second request learns of the first", async () => {
    const world = await playedWorld(6);
    const ids = await conflictsOf(world, ["1002", "1003", "1005"]);
    const decideAll = (some: readonly bigint[], take: "kept" | "other" = "other") =>
      world.sql.begin((tx) => decideConflicts(tx, some, { ...who, take }));
    expect(await decideAll([...ids, 999_999n])).toMatchObject({ ok: false, problem: "there is no conflict 999999" });
    expect(await decideAll([])).toMatchObject({ ok: false });
    const both = await Promise.all([decideAll(ids), decideAll(ids.slice(1), "kept")]);
    expect(both.filter(({ ok }) => ok)).toHaveLength(1);
    const late = both.find(({ ok }) => !ok);
    expect(late).toMatchObject({ problem: expect.stringMatching(/is already decided, .*; nothing was changed$/) });
    await decideAll(ids);
    await world.add();
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
  });

  test("can be decided while their forecasts are voided, and neither waits for the other in a circle", async () => {
    const world = await playedWorld(9);
    for (let round = 0; round < 3; round++) {
      const ids = await conflictsOf(world, [`${1002 + round * 2}`, `${1003 + round * 2}`]);
      const open = ids.slice(0, 2);
      await Promise.all([world.sql.begin((tx) => decideConflicts(tx, open, { ...who, take: "kept" })), world.add()]);
    }
    await world.add();
    expect(await scoresOn(world, "1007")).toMatchObject([{ reason: "" }, { reason: "conflict" }]);
  });
});

describe("a round that a person corrects", () => {
  test("voids every score on it with the next rev, and windows that are still open are void with the next round", async () => {
    const world = await playedWorld(8);
    expect(await openWindows(world)).toBeGreaterThan(0);
    expect(await revise(world, "1007", 500n)).toMatchObject({ ok: true });
    await world.add();
    expect(await scoresOn(world, "1007")).toMatchObject([
      { rev: 1, reason: "" },
      { rev: 2, reason: "operator" },
    ]);
    await world.play([150]);
    expect(await openWindows(world)).toBe(0);
    await world.add();
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true, first_failure: null });
    const scores = await world.sql`select count(*)::integer as n from scores where table_id = ${world.tableId}`;
    await world.add();
    expect(await world.sql`select count(*)::integer as n from scores where table_id = ${world.tableId}`).toEqual(
      scores,
    );
  });

  test("is followed by every period that its forecasts are in, also when their day is over, and by none other", async () => {
    const world = await createWorld({ ownDatabase: true });
    const times = timesFrom(Date.now() - 30 * 3_600_000, 20_000);
    const old = generatedRounds(6).map(({ hundredths }) => hundredths);
    await world.play(old, world.tableId, { atOnce: 1, times });
    await world.play(
      generatedRounds(4).map(({ hundredths }) => hundredths),
      world.tableId,
      { atOnce: 1 },
    );
    const published = async () => {
      await world.add();
      const { rows } = await listPublished(world.sql, { tableIds: [world.tableId], feature: "next_color" });
      return rows.map(({ period, sums }) => ({ period, scored: sums.n, void: voidsOf(sums) }));
    };
    const before = await published();
    expect(before.map(({ period }) => period)).toEqual(["24h", "7d", "30d", "90d", "all"]);
    await revise(world, "1004", 777n);
    expect(await published()).toEqual(
      before.map(({ period, scored, void: voided }) =>
        period === "24h" ? { period, scored, void: voided } : { period, scored: scored - 1n, void: voided + 1n },
      ),
    );
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true, first_failure: null });
  });

  test("before anything was settled on it is void immediately", async () => {
    const world = await playedWorld(4);
    await world.play([200], world.tableId, { at: { maySettle: false } });
    await revise(world, "1005", 300n);
    await world.play([250]);
    expect(await scoresOn(world, "1005")).toMatchObject([{ rev: 1, reason: "operator" }]);
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true });
  });

  test("is refused if nothing would change, if there is no such round, and against its proof", async () => {
    const world = await createWorld();
    await world.play([{ hundredths: 150, proofHash: "ab".repeat(32), verified: true }]);
    expect(await revise(world, "1001", 150n)).toMatchObject({
      ok: false,
      problem: expect.stringContaining("nothing to"),
    });
    expect(await revise(world, "7", 150n)).toMatchObject({ ok: false, problem: expect.stringContaining("no round 7") });
    expect(await revise(world, "1001", 160n)).toMatchObject({
      ok: false,
      problem: expect.stringContaining("is proven"),
    });
    expect(await revise(world, "1001", null)).toMatchObject({ ok: true });
    expect(await revise(world, "1001", null)).toMatchObject({
      ok: false,
      problem: expect.stringContaining("void already"),
    });
    expect(await revise(world, "1001", 150n)).toMatchObject({ ok: true });
  });

  test("stays on record: a revision cannot be changed or deleted, and verify detects a false one", async () => {
    const world = await playedWorld(3, { ownDatabase: true });
    await revise(world, "1002", 900n);
    await expect(world.sql`update round_revision set to_hundredths = 100, to_color = 'blue'`).rejects.toThrow(
      /stays as it was made/,
    );
    await expect(world.sql`delete from round_revision`).rejects.toThrow(/stays as it was made/);
    await world.add();
    await world.sql`alter table round_revision disable trigger round_revision_is_append_only`;
    const failure = async () => (await verify(world.sql, { tableId: world.tableId })).first_failure;
    expect(await failure()).toBeNull();
    await revise(world, "1003", 950n);
    await revise(world, "1003", 990n);
    await world.add();
    await world.sql`create table kept as select * from round_revision`;
    const forgeries: [string, string][] = [
      ["update round_revision set from_hundredths = from_hundredths + 1 where id = 1", "1002 1"],
      ["update round_revision set to_hundredths = 991 where id = 3", "1003 3"],
      ["update round_revision set decided_by = 'nobody' where id = 2", "1003 2"],
      ["delete from round_revision where id = 1", "1003 2"],
      ["delete from round_revision where id = 3", "1003"],
      [
        `insert into round_revision (table_id, seq, round_id, from_hundredths, to_hundredths, to_color, reason, decided_by, prev_hash, hash)
         select table_id, seq, round_id, 990, 980, to_color, 'mine', 'me', hash, repeat('0', 64) from round_revision where id = 3`,
        "1003 4",
      ],
    ];
    for (const [forgery, id] of forgeries) {
      await world.sql.unsafe(forgery);
      expect(await failure(), forgery).toMatchObject({ kind: "revision", id: `${world.tableName} ${id}` });
      await world.sql`truncate round_revision`;
      await world.sql`insert into round_revision overriding system value select * from kept`;
    }
    expect(await failure()).toBeNull();
  });
});

describe("revisions in replays", () => {
  async function calibrate(world: World, tableId: number, table: string) {
    const request = { tableId, table, from: undefined, to: undefined, thresholds: null, outFile: null };
    const run = await requestManualRun(world.sql, { ...request, parameters: K7_1, replayOrder: "taken" });
    const steps = { roundsPerChunk: 7, roundsPerCheckpoint: 14 };
    return runManualCalibration(world.sql, run, { signal: never, steps });
  }

  test("of a late round change no manual run: no model learned it, so nothing is missing if it is void", async () => {
    const world = await createWorld();
    const rounds = generatedRounds(30).map(({ hundredths }, i) => ({ hundredths, roundId: String(1 + i) }));
    await world.play(rounds.slice(0, 15));
    await world.addLate("computed", [{ hundredths: 777, roundId: "0" }]);
    await world.play(rounds.slice(15).map((round) => ({ ...round, afterGap: false })));
    const before = await calibrate(world, world.tableId, world.tableName);
    await revise(world, "0", null);
    const after = await calibrate(world, world.tableId, world.tableName);
    expect(after).toMatchObject({ rounds: 30, state_hash: before.state_hash, log_loss: before.log_loss });
  });

  test("affect manual runs alone, as if the rounds had been received so: corrected ones, and void ones as missing", async () => {
    const world = await createWorld({ tables: [{}, {}] });
    const [first = 0, twin = 0] = world.tableIds;
    const rounds = generatedRounds(60).map(({ hundredths }, i) => ({
      hundredths,
      roundId: String(1 + i),
      afterGap: false,
    }));
    await world.play(rounds, first);
    const changed = rounds
      .map((round) => (round.roundId === "30" ? { ...round, hundredths: 5_000 } : round))
      .map((round) => (round.roundId === "43" ? { ...round, afterGap: true } : round))
      .filter(({ roundId }) => roundId !== "41" && roundId !== "42");
    await world.play(changed, twin);
    await revise(world, "30", 4_000n, first);
    await revise(world, "30", 5_000n, first);
    await revise(world, "41", null, first);
    await revise(world, "42", null, first);
    const [revised, asPlayed] = [
      await calibrate(world, first, world.tableName),
      await calibrate(world, twin, "the twin"),
    ];
    expect(revised.rounds).toBe(58);
    expect(revised).toMatchObject({ state_hash: asPlayed.state_hash, log_loss: asPlayed.log_loss });
    await revise(world, "50", 9_900n, first);
    await revise(world, "52", null, first);
    const [live] = await world.sql<
      { hash: string }[]
    >`select encode(state_hash, 'hex') as hash from model_snapshots where table_id = ${first}`;
    expect(live?.hash).not.toBe(revised.state_hash);

    // its record proves itself with the revisions it saw, before and after it is promoted and rolled forward
    const again = await calibrate(world, first, world.tableName);
    expect(again.state_hash).not.toBe(revised.state_hash);
    const twice = await calibrate(world, first, world.tableName);
    expect(twice).toMatchObject({ state_hash: again.state_hash, log_loss: again.log_loss });
    const compared = await compareCalibrations(world.sql, [revised.calibration_id, again.calibration_id]);
    expect(compared.paired.rounds).toBe(56); // without 52, which is void for one, and 50, which the two read differently
    await world.play([{ hundredths: 321, roundId: "61" }], first);
    const promoted = await promoteCalibration(world.sql, revised.calibration_id, { by: "ann", reason: "corrected" });
    await world.play(
      generatedRounds(64).map(({ hundredths }) => hundredths),
      first,
    );
    const [run] = await world.sql<{ id: string }[]>`
      insert into calibration_runs (table_id, kind, model) select table_id, 'rolling', model from table_heads where table_id = ${first} returning id::text as id`;
    expect(await runRollingCalibration(world.sql, run?.id ?? "", never)).toMatchObject({ isMet: true });
    await compareCalibrations(world.sql, [promoted.calibration_id, again.calibration_id]);
    await world.add();
    expect(await verify(world.sql, { tableId: world.tableId })).toMatchObject({ ok: true, first_failure: null });
  });
});
