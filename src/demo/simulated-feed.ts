import { LRUCache } from "lru-cache";
import { indexOfId } from "./opaque-id.ts";
import { SIMULATED_GAMES, type SimulatedGame } from "./simulated-games.ts";
import { placeOfIndex, playShift, SHIFT_MS, type SimulatedRound } from "./simulated-play.ts";
import { faultsBetween } from "./simulated-faults.ts";

/** Shifts kept in memory over all games: about an hour each, 3,000 rounds. */
const SHIFTS_KEPT = 36;

/** A round as it is published at some moment. */
export interface ListedRound {
  id: string;
  hundredths: number;
  endMs: number;
  impossible: number | null;
}

/** The simulated house: what it lists at any simulated time, computed from the seed alone. */
export interface SimulatedFeed {
  /** Milliseconds until a busy feed serves again, or null while it is not busy. */
  busyForMs(game: SimulatedGame, nowMs: number): number | null;
  /** The newest rounds listed at `nowMs`, newest first: at most `limit`, older than `beforeId` where it is given; null
   * where that id is of no round listed by then. */
  list(game: SimulatedGame, nowMs: number, page: { beforeId: string | null; limit: number }): ListedRound[] | null;
}

/** Makes the feed for one seed. */
export function createSimulatedFeed(seed: number): SimulatedFeed {
  const shiftsOf = new Map(
    SIMULATED_GAMES.map((game) => [
      game.game,
      new LRUCache<number, SimulatedRound[]>({
        max: Math.floor(SHIFTS_KEPT / SIMULATED_GAMES.length),
        memoMethod: (shift) => playShift(seed, game, shift),
      }),
    ]),
  );
  const shiftOf = (game: SimulatedGame, shift: number): SimulatedRound[] => shiftsOf.get(game.game)?.memo(shift) ?? [];

  return {
    busyForMs(game, nowMs) {
      const busy = faultsBetween(seed, game.game, nowMs, nowMs + 1).find(
        ({ kind, fromMs, toMs }) => kind === "busy" && fromMs <= nowMs && nowMs < toMs,
      );
      return busy === undefined ? null : busy.toMs - nowMs;
    },

    list(game, nowMs, { beforeId, limit }) {
      let from = { shift: Math.floor(nowMs / SHIFT_MS), place: Infinity };
      if (beforeId !== null) {
        const index = indexOfId(seed, game.game, beforeId);
        if (index === null) return null;
        from = placeOfIndex(index);
        const before = from.shift * SHIFT_MS <= nowMs ? shiftOf(game, from.shift)[from.place] : undefined;
        if (before === undefined || before.listedMs > nowMs) return null;
      }
      const listed: ListedRound[] = [];
      for (const round of roundsBack((shift) => shiftOf(game, shift), from)) {
        if (listed.length === limit) break;
        if (round.endMs > nowMs) continue;
        // A loss shows once the list has begun again after it, and then nothing before it is listed any more.
        if (round.listedMs === Infinity && (listed.length > 0 || beforeId !== null)) break;
        if (round.listedMs <= nowMs) listed.push(listedAt(round, nowMs));
      }
      return listed;
    },
  };
}

/** All rounds before a place, newest first, back to the first shift. */
function* roundsBack(
  shiftOf: (shift: number) => SimulatedRound[],
  from: { shift: number; place: number },
): Generator<SimulatedRound> {
  for (let shift = from.shift; shift >= 0; shift -= 1) {
    const rounds = shiftOf(shift);
    yield* rounds.slice(0, shift === from.shift ? Math.min(from.place, rounds.length) : rounds.length).toReversed();
  }
}

function listedAt(round: SimulatedRound, nowMs: number): ListedRound {
  const { id, endMs, impossible, correction } = round;
  const corrected = correction !== null && nowMs >= correction.fromMs;
  return { id, endMs, impossible, hundredths: corrected ? correction.hundredths : round.hundredths };
}
