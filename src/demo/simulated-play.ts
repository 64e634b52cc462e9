import { draw, drawInteger } from "./draw.ts";
import { opaqueId } from "./opaque-id.ts";
import type { SimulatedGame } from "./simulated-games.ts";
import { faultsBetween, type SimulatedFault } from "./simulated-faults.ts";

/** Rounds are drawn in shifts of five minutes, so that any moment can be computed without all the time before it. */
export const SHIFT_MS = 300_000;
const ROUNDS_PER_SHIFT = 256;
const SHORTEST_FLIGHT_MS = 200;
/** No game pays more than 10,000x. */
const HIGHEST_HUNDREDTHS = 1_000_000;
/** No two ends of neighboring rounds lie more than 27 s apart, so a newer one overtakes it. */
const LATE_BY_MS = 30_000;
const CORRECTED_AFTER_MS = 15_000;

/** A simulated round; times in milliseconds of simulated time, 100 hundredths is an instant crash. */
export interface SimulatedRound {
  id: string;
  hundredths: number;
  startMs: number;
  endMs: number;
  /** When it is listed first; Infinity if its page is lost. */
  listedMs: number;
  /** Another result that is listed instead from `fromMs` on. */
  correction: { hundredths: number; fromMs: number } | null;
  /** It is listed with an impossible value, this one of the four its game has. */
  impossible: number | null;
}

/**
 * The rounds of one shift of a game, oldest first.
 *
 * A shift ends when the longest possible round would no longer fit. That rule knows nothing of the round it leaves out,
 * so it favors neither short nor long ones; the rest of the shift is a longer pause.
 */
export function playShift(seed: number, game: SimulatedGame, shift: number): SimulatedRound[] {
  const shiftEndMs = (shift + 1) * SHIFT_MS;
  const longestMs = game.pauseMs + game.pauseSpreadMs + game.longestMs;
  const rounds: SimulatedRound[] = [];
  let endMs = shift * SHIFT_MS;
  while (endMs + longestMs <= shiftEndMs && rounds.length < ROUNDS_PER_SHIFT) {
    const index = shift * ROUNDS_PER_SHIFT + rounds.length;
    const pauseMs = game.pauseMs + drawInteger(game.pauseSpreadMs + 1, seed, game.game, index, "pause");
    const hundredths = drawResult(game.edge, draw(seed, game.game, index, "result"));
    const startMs = endMs + pauseMs;
    endMs = startMs + flightMs(game, hundredths);
    rounds.push({
      id: opaqueId(seed, game.game, index),
      hundredths,
      startMs,
      endMs,
      listedMs: endMs,
      correction: null,
      impossible: null,
    });
  }
  for (const fault of faultsBetween(seed, game.game, shift * SHIFT_MS, shiftEndMs)) {
    afflict(rounds, fault, shift * SHIFT_MS, seed);
  }
  return rounds;
}

/** The shift and the place in it of a round's index. */
export function placeOfIndex(index: number): { shift: number; place: number } {
  return { shift: Math.floor(index / ROUNDS_PER_SHIFT), place: index % ROUNDS_PER_SHIFT };
}

/** floor(100 · (1 - edge) / u) for u in (0, 1]: the law of {@link SimulatedGame.edge}; everything below 1.01 is instant. */
function drawResult(edge: number, drawn: number): number {
  const hundredths = Math.floor((100 * (1 - edge)) / (1 - drawn));
  return Math.min(Math.max(hundredths, 100), HIGHEST_HUNDREDTHS);
}

function flightMs(game: SimulatedGame, hundredths: number): number {
  const risingMs = (Math.log(hundredths / 100) / game.growth) * 1000;
  return Math.round(Math.min(SHORTEST_FLIGHT_MS + risingMs, game.longestMs));
}

/** Puts a fault on the rounds it hits; one that is in fault already is left alone. */
function afflict(rounds: SimulatedRound[], fault: SimulatedFault, shiftStartMs: number, seed: number): void {
  const { kind, fromMs, toMs } = fault;
  if (kind === "lost") {
    for (const round of rounds) if (round.endMs >= fromMs && round.endMs < toMs) round.listedMs = Infinity;
    return;
  }
  if (kind === "busy" || fromMs < shiftStartMs) return;
  const round = rounds.find(({ endMs }) => endMs > fromMs) ?? rounds.at(-1);
  if (round === undefined || changesNotices(round)) return;
  if (kind === "late") round.listedMs = round.endMs + LATE_BY_MS;
  if (kind === "impossible") round.impossible = drawInteger(4, seed, round.id, "impossible");
  if (kind === "conflict") {
    const more = 17 + drawInteger(100, seed, round.id, "correction");
    round.correction = { hundredths: round.hundredths + more, fromMs: round.endMs + CORRECTED_AFTER_MS };
  }
}

function changesNotices(round: SimulatedRound): boolean {
  return round.listedMs !== round.endMs || round.correction !== null || round.impossible !== null;
}
