import { describe, expect, it } from "vitest";
import { SIMULATED_GAMES } from "../../src/demo/simulated-games.ts";
import { playShift } from "../../src/demo/simulated-play.ts";
import { jsonFeed, readSimulated, simulatedTable, SIMULATED_TABLES, type Seen } from "./shipped.ts";
import { makeDemoHouse, START_MS, type Clock } from "./world.ts";

type House = Awaited<ReturnType<typeof makeDemoHouse>>;

const BALLOON = simulatedTable("balloon");
const ROCKET = simulatedTable("rocket");

async function bodiesOf(house: House): Promise<string[]> {
  return Promise.all(SIMULATED_TABLES.map(async (table) => (await house.get(jsonFeed(table).path)).text()));
}

/** Polls every feed once a second for some minutes, as a poller would, and notes what it meets and when. */
async function watch(house: House, minutes: number) {
  const met: { kind: string; game: string; atMs: number }[] = [];
  const counted = { answers: 0, rounds: 0 };
  const known = new Map(SIMULATED_TABLES.map(({ game }) => [game, new Map<string, Seen>()]));
  const lists = new Map(SIMULATED_TABLES.map(({ game }) => [game, [] as string[]]));
  for (let second = 0; second < minutes * 60; second += 1) {
    house.clock.nowMs = START_MS + second * 1_000;
    for (const table of SIMULATED_TABLES) {
      const { game } = table;
      const meet = (kind: string): void => void met.push({ kind, game, atMs: second * 1_000 });
      counted.answers += 1;
      const read = await readSimulated(house, table);
      if (read === null) {
        meet("busy");
        continue;
      }
      const oldestFirst = table === BALLOON ? read : read.toReversed();
      const before = lists.get(game) ?? [];
      const ids = oldestFirst.map(({ id }) => id);
      const newestKnown = ids.findLastIndex((id) => before.includes(id));
      if (before.length > 0 && newestKnown < 0) meet("lost");
      for (const [place, round] of oldestFirst.entries()) {
        const told = known.get(game)?.get(round.id);
        if (told === undefined) {
          counted.rounds += 1;
          if (round.hundredths === null) meet("impossible");
          if (before.length > 0 && place < newestKnown) meet("late");
        } else if (told.hundredths !== round.hundredths) {
          meet("conflict");
        }
        known.get(game)?.set(round.id, round);
      }
      lists.set(game, ids);
    }
  }
  return { met, counted };
}

describe("the simulated demo house", () => {
  it("shows each kind of failure in every five minutes, and is well most of the time", async () => {
    const { met, counted } = await watch(await makeDemoHouse(), 21);
    for (const kind of ["lost", "busy", "late", "conflict", "impossible"]) {
      const times = [0, ...met.filter((one) => one.kind === kind).map(({ atMs }) => atMs), 21 * 60_000];
      const waits = times.slice(1).map((atMs, place) => atMs - (times[place] ?? 0));
      expect(Math.max(...waits), `the longest wait for ${kind}`).toBeLessThanOrEqual(300_000);
    }
    const busy = met.filter(({ kind }) => kind === "busy").length;
    expect(busy / counted.answers).toBeLessThan(0.02);
    expect((met.length - busy) / counted.rounds).toBeLessThan(0.06);
    expect(met.some(({ kind, game }) => kind === "lost" && game === "balloon")).toBe(false);
  });

  it("responds again after the time in Retry-After", async () => {
    for (const speed of [1, 3]) {
      const house = await makeDemoHouse({ speed });
      const feed = "/simulated/rocket/rounds";
      let answer = await house.get(feed);
      for (let step = 0; answer.status === 200 && step < 10_000; step += 1) {
        house.clock.nowMs += 1_000;
        answer = await house.get(feed);
      }
      expect(answer.status).toBe(503);
      expect(answer.headers.get("etag")).toBeNull();
      expect(answer.headers.get("retry-after")).toMatch(/^[1-9]$/);
      house.clock.nowMs += Number(answer.headers.get("retry-after")) * 1_000;
      expect((await house.get(feed)).status).toBe(200);
    }
  });

  it("lists many rounds from its first start on", async () => {
    const house = await makeDemoHouse();
    const counts = await Promise.all(
      SIMULATED_TABLES.map(async (table) => (await readSimulated(house, table))?.length ?? 0),
    );
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(5);
    expect(Math.max(...counts)).toBe(50);
  });

  it("plays the same on two servers and after a restart with the same seed and T0", async () => {
    const clock: Clock = { nowMs: START_MS };
    const one = await makeDemoHouse({ clock, seed: 7 });
    const two = await makeDemoHouse({ clock, seed: 7 });
    const other = await makeDemoHouse({ clock, seed: 8 });
    for (const afterMs of [0, 1_000, 61_500, 3_600_000]) {
      clock.nowMs = START_MS + afterMs;
      expect(await bodiesOf(one)).toEqual(await bodiesOf(two));
      expect(await bodiesOf(one)).not.toEqual(await bodiesOf(other));
    }
    await one.close();
    const again = await makeDemoHouse({ clock, seed: 7, dataDir: one.dataDir });
    expect(await bodiesOf(again)).toEqual(await bodiesOf(two));
  });

  it.each(SIMULATED_GAMES)("writes $game so that it reads as played, an instant crash as 0", async (game) => {
    const house = await makeDemoHouse();
    const shifts = Array.from({ length: 20 }, (_, shift) => playShift(1, game, shift)).flat();
    const played = new Map(shifts.map((round) => [round.id, round]));
    const instants = new Set<string | null>();
    let compared = 0;
    for (let minute = 0; minute < 60; minute += 2) {
      house.clock.nowMs = START_MS + minute * 60_000;
      for (const seen of (await readSimulated(house, simulatedTable(game.game))) ?? []) {
        const round = played.get(seen.id);
        if (round === undefined) throw new Error(`${seen.id} was never played`);
        const told = [round.hundredths, round.correction?.hundredths].includes(seen.hundredths ?? 0);
        expect(told, `${seen.id} reads as ${seen.hundredths}`).toBe(round.impossible === null);
        if (seen.hundredths === 100) instants.add(seen.rawValue);
        compared += 1;
      }
    }
    expect(compared).toBeGreaterThan(400);
    expect([...instants]).toEqual(["0"]);
  });

  it("gives older rounds before any listed one, without a hole, newest last as its list is", async () => {
    const house = await makeDemoHouse();
    house.clock.nowMs = START_MS + 1_800_000;
    const long = (await readSimulated(house, BALLOON, "/simulated/balloon/rounds?limit=200")) ?? [];
    expect(long).toHaveLength(200);
    const paged = long.slice(-10);
    while (paged.length < long.length) {
      const older = jsonFeed(BALLOON)
        .history?.replace("{id}", paged[0]?.id ?? "")
        .replace("{limit}", "19");
      const page = (await readSimulated(house, BALLOON, older)) ?? [];
      expect(page).toHaveLength(19);
      paged.unshift(...page);
    }
    expect(paged).toEqual(long);
    const times = paged.flatMap(({ endedMs }) => endedMs ?? []);
    expect(times.length).toBeGreaterThan(180);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it("lists nothing from before a lost page any more, however long a page is asked for", async () => {
    const house = await makeDemoHouse();
    const lengths: number[] = [];
    for (let second = 0; second < 2_400; second += 5) {
      house.clock.nowMs = START_MS + second * 1_000;
      const rounds = await readSimulated(house, ROCKET, "/simulated/rocket/rounds?limit=200");
      if (rounds !== null) lengths.push(rounds.length);
    }
    const beginnings = lengths.flatMap((length, place) => (length < (lengths[place - 1] ?? 0) ? [length] : []));
    expect(beginnings.length).toBeGreaterThanOrEqual(2);
    expect(Math.max(...beginnings)).toBeLessThanOrEqual(2);
  });

  it.each([
    ["before=zzzzzzzz", 404, "no round zzzzzzzz was ever listed here"],
    ["before=short", 404, "no round short was ever listed here"],
    ["before=NOT%20AN%20ID", 400, "expected before to be the id of a round"],
    ["limit=1000", 400, "from 1 to 200"],
    ["offset=5", 400, "only before and limit"],
  ])("%s is %i, marked simulated, saying what was expected", async (query, status, expected) => {
    const answer = await (await makeDemoHouse()).get(`/simulated/balloon/rounds?${query}`);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toEqual({ simulated: true, error: expect.stringContaining(expected) });
  });

  it("does not know rounds that have not ended", async () => {
    const house = await makeDemoHouse();
    house.clock.nowMs = START_MS + 100_000;
    const newest = (await readSimulated(house, BALLOON))?.at(-1);
    const page = `/simulated/balloon/rounds?before=${newest?.id}`;
    expect((await house.get(page)).status).toBe(200);
    house.clock.nowMs = (newest?.endedMs ?? 0) - 1;
    expect((await house.get(page)).status).toBe(404);
  });

  it("marks unknown paths and wrong methods as simulated too", async () => {
    const house = await makeDemoHouse();
    expect(await (await house.get("/simulated/plinko/rounds")).json()).toMatchObject({ simulated: true });
    expect(await (await house.get("/simulated/rocket/rounds", { method: "DELETE" })).json()).toMatchObject({
      simulated: true,
    });
  });
});
