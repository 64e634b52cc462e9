import { expect } from "vitest";
import type { Color } from "../../../src/rounds/colors.ts";
import { palettes } from "../../../src/houses/settings/palettes.ts";
import type { RecordedRound } from "../../../src/demo/replay/rounds-file.ts";
import type { Replayed } from "./world.ts";

/** From the sixth equal result in a row on, nothing proves that the feed is not stuck. */
const STUCK_FROM = 6;

/**
 * Compares the result of a replay with its file: every round once and in order, with its value, color and time; only
 * rounds without a value and those of a stuck feed quarantined, each with that reason; gaps where ids are missing.
 */
export function expectSameRounds(replayed: Replayed, { colors, byPage }: { colors: string; byPage: boolean }): void {
  const { rounds, stored } = replayed;
  const fates = fatesOf(rounds);
  const kept = rounds.flatMap((round, place) => (fates[place] === "stored" ? [{ ...round, place }] : []));
  // a poll page by page requests no round without a page
  const apart = rounds.flatMap(({ id }, place) => {
    const fate = fates[place] ?? "stored";
    return fate === "stored" || (byPage && fate === "missing_multiplier") ? [] : [{ id, code: fate }];
  });
  const bands = palettes[colors]?.bands ?? [];
  // read from the text of the file by other means than those that are tested
  const values = kept.map(({ multiplier }) => Math.max(Number(multiplier), 1));
  expect(stored.map(({ id }) => id)).toEqual(kept.map(({ id }) => id));
  expect(stored.map(({ hundredths }) => hundredths)).toEqual(
    kept.map(({ multiplier }) => flooredCents(multiplier ?? "")),
  );
  expect(stored.map(({ color }) => color)).toEqual(
    values.map((value) => bands.find(({ below = Infinity }) => value < below)?.name),
  );
  expect(stored.map(({ atMs }) => atMs)).toEqual(kept.map(({ place }) => replayed.atMs(place)));
  expect(stored.filter(({ late }) => late)).toEqual([]);
  expect(replayed).toMatchObject({ quarantined: apart, refusedPayloads: 0, conflicts: 0 });
  expectGaps(replayed.gaps, replayed.counted ? holesOf(kept) : []);
}

/** A response with rounds missing in more places opens one gap over all of them. */
const GAPS_AT_ONCE = 100;

interface Range {
  from: number;
  to: number;
}

type StoredGap = Replayed["gaps"][number];

/** A gap for each hole, or if there are many, gaps that begin and end where holes do and cover all of them. */
function expectGaps(gaps: readonly StoredGap[], holes: readonly Range[]): void {
  if (holes.length <= GAPS_AT_ONCE) return expect(gaps).toEqual(holes);
  const isCovered = (hole: Range) =>
    gaps.some(({ from, to }) => from !== null && to !== null && from <= hole.from && hole.to <= to);
  const isExact = ({ from, to }: StoredGap) =>
    holes.some((hole) => hole.from === from) && holes.some((hole) => hole.to === to);
  expect(holes.filter((hole) => !isCovered(hole))).toEqual([]);
  expect(gaps.filter((gap) => !isExact(gap))).toEqual([]);
}

/** What becomes of each round of a file. */
function fatesOf(rounds: readonly RecordedRound[]): ("stored" | "missing_multiplier" | "stuck_feed")[] {
  let run = { hundredths: 0, length: 0 };
  return rounds.map(({ hundredths }) => {
    if (hundredths === null) return "missing_multiplier";
    run = { hundredths, length: run.hundredths === hundredths ? run.length + 1 : 1 };
    return run.length < STUCK_FROM ? "stored" : "stuck_feed";
  });
}

/** Cents of a decimal number, from its digits; 1.00 for an instant crash. */
function flooredCents(multiplier: string): number {
  const [whole = "", decimals = ""] = multiplier.split(".");
  return Math.max(Number(`${whole}${decimals.padEnd(2, "0").slice(0, 2)}`), 100);
}

function holesOf(rounds: readonly RecordedRound[]): Range[] {
  return rounds.flatMap(({ id }, place) => {
    const before = rounds[place - 1];
    return before === undefined || Number(id) === Number(before.id) + 1
      ? []
      : [{ from: Number(before.id) + 1, to: Number(id) - 1 }];
  });
}

/** A palette by its name, in hundredths. */
export function paletteOf(name: string): Color[] {
  return (palettes[name]?.bands ?? []).map((band) => ({
    name: band.name,
    below: band.below === undefined ? null : Math.round(band.below * 100),
  }));
}
