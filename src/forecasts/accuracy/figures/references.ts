/**
 * Reference forecasters: the popular rules, run on the same rounds and scored by the same rules as K7.
 *
 * - `last_20`, `last_100`: the share of each color among the newest n rounds, (c + 1) / (n + K) by Laplace's rule of
 *   succession, so that an absent color keeps a chance.
 * - `due`: a color is more likely the longer it is absent. Its share s so far, (N + 1) / (rounds + K), is weighted as
 *   s · (1 + 3/5 · min(10, g·s)) after g rounds without it (g·s is the wait in expected waits); the weights are then
 *   scaled to sum to 1. Right after a color, and while its gap is unknown, its weight is its share.
 *
 * On true bustabit rounds the log-loss skill is about −4.2 % for the last 20, −1.0 % for the last 100 and −3.7 % for
 * "due". They are references, never claims: only their sums are stored, and a replay recomputes them. Integers only, a
 * fixed amount of work per round.
 *
 * The number of colors fixes the length of every indexed array, hence the `!`.
 */
import { z } from "zod";
import { PPM, ppmOf, roundUp } from "../../model/ppm.ts";

/** The references by the names they are published under. */
export const REFERENCES = ["last_20", "last_100", "due"] as const;

export type Reference = (typeof REFERENCES)[number];

/** The memory of all three for one table. */
export type References = {
  rounds: number;
  /** Rounds of each color: of all, of the newest 20 and of the newest 100. */
  readonly counts: number[];
  readonly last20: number[];
  readonly last100: number[];
  /** Rounds since each color occurred; null while unknown. */
  readonly gaps: (number | null)[];
  /** The newest 100 colors, each at its number mod 100. */
  readonly recent: number[];
};

/** Rounds held, enough for the longer window. */
const RECENT = 100;

/** Cap of the wait, in expected waits; it bounds the integers, and a longer wait is one in 20,000. */
const WAITS_MAX_PPM = 10 * PPM;

/** The memory before the first round. */
export function emptyReferences(colors: number): References {
  const zeros = () => Array.from({ length: colors }, () => 0);
  return {
    rounds: 0,
    counts: zeros(),
    last20: zeros(),
    last100: zeros(),
    gaps: Array.from({ length: colors }, () => null),
    recent: [],
  };
}

/** Call after missing rounds: gaps are unknown then. The newest known rounds are kept. */
export function forgetGaps(references: References): void {
  references.gaps.fill(null);
}

/**
 * A reference's probabilities of the next round, in ppm, lowest band first: at least 1 each, the sum exactly 1,000,000,
 * rounded as issued forecasts are: by the largest remainder, ties to the lower color.
 *
 * @example
 * const references = emptyReferences(3);
 * for (const color of [0, 0, 1, 0]) learnReferences(references, color);
 * referencePpm(references, "last_20"); // => [571429, 285714, 142857]
 * referencePpm(references, "due"); // => [544747, 319066, 136187]
 */
export function referencePpm(references: References, name: Reference): number[] {
  if (name === "due") return scaled(dueWeights(references));
  return scaled((name === "last_20" ? references.last20 : references.last100).map((count) => count + 1));
}

/**
 * The chance in ppm of at least one hit within `rounds` rounds of equal chance.
 *
 * @example
 * repeatedPpm(142857, 3); // => 370262
 */
export function repeatedPpm(pPpm: number, rounds: number): number {
  const miss = 1 - pPpm / PPM;
  let survival = 1;
  for (let n = 1; n <= rounds; n++) survival *= miss;
  return ppmOf(1 - survival);
}

/**
 * Learns the next round.
 *
 * @param color index of the band the round fell in
 * @throws RangeError on a color the table does not have
 */
export function learnReferences(references: References, color: number): void {
  const { counts, last20, last100, gaps, recent, rounds } = references;
  if (!Number.isInteger(color) || color < 0 || color >= counts.length)
    throw new RangeError(`expected a color from 0 to ${counts.length - 1}, got ${color}; check the bands of the table`);
  if (rounds >= 20) last20[recent[(rounds - 20) % RECENT]!]! -= 1;
  if (rounds >= RECENT) last100[recent[rounds % RECENT]!]! -= 1;
  for (const into of [counts, last20, last100]) into[color]! += 1;
  recent[rounds % RECENT] = color;
  gaps.forEach((gap, k) => {
    if (k === color) gaps[k] = 0;
    else if (gap !== null) gaps[k] = gap + 1;
  });
  references.rounds += 1;
}

/** A deep copy. */
export function copyReferences(references: References): References {
  const { rounds, counts, last20, last100, gaps, recent } = references;
  return {
    rounds,
    counts: [...counts],
    last20: [...last20],
    last100: [...last100],
    gaps: [...gaps],
    recent: [...recent],
  };
}

/** The memory without its derived parts; `recent` is oldest first. */
export type ReferencesJson = { counts: number[]; gaps: (number | null)[]; recent: number[] };

/** The memory as JSON: equal memories are equal texts. */
export function referencesToJson({ rounds, counts, gaps, recent }: References): ReferencesJson {
  const oldest = rounds % RECENT;
  const ordered = rounds < RECENT ? recent : [...recent.slice(oldest), ...recent.slice(0, oldest)];
  return { counts: [...counts], gaps: [...gaps], recent: [...ordered] };
}

const natural = z.int().nonnegative();
const referencesJson = z.strictObject({
  counts: z.array(natural).min(2),
  gaps: z.array(natural.nullable()),
  recent: z.array(natural).max(RECENT),
});

/**
 * The memory from its JSON.
 *
 * @throws Error if it is damaged or its parts do not fit together
 */
export function referencesFromJson(json: unknown): References {
  const parsed = referencesJson.safeParse(json);
  if (!parsed.success)
    throw new Error(
      `expected the memory of references, got ${z.prettifyError(parsed.error)}; rebuild it from the rounds`,
    );
  const { counts, gaps, recent } = parsed.data;
  const references = emptyReferences(counts.length);
  const rounds = counts.reduce((a, b) => a + b, 0);
  const fits =
    gaps.length === counts.length &&
    recent.length === Math.min(rounds, RECENT) &&
    recent.every((k) => k < counts.length);
  if (!fits)
    throw new Error(
      `expected the newest colors and the gaps of ${counts.length} colors after ${rounds} rounds, got ` +
        `${recent.length} and ${gaps.length}; rebuild the memory from the rounds`,
    );
  recent.forEach((color, i) => {
    const age = recent.length - i;
    references.recent[(rounds - age) % RECENT] = color;
    references.last100[color]! += 1;
    if (age <= 20) references.last20[color]! += 1;
  });
  return { ...references, rounds, counts, gaps };
}

/** Each share in ppm, increased for every expected wait without the color; below 7,000,000. */
function dueWeights({ rounds, counts, gaps }: References): number[] {
  return counts.map((count, k) => {
    const share = Math.floor(((count + 1) * PPM) / (rounds + counts.length));
    const waits = Math.min(WAITS_MAX_PPM, (gaps[k] ?? 0) * share);
    return Math.floor((share * (5 * PPM + 3 * waits)) / (5 * PPM));
  });
}

/** Whole weights as ppm. Every product stays far below 2^53, so that quotient and remainder are exact. */
function scaled(weights: readonly number[]): number[] {
  const whole = weights.reduce((a, b) => a + b, 0);
  const ppm = weights.map((weight) => Math.floor((weight * PPM) / whole));
  const remainders = weights.map((weight) => (weight * PPM) % whole);
  return roundUp(ppm, remainders, PPM - ppm.reduce((a, b) => a + b, 0));
}
