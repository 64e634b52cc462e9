const BARS = "▁▂▃▄▅▆▇█";
const WIDEST = 40;

/**
 * Values as a line of bars from the minimum to the maximum. Too many values are thinned to the last of each part; equal
 * values give low bars.
 *
 * `sparkline([0, 1, 2, 7])` is `▁▂▃█`.
 */
export function sparkline(values: readonly number[], widest = WIDEST): string {
  const width = Math.min(values.length, widest);
  const shown = Array.from({ length: width }, (_, i) => values[Math.floor(((i + 1) * values.length) / width) - 1] ?? 0);
  const least = Math.min(...shown);
  const span = Math.max(...shown) - least;
  return shown.map((value) => BARS[span === 0 ? 0 : Math.round(((value - least) / span) * 7)]).join("");
}
