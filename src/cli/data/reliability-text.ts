import type { ReliabilityBin } from "../../forecasts/accuracy/figures/reliability.ts";

const WIDTH = 50;

/**
 * Reliability as lines of text: for each bin, on a scale from 0 to 1, the stated probability (`o`) and the observed rate
 * (`x`); `*` if both fall on one column, as they should.
 */
export function reliabilityPlot(bins: readonly ReliabilityBin[]): string[] {
  const lines = bins.map(({ p_from, p_to, n, mean_p, hits }) => {
    const marks = Array.from({ length: WIDTH + 1 }, () => "·");
    const [stated, observed] = [placeOf(mean_p), placeOf(n === 0 ? 0 : hits / n)];
    marks[stated] = "o";
    marks[observed] = stated === observed ? "*" : "x";
    return `${p_from.toFixed(1)}–${p_to.toFixed(1)} |${marks.join("")}| ${n}`;
  });
  return [
    ...lines,
    `        0${" ".repeat(WIDTH / 2 - 2)}0.5${" ".repeat(WIDTH / 2 - 2)}1   o stated, x observed, * both`,
  ];
}

/** A histogram of heights around 1, one line each; the scale spans 0.8 to 1.2 of a uniform distribution. */
export function heightsPlot(heights: readonly number[]): string[] {
  return heights.map((height, i) => {
    const bar = "#".repeat(Math.max(0, Math.min(WIDTH, Math.round((height * WIDTH) / 2))));
    return `${(i / heights.length).toFixed(1)}–${((i + 1) / heights.length).toFixed(1)} |${bar.padEnd(WIDTH)}| ${height.toFixed(3)}`;
  });
}

function placeOf(p: number): number {
  return Math.min(WIDTH, Math.max(0, Math.round(p * WIDTH)));
}
