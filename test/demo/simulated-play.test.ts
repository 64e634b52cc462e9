import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { indexOfId, opaqueId } from "../../src/demo/opaque-id.ts";
import { SIMULATED_GAMES } from "../../src/demo/simulated-games.ts";
import { placeOfIndex, playShift, SHIFT_MS, type SimulatedRound } from "../../src/demo/simulated-play.ts";

const SEED = 3;
const SHIFTS = 400;

/** The rounds of 400 shifts, about 17,000; the seed is fixed, so what holds once holds always. */
function play(game: (typeof SIMULATED_GAMES)[number]): SimulatedRound[] {
  return Array.from({ length: SHIFTS }, (_, shift) => playShift(SEED, game, shift)).flat();
}

function flight(rounds: SimulatedRound[]): number {
  return rounds.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
}

describe.each(SIMULATED_GAMES)("the simulated game $game", (game) => {
  const rounds = play(game);

  it("has the results of its edge: P(M ≥ x) = (1 - edge) / x, within 4 standard errors", () => {
    for (const hundredths of [101, 130, 150, 200, 500, 1_000, 10_000]) {
      const expected = (1 - game.edge) / (hundredths / 100);
      const share = rounds.filter((round) => round.hundredths >= hundredths).length / rounds.length;
      const error = Math.sqrt((expected * (1 - expected)) / rounds.length);
      expect(Math.abs(share - expected), `at ${hundredths / 100}`).toBeLessThan(4 * error);
    }
  });

  it("never pauses for less than it states, and never flies longer than it may", () => {
    let previousEndMs = 0;
    for (const { startMs, endMs } of rounds) {
      expect(startMs - previousEndMs).toBeGreaterThanOrEqual(game.pauseMs);
      expect(endMs - startMs).toBeLessThanOrEqual(game.longestMs);
      expect(Math.floor(startMs / SHIFT_MS)).toBe(Math.floor((endMs - 1) / SHIFT_MS));
      expect(endMs - previousEndMs).toBeLessThan(27_000);
      previousEndMs = endMs;
    }
  });

  it("takes a round every 5 to 9 seconds", () => {
    expect((SHIFTS * SHIFT_MS) / rounds.length).toBeGreaterThan(5_000);
    expect((SHIFTS * SHIFT_MS) / rounds.length).toBeLessThan(9_000);
  });

  it("has higher rounds in flight than it has rounds: the length bias is real", () => {
    const highShare = rounds.filter(({ hundredths }) => hundredths >= 300).length / rounds.length;
    const highShareInFlight = flight(rounds.filter(({ hundredths }) => hundredths >= 300)) / flight(rounds);
    expect(highShareInFlight).toBeGreaterThan(1.5 * highShare);
  });

  it("gives every round a unique id that leads back to its place", () => {
    expect(new Set(rounds.map(({ id }) => id)).size).toBe(rounds.length);
    for (const { id, startMs } of rounds.slice(0, 500)) {
      const index = indexOfId(SEED, game.game, id);
      const { shift, place } = placeOfIndex(index ?? -1);
      expect(shift).toBe(Math.floor(startMs / SHIFT_MS));
      expect(playShift(SEED, game, shift)[place]?.id).toBe(id);
    }
  });

  it("has a late round only if a newer one is listed before it", () => {
    const late = rounds.filter(({ listedMs, endMs }) => listedMs > endMs && listedMs < Infinity);
    expect(late.length).toBeGreaterThan(50);
    for (const round of late) {
      expect(rounds.some(({ endMs, listedMs }) => endMs > round.endMs && listedMs < round.listedMs)).toBe(true);
    }
  });
});

describe("opaque ids", () => {
  it("are eight letters and digits and lead back to their index", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 0, max: 2 ** 40 - 1 }), (seed, index) => {
        const id = opaqueId(seed, "rocket", index);
        expect(id).toMatch(/^[a-z2-9]{8}$/);
        expect(indexOfId(seed, "rocket", id)).toBe(index);
      }),
    );
  });

  it("do not reveal the order: of neighbours about half are in alphabetical order", () => {
    const ids = Array.from({ length: 2_000 }, (_, index) => opaqueId(SEED, "comet", index));
    const ascending = ids.slice(1).filter((id, place) => id > (ids[place] ?? "")).length;
    expect(Math.abs(ascending / 1_999 - 0.5)).toBeLessThan(0.05);
  });

  it.each(["", "abc", "abcdefghi", "abcdefgl", "ABCDEFGH", "abcd efg"])("%j is refused", (text) => {
    expect(indexOfId(SEED, "rocket", text)).toBeNull();
  });
});
