import type { Plot } from "./draw.ts";
import { FIRST, SECOND, SIZE } from "./theme.ts";

/** A threshold: the share of rounds that reached it, and the share that the declared edge implies (null for none). */
export interface SurvivalPoint {
  threshold: number;
  share: number;
  declared: number | null;
}

/** Plots how many rounds reached each multiplier, and what the declared edge implies; both axes are logarithmic. */
export function survivalPlot(title: string, points: readonly SurvivalPoint[]): Plot {
  const values = points.flatMap(({ threshold, share, declared }) => [
    ...(share > 0 ? [{ threshold, share, series: "observed" }] : []),
    ...(declared === null ? [] : [{ threshold, share: declared, series: "declared" }]),
  ]);
  const series = ["observed", "declared"];
  const which = { field: "series", type: "nominal" as const, legend: { title: null } };
  return {
    title,
    description: `The share of rounds that reached each of ${points.length} multipliers, next to the share that the declared edge implies.`,
    spec: {
      ...SIZE,
      data: { values },
      mark: { type: "line", strokeWidth: 2, point: { filled: true, size: 40 } },
      encoding: {
        x: {
          field: "threshold",
          type: "quantitative",
          scale: { type: "log" },
          axis: { format: "~g", values: points.map(({ threshold }) => threshold) },
          title: "multiplier",
        },
        y: {
          field: "share",
          type: "quantitative",
          scale: { type: "log" },
          axis: { format: ".2~%", tickCount: 5 },
          title: "share of rounds at or above it",
        },
        color: { ...which, scale: { domain: series, range: [FIRST, SECOND] } },
        strokeDash: {
          ...which,
          scale: {
            domain: series,
            range: [
              [1, 0],
              [6, 4],
            ],
          },
        },
      },
    },
  };
}
