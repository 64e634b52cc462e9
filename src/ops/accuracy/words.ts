import { wilsonInterval } from "../../forecasts/intervals.ts";
import type { Measured } from "../../forecasts/measure.ts";
import type { ReliabilityBin } from "../../forecasts/reliability.ts";
import type { Tone } from "../../frame/format.ts";

/** Figures as pages say them: what is not known is a dash, a rate is a percentage, a loss is in nats. */
const NONE = "–";

/** A share as a percentage; null is a dash. */
export function share(value: number | null, count = 2): string {
  return value === null ? NONE : `${(value * 100).toFixed(count)} %`;
}

/** A number with so many digits after its point. */
export function digits(value: number | null, count = 5): string {
  return value === null ? NONE : value.toFixed(count);
}

/** The two ends of an interval of shares. */
export function between(interval: readonly [number, number] | null, count = 2): string {
  return interval === null ? NONE : `${share(interval[0], count)} to ${share(interval[1], count)}`;
}

/** Evidence over many powers of ten. */
export function evidence(e: number | null): string {
  if (e === null) return NONE;
  return e >= 1e5 || (e > 0 && e < 1e-3) ? e.toExponential(1) : e.toPrecision(3);
}

/** Voids by their reason, those that there were. */
export function voidsText(voids: Measured["voids"]): string {
  const kinds = Object.entries(voids).filter(([, n]) => n > 0);
  return kinds.length === 0 ? "0" : kinds.map(([kind, n]) => `${n} ${kind}`).join(", ");
}

/** The name of a table or a whole house. */
export function nameOf({ house, game, market }: Pick<Measured, "house" | "game" | "market">): string {
  return game === null ? house : `${house}/${game}/${market}`;
}

/** What the word for a record should look like. */
export const TONES: Record<Measured["verdict"], Tone> = {
  "on target": "good",
  "off target": "bad",
  "too many voids": "warn",
  "too few": "quiet",
  undecided: "warn",
};

/** A bin as a point of a plot, with its Wilson interval. */
export function pointOf(of: string, { n, hits, mean_p }: ReliabilityBin) {
  const [low, high] = wilsonInterval(hits, n) ?? [0, 1];
  return { of, said: mean_p, came: n === 0 ? 0 : hits / n, low, high, n };
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

/** What {@link binRow} gives. */
export const BIN_COLUMNS = ["stated", "times", "mean stated", "came true", "95 % interval"];
