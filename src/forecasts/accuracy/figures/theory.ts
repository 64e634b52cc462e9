import { writeTheory } from "../../model/model.ts";
import { nextColorPpm } from "../../model/ppm.ts";
import { scoreNextColor, scoreWindow } from "../../score/scoring.ts";
import type { OutcomeSums } from "./hindsight.ts";
import { repeatedPpm } from "./references.ts";

/** The declared parameters of a table: lower ends of its bands in hundredths, and the edge, null if none is declared. */
export interface DeclaredOdds {
  thresholds: readonly number[];
  edge: number | null;
}

/** Sums of `theory` over scored forecasts, in the units of {@link scoreNextColor}. */
export interface TheorySums {
  n: bigint;
  hits: bigint;
  sumP: bigint;
  sumPq: bigint;
  sumBrier: bigint;
  sumLl: bigint;
}

/** The colors in ppm, lowest band first, if P(multiplier ≥ x) = (1 − edge) ÷ x. */
function theoryPpm({ thresholds, edge }: { thresholds: readonly number[]; edge: number }): number[] {
  const shares = new Float64Array(thresholds.length + 1);
  writeTheory(
    shares,
    0,
    1 - edge,
    Float64Array.from(thresholds, (hundredths) => hundredths / 100),
  );
  return nextColorPpm(shares);
}

/**
 * The reference `theory`: fixed probabilities from the declared edge, scored in the place of our forecasts. They never
 * change, so the stored outcome counts suffice. Null if no edge is declared.
 *
 * @param feature code: 0 is next_color, 1 + 3·color + target a window
 * @example
 * const blues = { color: 0, window: null, n: 7n, sumLl: 0n, sumLl2: 0n };
 * theorySums({ thresholds: [200, 1000], edge: 0.01 }, 0, [blues]).sumP; // => 3535000n
 */
export function theorySums(
  { thresholds, edge }: DeclaredOdds,
  feature: number,
  outcomes: readonly OutcomeSums[],
): TheorySums | null {
  if (edge === null) return null;
  const colors = theoryPpm({ thresholds, edge });
  const own = colors[Math.floor((feature - 1) / 3)] ?? 0;
  const sums = { n: 0n, hits: 0n, sumP: 0n, sumPq: 0n, sumBrier: 0n, sumLl: 0n };
  for (const { n, color, window } of outcomes) {
    const p = window === null ? 0 : repeatedPpm(own, window.horizon);
    const score = window === null ? scoreNextColor(colors, colors, color ?? 0) : scoreWindow(p, p, window.isHit);
    sums.n += n;
    if (score.hit) sums.hits += n;
    sums.sumP += n * BigInt(score.pPpm);
    sums.sumPq += n * BigInt(score.pq);
    sums.sumBrier += n * BigInt(score.brier);
    sums.sumLl += n * BigInt(score.ll);
  }
  return sums;
}

/** The total of several rows; null if one of them has none, since it would cover other forecasts than ours. */
export function mergeTheorySums(rows: readonly (TheorySums | null)[]): TheorySums | null {
  const whole = { n: 0n, hits: 0n, sumP: 0n, sumPq: 0n, sumBrier: 0n, sumLl: 0n };
  for (const row of rows) {
    if (row === null) return null;
    for (const name of Object.keys(whole) as (keyof TheorySums)[]) whole[name] += row[name];
  }
  return whole;
}
