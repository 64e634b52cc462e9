import type { Plot } from "./draw.ts";
import { FIRST, SECOND, SIZE, SOFT } from "./theme.ts";

/** The stated probability and the outcomes of a bin. */
export interface ReliabilityPoint {
  /** The name of the series, shown if there are several. */
  of: string;
  stated: number;
  observed: number;
  /** The ends of its 95 % interval; null if that is withheld. */
  low: number | null;
  high: number | null;
  n: number;
}

/** One step of a CORP curve, from one stated probability to another. */
export interface CorpPoint {
  of: string;
  from: number;
  to: number;
  rate: number;
}

const share = { type: "quantitative" as const, scale: { domain: [0, 1] }, axis: { format: ".0%", tickCount: 5 } };
const diagonal = {
  data: { values: [{ p: 0 }, { p: 1 }] },
  mark: { type: "line" as const, color: SOFT, strokeDash: [4, 4] },
  encoding: { x: { field: "p", ...share }, y: { field: "p", ...share } },
};

/** Distinguishes series by color and by shape, for readers with color blindness. */
function whose(names: readonly string[]) {
  if (names.length < 2) return { color: { value: FIRST } };
  const domain = [...names];
  return {
    color: {
      field: "of",
      type: "nominal" as const,
      scale: { domain, range: colorsOf(domain) },
      legend: { title: null },
    },
  };
}

/** Five colors that differ in brightness. */
const COLORS = [FIRST, SECOND, "var(--good, currentColor)", "var(--bad, currentColor)", SOFT];

function colorsOf(names: readonly string[]): string[] {
  return names.map((_, i) => COLORS[i % COLORS.length] ?? FIRST);
}

/**
 * Plots stated probabilities against outcomes: a point per bin with its 95 % interval, if it has one; on the dashed line
 * both are equal.
 */
export function reliabilityPlot(title: string, points: readonly ReliabilityPoint[]): Plot {
  const names = [...new Set(points.map(({ of }) => of))];
  const n = points.reduce((sum, one) => sum + one.n, 0);
  const banded = points.filter(({ low }) => low !== null);
  const shape =
    names.length < 2
      ? {}
      : { shape: { field: "of", type: "nominal" as const, scale: { domain: names }, legend: { title: null } } };
  return {
    title,
    description: `Stated probability against the observed share, in ${points.length} bins of ${n} statements${banded.length === 0 ? "" : ", each with its 95 % interval"}. On the dashed line both are equal.`,
    spec: {
      ...SIZE,
      layer: [
        diagonal,
        {
          data: { values: banded.map((point) => ({ ...point })) },
          mark: { type: "rule" },
          encoding: {
            x: { field: "stated", ...share, title: "stated" },
            y: { field: "low", ...share, title: "observed" },
            y2: { field: "high" },
            ...whose(names),
          },
        },
        {
          data: { values: points.map((point) => ({ ...point })) },
          mark: { type: "point", filled: true, size: 60, opacity: 1 },
          encoding: { x: { field: "stated", ...share }, y: { field: "observed", ...share }, ...whose(names), ...shape },
        },
      ],
    },
  };
}

/** Plots the CORP curve: the non-decreasing rates that fit the outcomes best. */
export function corpPlot(title: string, steps: readonly CorpPoint[]): Plot {
  const names = [...new Set(steps.map(({ of }) => of))];
  const points = steps.flatMap(({ of, from, to, rate }) => [
    { of, p: from, rate },
    { of, p: to, rate },
  ]);
  return {
    title,
    description: `For each stated probability the non-decreasing rate that fits the outcomes best, in ${steps.length} steps. On the dashed line both are equal.`,
    spec: {
      ...SIZE,
      layer: [
        diagonal,
        {
          data: { values: points },
          mark: { type: "line", strokeWidth: 2, point: { filled: true, size: 30 } },
          encoding: {
            x: { field: "p", ...share, title: "stated" },
            y: { field: "rate", ...share, title: "observed, recalibrated" },
            ...whose(names),
          },
        },
      ],
    },
  };
}
