import { draw, drawInteger } from "./draw.ts";
import { SIMULATED_GAMES } from "./simulated-games.ts";

/**
 * What goes wrong in the simulated house, once each in every cycle of four minutes, in one game of the three:
 * lost: the rounds that end meanwhile are never listed, and the list starts again after them;
 * busy: the feed responds 503 with Retry-After;
 * late: a round is listed only after newer ones;
 * conflict: a round is listed, and some seconds later with another result;
 * impossible: a round is listed with a value that no round can have.
 *
 * The cycle is a compromise: short enough that a newcomer sees each kind within five minutes, and then a table has a
 * fault about once in two and a half minutes.
 */
const KINDS = [
  { kind: "lost", lastsMs: 28_000 }, // longer than any two ends of rounds lie apart, so that it does lose one
  { kind: "busy", lastsMs: 5_000 },
  { kind: "late", lastsMs: 0 },
  { kind: "conflict", lastsMs: 0 },
  { kind: "impossible", lastsMs: 0 },
] as const;

const SLOT_MS = 48_000;
const CYCLE_MS = SLOT_MS * KINDS.length;
/** Each begins 2 to 17 s into its slot, so that it ends within it. */
const EARLIEST_MS = 2_000;
const SPREAD_MS = 15_000;

/** One fault of one game; `late`, `conflict` and `impossible` hit the round being played at `fromMs`. */
export interface SimulatedFault {
  kind: (typeof KINDS)[number]["kind"];
  game: string;
  fromMs: number;
  toMs: number;
}

/** The faults of a game that touch the simulated times `fromMs` to `toMs`, in their order. */
export function faultsBetween(seed: number, game: string, fromMs: number, toMs: number): SimulatedFault[] {
  const faults: SimulatedFault[] = [];
  for (let cycle = Math.floor(fromMs / CYCLE_MS); cycle * CYCLE_MS < toMs; cycle += 1) {
    faults.push(...KINDS.map((_, slot) => faultOf(seed, cycle, slot)));
  }
  return faults.filter((one) => one.game === game && one.fromMs < toMs && one.toMs >= fromMs);
}

function faultOf(seed: number, cycle: number, slot: number): SimulatedFault {
  const { kind, lastsMs } = KINDS[slot] ?? KINDS[0];
  const candidates = SIMULATED_GAMES.filter(({ losesPages }) => kind !== "lost" || losesPages);
  const chosen = candidates[drawInteger(candidates.length, seed, "fault", kind, cycle, "game")];
  const delayMs = Math.floor(draw(seed, "fault", kind, cycle, "delay") * SPREAD_MS);
  const fromMs = cycle * CYCLE_MS + slot * SLOT_MS + EARLIEST_MS + delayMs;
  return { kind, game: chosen?.game ?? "", fromMs, toMs: fromMs + lastsMs };
}
