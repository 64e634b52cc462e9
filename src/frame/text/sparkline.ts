/** The size of the drawing, which the page stretches. */
const WIDTH = 100;
const HEIGHT = 24;
const MARGIN = 2;

/**
 * Returns the paths of a sparkline in a box of 100 by 24: its line and the area below it. Null values are gaps. The
 * bottom is 0, or the lowest value if that is negative; equal values make a flat line.
 *
 * @example
 * sparkline([0, 10]); // => { line: "M0 22L100 2", area: "M0 24L0 22L100 2L100 24Z" }
 * sparkline([5, null, 5]); // => { line: "M0 2h0M100 2h0", area: "" }
 * sparkline([]); // => { line: "", area: "" }
 */
export function sparkline(values: readonly (number | null)[]): { line: string; area: string } {
  const known = values.filter((value) => value !== null);
  const low = Math.min(0, ...known);
  const high = Math.max(low, ...known);
  const x = (at: number) => round(values.length < 2 ? WIDTH : (at / (values.length - 1)) * WIDTH);
  const y = (value: number) =>
    round(HEIGHT - MARGIN - (high === low ? 0 : (value - low) / (high - low)) * (HEIGHT - 2 * MARGIN));
  let line = "";
  let area = "";
  for (const run of runsOf(values)) {
    const points = run.map(({ at, value }) => `${x(at)} ${y(value)}`);
    const [first, last] = [run[0]?.at ?? 0, run.at(-1)?.at ?? 0];
    line += run.length === 1 ? `M${points[0]}h0` : `M${points.join("L")}`;
    if (run.length > 1) area += `M${x(first)} ${HEIGHT}L${points.join("L")}L${x(last)} ${HEIGHT}Z`;
  }
  return { line, area };
}

/** Runs of consecutive known values. */
function runsOf(values: readonly (number | null)[]): { at: number; value: number }[][] {
  const runs: { at: number; value: number }[][] = [];
  let isOpen = false;
  for (const [at, value] of values.entries()) {
    if (value !== null) {
      if (isOpen) runs.at(-1)?.push({ at, value });
      else runs.push([{ at, value }]);
    }
    isOpen = value !== null;
  }
  return runs;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
