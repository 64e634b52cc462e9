import { describe, expect, test } from "vitest";
import { reviseRound } from "../../src/corrections/revision.ts";
import { multiplierText } from "../../src/rounds/round.ts";
import { listTablesToVerify } from "../../src/verify/verified-table-store.ts";
import { readAroundUnproven } from "../../src/verify/verify-unproven-store.ts";
import { verify } from "../../src/verify/verify.ts";
import { walkTable } from "../../src/verify/walk.ts";
import { provable, provenGames } from "../forecasts/full-world.ts";
import { createWorld, type Play, type World } from "../forecasts/world.ts";

type Game = ReturnType<typeof provenGames>[number];

/** Games 2000 to 2009. */
const GAMES = provenGames(2000, 10);

/** A game as a house lists it that omits its hash. */
function withoutHash({ roundId, hundredths }: Game): Play & { roundId: string } {
  return { roundId, hundredths };
}

/** The same with another result. */
function wrong(game: Game): Play & { roundId: string } {
  return { roundId: game.roundId, hundredths: game.hundredths + 1 };
}

/** A table whose house lists these rounds, one per response. */
async function tableOf(rounds: readonly Play[], settings = provable()): Promise<World> {
  const world = await createWorld({ tables: [settings] });
  await world.play(rounds, world.tableId, { atOnce: 1 });
  return world;
}

async function failureOf({ sql, tableId, tableName }: World) {
  const { first_failure: failure } = await verify(sql, { tableId });
  return failure && { ...failure, id: failure.id.replace(`${tableName} `, "") };
}

/** The games with one of them replaced. */
function replaced(at: number, change: (game: Game) => Play): Play[] {
  return GAMES.map((game, place) => (place === at ? change(game) : game));
}

describe("a round without a proof of its own", () => {
  test("passes if its result follows from the next proven round", async () => {
    expect(await failureOf(await tableOf(replaced(4, withoutHash)))).toBeNull();
  });

  test("is named with its true result if it contradicts the next proven round", async () => {
    const { roundId, hundredths } = GAMES[4] as Game;
    expect(await failureOf(await tableOf(replaced(4, wrong)))).toEqual({
      kind: "round",
      id: roundId,
      expected: `${multiplierText(hundredths)}x, which follows from the hash of round 2005`,
      found: expect.stringMatching(
        `^${multiplierText(hundredths + 1)}x, without a proof of its own; correct it with \`roundhouse round revise\``,
      ) as string,
    });
  });

  test("is checked across other such rounds and missing ones", async () => {
    const [first, second, , fourth, , ...proven] = GAMES as [Game, Game, Game, Game, Game, ...Game[]];
    const rest = [withoutHash(fourth), ...proven];
    expect(await failureOf(await tableOf([first, wrong(second), ...rest]))).toMatchObject({
      id: second.roundId,
      expected: expect.stringMatching("hash of round 2005") as string,
    });
    expect(await failureOf(await tableOf([first, withoutHash(second), ...rest]))).toBeNull();
  });

  test("is checked if it was stored after the proven one, as by an import", async () => {
    const world = await tableOf(GAMES.slice(5));
    await world.addLate("import", GAMES.slice(0, 3).map(withoutHash));
    expect(await failureOf(world)).toBeNull();
    await world.addLate("import", [wrong(GAMES[3] as Game)]);
    expect(await failureOf(world)).toMatchObject({ id: "2003" });
  });

  test("is checked if its hash was never proven", async () => {
    const unproven = ({ roundId, hundredths }: Game) => ({ roundId, hundredths, proofHash: "cd".repeat(32) });
    expect(await failureOf(await tableOf(replaced(0, unproven)))).toBeNull();
    const other = (game: Game) => unproven({ ...game, hundredths: game.hundredths + 1 });
    expect(await failureOf(await tableOf(replaced(0, other)))).toMatchObject({ id: "2000" });
  });

  test("is accepted after the newest proven round", async () => {
    expect(await failureOf(await tableOf(replaced(9, wrong)))).toBeNull();
    expect(await failureOf(await tableOf(GAMES.map(wrong)))).toBeNull();
  });

  test("is accepted outside of the era and up to the published end of the chain", async () => {
    const rounds = replaced(3, wrong);
    expect(await failureOf(await tableOf(rounds, provable({ from: 2003 })))).toMatchObject({ id: "2003" });
    expect(await failureOf(await tableOf(rounds.slice(3), provable({ from: 2004 })))).toBeNull();
    expect(await failureOf(await tableOf(rounds.slice(3), provable({ terminating_id: 2002 })))).not.toBeNull();
    expect(await failureOf(await tableOf(rounds.slice(3), provable({ terminating_id: 2003 })))).toBeNull();
  });

  test("is accepted if ids have no order", async () => {
    const settings = { ...provable(), round_ids: "opaque" };
    expect(await failureOf(await tableOf(replaced(4, wrong), settings))).toBeNull();
  });
});

test("10,000 numbers between two stored rounds are walked, and no more", async () => {
  const games = provenGames(2000, 10_002);
  const [first, second, ...later] = games as [Game, Game, ...Game[]];
  const last = later.at(-1) as Game;
  expect(await failureOf(await tableOf([wrong(second), last]))).toMatchObject({ id: "2001" });
  expect(await failureOf(await tableOf([wrong(first), last]))).toBeNull();
  const between = withoutHash(later[0] as Game);
  expect(await failureOf(await tableOf([wrong(first), between, last]))).toMatchObject({ id: "2000" });
});

test("a decision on the round counts instead of its result", async () => {
  const world = await tableOf(replaced(4, wrong));
  const { roundId, hundredths } = GAMES[4] as Game;
  const decide = (to: number | null) =>
    world.sql.begin((tx) =>
      reviseRound(
        tx,
        { tableId: world.tableId, roundId },
        { to: to === null ? null : BigInt(to), by: "anna", reason: "asked the house" },
      ),
    );
  expect(await decide(hundredths + 2)).toMatchObject({ ok: true });
  expect(await failureOf(world)).toMatchObject({
    id: roundId,
    found: expect.stringMatching(`^${multiplierText(hundredths + 2)}x`) as string,
  });
  expect(await decide(hundredths)).toMatchObject({ ok: true });
  expect(await failureOf(world)).toBeNull();
  expect(await decide(null)).toMatchObject({ ok: true });
  expect(await failureOf(world)).toBeNull();
});

test("a proven round whose hash leads over such a round to another than the proven one before it is named", async () => {
  const forked = provenGames(2000, 11); // the same hashes, each for the round after its own
  const rounds = [...GAMES.slice(0, 4), withoutHash(forked[4] as Game), ...forked.slice(5, 10)];
  expect(await failureOf(await tableOf(rounds))).toMatchObject({
    kind: "round",
    id: "2005",
    expected: expect.stringMatching("the proven hash of round 2003") as string,
  });
});

describe("the rounds that are read", () => {
  /** The numbers that the check reads in this table, or null if it reads none. */
  const numbersRead = ({ sql, tableId }: World) =>
    sql.begin(async (tx) => {
      const [table] = await listTablesToVerify(tx, tableId);
      if (table === undefined) throw new Error("expected the table, found none");
      const walked = await walkTable(tx, table, { rounds: 0, forecasts: 0, scores: 0 }, () => undefined);
      if ("kind" in walked) throw new Error(`expected no failure, found ${walked.kind}`);
      if (walked.unproven === null) return null;
      const numbers: number[] = [];
      for await (const { number } of readAroundUnproven(tx, tableId, walked.unproven)) numbers.push(Number(number));
      return numbers;
    });

  test("are those without a proof and their neighbors", async () => {
    const rounds = GAMES.map((game, at) => (at === 1 || at === 7 ? withoutHash(game) : game));
    expect(await numbersRead(await tableOf(rounds))).toEqual([2008, 2007, 2006, 2002, 2001, 2000]);
  });

  test("are none without a round that a later proven one determines", async () => {
    expect(await numbersRead(await tableOf(GAMES))).toBeNull();
    expect(await numbersRead(await tableOf(replaced(9, withoutHash)))).toBeNull();
    expect(await numbersRead(await tableOf(GAMES.map(withoutHash)))).toBeNull();
    expect(await numbersRead(await tableOf(replaced(3, withoutHash), provable({ from: 2004 })))).toBeNull();
  });
});
