import type { Plot } from "./draw.ts";
import { FIRST, SIZE, SOFT } from "./theme.ts";

/** PIT of waits: the height of each bin against an even spread, which is the dashed line at 1. */
export function waitsPlot(title: string, waits: number, heights: readonly number[]): Plot {
  const bins = heights.length;
  const values = heights.map((height, i) => ({ from: i / bins, to: (i + 1) / bins, height }));
  return {
    title,
    description: `How ${waits} waits for the top color are distributed over the stated probabilities, in ${bins} bins; 1, the dashed line, is an even spread.`,
    spec: {
      ...SIZE,
      height: 240,
      layer: [
        {
          data: { values },
          mark: { type: "bar", color: FIRST, binSpacing: 1 },
          encoding: {
            x: {
              field: "from",
              type: "quantitative",
              bin: { binned: true, step: 1 / bins },
              title: "stated probability",
              axis: { format: ".0%" },
            },
            x2: { field: "to" },
            y: { field: "height", type: "quantitative", title: "height", scale: { zero: true } },
          },
        },
        {
          data: { values: [{ even: 1 }] },
          mark: { type: "rule", color: SOFT, strokeDash: [4, 4] },
          encoding: { y: { field: "even", type: "quantitative" } },
        },
      ],
    },
  };
}
