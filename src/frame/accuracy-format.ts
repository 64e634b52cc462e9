import { ratePlot } from "../charts/over-time.ts";
import type { RateSums } from "../forecasts/accuracy/rates-store.ts";
import { wilsonInterval } from "../forecasts/accuracy/figures/intervals.ts";
import type { Measured } from "../forecasts/accuracy/measure.ts";
import type { ReliabilityBin } from "../forecasts/accuracy/figures/reliability.ts";
import type { Tone } from "./format.ts";

/** Formats of figures: unknown is a dash, a rate is a percentage, a loss is in nats. */
const NONE = "–";

/** Formats a share as a percentage; null is a dash. */
export function share(value: number | null, count = 2): string {
  return value === null ? NONE : `${(value * 100).toFixed(count)} %`;
}

/** Formats a number with `count` decimals. */
export function digits(value: number | null, count = 5): string {
  return value === null ? NONE : value.toFixed(count);
}

/** Formats the two ends of an interval of shares. */
export function between(interval: readonly [number, number] | null, count = 2): string {
  return interval === null ? NONE : `${share(interval[0], count)} to ${share(interval[1], count)}`;
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

/**
 * Scored forecasts before anything is stated about skill. The interval is a normal approximation, which needs about
 * fifty outcomes of the rarest color (one round in ten).
 */
export const LEAST_FOR_SKILL = 500;

/**
 * The verdict as lists show it: a sample that is too small for a skill is not called "on target".
 *
 * @example
 * shownVerdict("on target", 499); // => "too few"
 * shownVerdict("on target", 500); // => "on target"
 * shownVerdict("off target", 20); // => "off target"
 */
export function shownVerdict(verdict: Measured["verdict"], sampleSize: number): Measured["verdict"] {
  const isTooFew = sampleSize < LEAST_FOR_SKILL && (verdict === "on target" || verdict === "undecided");
  return isTooFew ? "too few" : verdict;
}

/** A bin as a point of a plot, with its Wilson interval. */
export function pointOf(of: string, { n, hits, mean_p }: ReliabilityBin) {
  const [low, high] = wilsonInterval(hits, n) ?? [0, 1];
  return { of, stated: mean_p, observed: n === 0 ? 0 : hits / n, low, high, n };
}

/** A bin as a row of numbers: {@link BIN_COLUMNS}. */
export function binRow({ p_from, p_to, n, hits, mean_p }: ReliabilityBin): string[] {
  const interval = wilsonInterval(hits, n);
  const rate = n === 0 ? null : hits / n;
  return [
    `${p_from.toFixed(1)} to ${p_to.toFixed(1)}`,
    String(n),
    digits(mean_p, 4),
    digits(rate, 4),
    between(interval),
  ];
}

/** The columns of {@link binRow}. */
export const BIN_COLUMNS = ["stated", "times", "mean stated", "observed", "95 % interval"];

/** The interval over which the rates of a period are summed. */
export function byOf({ period }: Pick<Measured, "period">): "hour" | "day" {
  return period === "24h" ? "hour" : "day";
}

/** The hit rate by hour or day: its plot and its numbers. */
export function ratesOf(rates: readonly RateSums[], by: "hour" | "day") {
  const points = rates.flatMap((one) => pointsOf(one));
  return {
    plot: ratePlot(`Hit rate by ${by}`, points, by),
    columns: [
      `${by} of issue, UTC`,
      "n",
      "hits",
      "hit rate",
      "95 % interval",
      "stated",
      "baseline",
      "voids",
      "pending",
    ],
    rows: rates.map((one) => rateRow(one, by)),
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
  return [
    by === "day" ? at.slice(0, 10) : at.slice(0, 16).replace("T", " "),
    String(n),
    String(hits),
    share(point?.rate ?? null),
    between(point === undefined ? null : [point.low, point.high]),
    share(point?.stated ?? null),
    share(point?.baseline ?? null),
    String(voids),
    String(pending),
  ];
}
