import { ratePlot } from "../../charts/over-time.ts";
import { reliabilityPlot } from "../../charts/reliability.ts";
import type { RateSums } from "../../forecasts/accuracy/rates-store.ts";
import { wilsonInterval } from "../../forecasts/accuracy/figures/intervals.ts";
import type { Measured } from "../../forecasts/accuracy/measure.ts";
import type { ReliabilityBin } from "../../forecasts/accuracy/figures/reliability.ts";
import { minus, type Tone } from "./format.ts";

/** Formats of figures: unknown is a dash, a rate is a percentage, a loss is in nats. */
const NONE = "–";

/** Formats a share as a percentage; null is a dash. */
export function share(value: number | null, count = 2): string {
  return value === null ? NONE : `${digits(value * 100, count)} %`;
}

/**
 * Names a period.
 *
 * @example
 * periodLabel("24h"); // => "24 hours"
 * periodLabel("30d"); // => "30 days"
 * periodLabel("all"); // => "all time"
 */
export function periodLabel(period: string): string {
  if (period === "all") return "all time";
  return period.replace(/(?<=\d)h$/, " hours").replace(/(?<=\d)d$/, " days");
}

/** Formats a number with `count` decimals. */
export function digits(value: number | null, count = 5): string {
  return value === null ? NONE : minus(value.toFixed(count).replace(/^-(?=[0.]+$)/, ""));
}

/** Formats the two ends of an interval of shares. */
function between(interval: readonly [number, number] | null, count = 2): string {
  return interval === null ? NONE : `${share(interval[0], count)} to ${share(interval[1], count)}`;
}

/** A 95 % interval of shares; null if none is stated. */
type Interval = readonly [low: number, high: number] | null;

/**
 * The decimals of a percentage that its 95 % interval allows: one more digit than the first that the interval leaves
 * open, and one if there is no interval.
 *
 * @example
 * decimalsOf([0.33, 0.55]); // => 1
 * decimalsOf([0.495, 0.505]); // => 2
 * decimalsOf([-0.0004, 0.0003]); // => 3
 * decimalsOf(null); // => 1
 */
export function decimalsOf(interval: Interval): number {
  if (interval === null) return 1;
  const halfPercent = (interval[1] - interval[0]) * 50;
  return halfPercent >= 1 ? 1 : halfPercent >= 0.1 ? 2 : 3;
}

/** The rates and the skill of a row of figures, as texts with no more digits than the sample allows. */
export function ratesText(
  figures: Pick<Measured, "hit_rate" | "interval_95" | "expected_rate" | "baseline_rate" | "rate_bounds">,
  count = decimalsOf(figures.interval_95),
) {
  return {
    rate: share(figures.hit_rate, count),
    interval: between(figures.interval_95, count),
    stated: share(figures.expected_rate, count),
    baseline: share(figures.baseline_rate, count),
    bounds: between(figures.rate_bounds, count),
  };
}

/** A skill and its interval, as texts with no more digits than the interval allows. */
export function skillText(skill: number | null, interval: Interval, count = decimalsOf(interval)) {
  return { skill: share(skill, count), skillInterval: between(interval, count) };
}

/** Evidence over many powers of ten. */
export function evidence(e: number | null): string {
  if (e === null) return NONE;
  return e >= 1e5 || (e > 0 && e < 1e-3) ? e.toExponential(1) : e.toPrecision(3);
}

/** The tone of each verdict on a record. */
export const TONES: Record<Measured["verdict"], Tone> = {
  "on target": "good",
  "off target": "bad",
  "too many voids": "warn",
  "too few": "quiet",
  undecided: "warn",
  running: "quiet",
};

/** The bins of one record: their plot and their numbers, with Wilson intervals unless these are withheld. */
export function reliabilityFigure(title: string, bins: readonly ReliabilityBin[], isWithheld = false) {
  const points = bins.map((bin) => pointOf("ours", bin));
  const isShown = (_: unknown, column: number) => !isWithheld || BIN_COLUMNS[column] !== INTERVAL;
  return {
    plot: reliabilityPlot(title, isWithheld ? points.map((one) => ({ ...one, low: null, high: null })) : points),
    columns: BIN_COLUMNS.filter(isShown),
    rows: bins.map((bin) => binRow(bin).filter(isShown)),
  };
}

/** A bin as a point of a plot, with its Wilson interval. */
export function pointOf(of: string, { n, hits, mean_p }: ReliabilityBin) {
  const [low, high] = wilsonInterval(hits, n) ?? [0, 1];
  return { of, stated: mean_p, observed: n === 0 ? 0 : hits / n, low, high, n };
}

/** A bin as a row of numbers: {@link BIN_COLUMNS}. */
export function binRow({ p_from, p_to, n, hits, mean_p }: ReliabilityBin): string[] {
  const interval = wilsonInterval(hits, n);
  const count = decimalsOf(interval);
  return [
    `${share(p_from, 0)} to ${share(p_to, 0)}`,
    n.toLocaleString("en-US"),
    share(mean_p, count),
    share(n === 0 ? null : hits / n, count),
    between(interval, count),
  ];
}

/** The name of a column of intervals. */
const INTERVAL = "95 % interval";

/** The columns of {@link binRow}. */
export const BIN_COLUMNS = ["Stated", "Times", "Mean stated", "Observed", INTERVAL];

/** The heights of a PIT histogram as rows of numbers: {@link HEIGHT_COLUMNS}. */
export function heightRows(heights: readonly number[]): string[][] {
  return heights.map((height, i) => [`${(i / 10).toFixed(1)} to ${((i + 1) / 10).toFixed(1)}`, digits(height, 3)]);
}

/** The columns of {@link heightRows}. */
export const HEIGHT_COLUMNS = ["Stated", "Height"];

/** The interval over which the rates of a period are summed. */
export function byOf({ period }: Pick<Measured, "period">): "hour" | "day" {
  return period === "24h" ? "hour" : "day";
}

/** The hit rate by hour or day: its plot and its numbers, with Wilson intervals unless these are withheld. */
export function ratesOf(rates: readonly RateSums[], by: "hour" | "day", isWithheld: boolean) {
  const points = rates.flatMap((one) => pointsOf(one));
  const first = `${by === "day" ? "Day" : "Hour"} of issue, UTC`;
  const columns = [first, "n", "Hits", "Hit rate", INTERVAL, "Stated", "Baseline", "Voids", "Pending"];
  const isShown = (_: unknown, column: number) => !isWithheld || columns[column] !== INTERVAL;
  const shown = isWithheld ? points.map((one) => ({ ...one, low: null, high: null })) : points;
  return {
    plot: ratePlot(`Hit rate by ${by}`, shown, by),
    columns: columns.filter(isShown),
    rows: rates.map((one) => rateRow(one, by).filter(isShown)),
  };
}

/** An hour or a day as points of a plot; none if nothing was scored. */
function pointsOf({ at, n, hits, sumP, sumPBase }: RateSums) {
  const interval = wilsonInterval(Number(hits), Number(n));
  if (interval === null) return [];
  const one = (sum: bigint) => Number(sum) / (Number(n) * 1e6);
  const [low, high] = interval;
  return [{ at, rate: Number(hits) / Number(n), low, high, stated: one(sumP), baseline: one(sumPBase), n: Number(n) }];
}

/** The same as a row of numbers. */
function rateRow(sums: RateSums, by: "hour" | "day"): string[] {
  const [point] = pointsOf(sums);
  const { at, n, hits, voids, pending } = sums;
  const interval = point === undefined ? null : ([point.low, point.high] as const);
  const count = decimalsOf(interval);
  return [
    by === "day" ? at.slice(0, 10) : at.slice(0, 16).replace("T", " "),
    String(n),
    String(hits),
    share(point?.rate ?? null, count),
    between(interval, count),
    share(point?.stated ?? null, count),
    share(point?.baseline ?? null, count),
    String(voids),
    String(pending),
  ];
}
