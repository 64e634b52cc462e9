import type { GapMark, HourCells } from "./heat-store.ts";

/** Minutes of a cell, as `round_cells` has them. */
const CELL_MINUTES = 5;
const CELL_MS = CELL_MINUTES * 60_000;
const CELLS = 288;
/** Less than this share of what a table usually brings is little. */
const LITTLE = 0.5;
/** A table that usually brings less than this in a cell may well bring none. */
const SELDOM = 1;

/** How fresh a table was: `none` no round at all, `few` less than half of the usual, `unknown` not summed or not there yet. */
export type Level = "good" | "few" | "none" | "unknown";

/** Adjacent cells of one level; positions count from the left, 288 in all. */
export interface Stretch {
  from: number;
  cells: number;
  level: Level;
}

/** A cell in which a gap was found. */
export interface GapCell {
  at: number;
  gaps: number;
  open: number;
  missing: number | null;
  time: Date;
}

/** One table over the last 24 hours. */
export interface HeatRow {
  stretches: Stretch[];
  gaps: GapCell[];
  /** How many cells are of each level. */
  counts: Record<Level, number>;
}

/** When the first cell of a heat map begins that ends with the cell that `now` is in. */
export function heatStart(now: Date): Date {
  return new Date((Math.floor(now.getTime() / CELL_MS) + 1 - CELLS) * CELL_MS);
}

/** The cells of a table in the last 24 hours, adjacent equal ones merged. `perMinute` is the usual rate. */
export function heatRow(
  { start, perMinute, createdAt }: { start: Date; perMinute: number; createdAt: Date },
  hours: readonly HourCells[],
  gaps: readonly GapMark[],
): HeatRow {
  const rounds = new Map<number, number>();
  for (const { hour, rounds: own } of hours) {
    own.forEach((count, at) => rounds.set((hour.getTime() - start.getTime()) / CELL_MS + at, count));
  }
  const born = Math.floor((createdAt.getTime() - start.getTime()) / CELL_MS);
  const usual = perMinute * CELL_MINUTES;
  const counts: Record<Level, number> = { good: 0, few: 0, none: 0, unknown: 0 };
  const stretches: Stretch[] = [];
  for (let at = 0; at < CELLS; at++) {
    const level = at < born ? "unknown" : levelOf(rounds.get(at), usual);
    counts[level] += 1;
    const last = stretches.at(-1);
    if (last?.level === level) last.cells += 1;
    else stretches.push({ from: at, cells: 1, level });
  }
  return { stretches, gaps: gapCells(start, gaps), counts };
}

function levelOf(count: number | undefined, usual: number): Level {
  if (count === undefined) return "unknown";
  if (count === 0) return usual < SELDOM && usual > 0 ? "few" : "none";
  return count < usual * LITTLE ? "few" : "good";
}

function gapCells(start: Date, gaps: readonly GapMark[]): GapCell[] {
  const cells = Map.groupBy(gaps, ({ openedAt }) => Math.floor((openedAt.getTime() - start.getTime()) / CELL_MS));
  return [...cells]
    .filter(([at]) => at >= 0 && at < CELLS)
    .map(([at, own]) => ({
      at,
      gaps: own.length,
      open: own.filter(({ state }) => state === "open").length,
      missing: own.some(({ missing }) => missing === null)
        ? null
        : own.reduce((sum, { missing }) => sum + (missing ?? 0), 0),
      time: new Date(start.getTime() + at * CELL_MS),
    }))
    .toSorted((a, b) => a.at - b.at);
}
