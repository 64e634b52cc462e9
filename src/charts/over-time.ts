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

const y = { type: "quantitative" as const, scale: { zero: false }, axis: { format: ".0%", tickCount: 6 } };
const series = { field: "of", type: "nominal" as const, legend: { title: null } };
const domain = ["observed", "stated", "baseline"];
// prettier-ignore
const dashes = [[1, 0], [6, 4], [2, 3]];
const detail = { field: "part", type: "nominal" as const };

/** The time from one point to the next. */
const STEP_MS = { hour: 3_600_000, day: 86_400_000 };

function timeAxis(by: "hour" | "day") {
  return {
    field: "at",
    type: "temporal" as const,
    scale: { type: "utc" as const },
    axis: { format: by === "hour" ? "%H:%M" : "%-d %b", tickCount: 6 },
    title: `${by} of issue, UTC`,
  };
}

/** Points with the number of their part: a part has no missing hours or days. */
function partsOf(points: readonly RatePoint[], by: "hour" | "day"): (RatePoint & { part: number })[] {
  let [part, last] = [0, Infinity];
  return points.map((point) => {
    const at = Date.parse(point.at);
    if (at - last > STEP_MS[by]) part += 1;
    last = at;
    return { ...point, part };
  });
}

/**
 * Plots a hit rate over time, oldest first: the line is the outcome, the band its 95 % interval, if it has one, dashed the
 * stated rate, dotted the baseline. There is no line or band over hours or days without a point.
 */
export function ratePlot(title: string, points: readonly RatePoint[], by: "hour" | "day"): Plot {
  const values = partsOf(points, by);
  const lines = values.flatMap(({ at, part, rate, stated, baseline }) => [
    { at, part, of: "observed", value: rate },
    { at, part, of: "stated", value: stated },
    { at, part, of: "baseline", value: baseline },
  ]);
  const banded = values.filter(({ low }) => low !== null);
  const alone = [...Map.groupBy(values, ({ part }) => part).values()].filter(({ length }) => length === 1).flat();
  const x = timeAxis(by);
  // a line of one point has no length; that of the outcome has its points anyway
  const singles = [
    { field: "stated", color: SECOND },
    { field: "baseline", color: SOFT },
  ].map(({ field, color }) => ({
    data: { values: alone },
    mark: { type: "point" as const, filled: true, size: 25, color, opacity: 1 },
    encoding: { x, y: { field, ...y } },
  }));
  return {
    title,
    description: `The share of hits among forecasts by ${by} of issue, at ${points.length} points, with ${banded.length === 0 ? "" : "its 95 % interval as a band, "}what was stated (dashed) and the baseline (dotted). It is interrupted where a ${by} has no scored forecast.`,
    spec: {
      ...SIZE,
      layer: [
        {
          data: { values: banded },
          mark: { type: "area", color: FIRST, fillOpacity: 0.18 },
          encoding: { x, detail, y: { field: "low", ...y, title: "observed share" }, y2: { field: "high" } },
        },
        {
          // a band of one point has no width
          data: { values: banded },
          mark: { type: "rule", color: FIRST, strokeOpacity: 0.5 },
          encoding: { x, y: { field: "low", ...y }, y2: { field: "high" } },
        },
        {
          data: { values: lines },
          mark: { type: "line", strokeWidth: 2 },
          encoding: {
            x,
            y: { field: "value", ...y },
            detail,
            color: { ...series, scale: { domain, range: [FIRST, SECOND, SOFT] } },
            strokeDash: { ...series, scale: { domain, range: dashes } },
          },
        },
        ...singles,
        {
          data: { values },
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
