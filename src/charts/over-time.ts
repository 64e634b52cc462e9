import type { Plot } from "./draw.ts";
import { FIRST, SECOND, SIZE, SOFT } from "./theme.ts";

/** A rate in an hour or a day, with its 95 % interval, the stated rate and the long-run share. */
export interface RatePoint {
  at: string;
  rate: number;
  /** The ends of its 95 % interval; null if that is withheld. */
  low: number | null;
  high: number | null;
  stated: number;
  baseline: number;
  n: number;
}

/** Days with a label at the axis of calls. */
const DAYS_NAMED = 8;
const percent = { format: ".0%", tickCount: 6 };

/**
 * Plots a hit rate over time: the line is the outcome, the band its 95 % interval, if it has one, dashed the stated rate,
 * dotted the baseline.
 */
export function ratePlot(title: string, points: readonly RatePoint[], by: "hour" | "day"): Plot {
  const lines = points.flatMap(({ at, rate, stated, baseline }) => [
    { at, of: "observed", value: rate },
    { at, of: "stated", value: stated },
    { at, of: "baseline", value: baseline },
  ]);
  const banded = points.filter(({ low }) => low !== null).map((point) => ({ ...point }));
  const x = {
    field: "at",
    type: "temporal" as const,
    scale: { type: "utc" as const },
    axis: { format: by === "hour" ? "%H:%M" : "%-d %b", tickCount: 6 },
    title: by === "hour" ? "hour of issue, UTC" : "day of issue, UTC",
  };
  const series = { field: "of", type: "nominal" as const, legend: { title: null } };
  const domain = ["observed", "stated", "baseline"];
  // prettier-ignore
  const dashes = [[1, 0], [6, 4], [2, 3]];
  const y = { type: "quantitative" as const, scale: { zero: false }, axis: percent };
  return {
    title,
    description: `The share of hits among forecasts by ${by} of issue, at ${points.length} points, with ${banded.length === 0 ? "" : "its 95 % interval as a band, "}what was stated (dashed) and the baseline (dotted).`,
    spec: {
      ...SIZE,
      layer: [
        {
          data: { values: banded },
          mark: { type: "area", color: FIRST, fillOpacity: 0.18 },
          encoding: { x, y: { field: "low", ...y, title: "observed share" }, y2: { field: "high" } },
        },
        {
          // a band of one point has no width
          data: { values: banded },
          mark: { type: "rule", color: FIRST, strokeOpacity: 0.5 },
          encoding: { x, y: { field: "low", ...y }, y2: { field: "high" } },
        },
        {
          data: { values: lines },
          // nor has a line of one point any length
          mark: { type: "line", strokeWidth: 2, point: points.length === 1 ? { filled: true, size: 40 } : false },
          encoding: {
            x,
            y: { field: "value", ...y },
            color: { ...series, scale: { domain, range: [FIRST, SECOND, SOFT] } },
            strokeDash: { ...series, scale: { domain, range: dashes } },
          },
        },
        {
          data: { values: points.map((point) => ({ ...point })) },
          mark: { type: "point", filled: true, size: 25, color: FIRST, opacity: 1 },
          encoding: { x, y: { field: "rate", ...y } },
        },
      ],
    },
  };
}

/** Plots calls by UTC day as bars. */
export function callsPlot(title: string, days: readonly { date: string; requests: number }[]): Plot {
  const total = days.reduce((sum, { requests }) => sum + requests, 0);
  // from the newest day back, so that this one has its label
  const every = Math.ceil(days.length / DAYS_NAMED);
  const named = days.map(({ date }) => date).filter((_, at) => (days.length - 1 - at) % every === 0);
  const scale = total === 0 ? { domain: [0, 1] } : {}; // an axis without an extent has no numbers
  return {
    title,
    description: `Calls on each of ${days.length} UTC days, ${total} in all.`,
    spec: {
      ...SIZE,
      height: 240,
      data: { values: days.map((day) => ({ ...day })) },
      mark: { type: "bar", color: FIRST },
      encoding: {
        x: {
          field: "date",
          type: "ordinal",
          title: "UTC day",
          axis: { labelAngle: 0, values: named, labelExpr: "utcFormat(utcParse(datum.label, '%Y-%m-%d'), '%-d %b')" },
        },
        y: { field: "requests", type: "quantitative", title: "calls", scale, axis: { tickMinStep: 1, format: "~s" } },
      },
    },
  };
}
