import type { Plot } from "./draw.ts";
import { FIRST, SIZE, SOFT } from "./theme.ts";

/** The skill of something with its 95 % interval, of no width if none is stated; shares, not percent. */
export interface SkillPoint {
  of: string;
  skill: number;
  low: number;
  high: number;
}

/** The height of one line with its name, and of the surroundings, in pixels. */
const LINE_HEIGHT = 40;
const AROUND = 60;

/**
 * Plots skills one below the other, in the given order: a point each with its interval; the dashed line is no skill.
 */
export function skillPlot(title: string, points: readonly SkillPoint[]): Plot {
  const values = points.map((point) => ({ ...point }));
  const y = {
    field: "of",
    type: "nominal" as const,
    sort: points.map(({ of }) => of),
    axis: null, // names can be long, so each is above its line
  };
  const intervals = points.filter(({ low, high }) => low < high).length;
  const x = { type: "quantitative" as const, axis: { format: ".2~%", tickCount: 5 } };
  return {
    title,
    description: `Skill against the best constant probabilities in hindsight. Points: ${points.length}; with a 95 % interval: ${intervals}. The dashed line is no skill.`,
    spec: {
      ...SIZE,
      height: AROUND + LINE_HEIGHT * points.length,
      layer: [
        {
          data: { values: [{ none: 0 }] },
          mark: { type: "rule", color: SOFT, strokeDash: [4, 4] },
          encoding: { x: { field: "none", ...x, title: "skill" } },
        },
        {
          data: { values },
          mark: { type: "rule", color: FIRST, strokeWidth: 2 },
          encoding: { y, x: { field: "low", ...x, title: "skill" }, x2: { field: "high" } },
        },
        {
          data: { values },
          mark: { type: "point", filled: true, size: 60, color: FIRST, opacity: 1 },
          encoding: { y, x: { field: "skill", ...x } },
        },
        {
          data: { values },
          mark: { type: "text", align: "left", dy: -13, fontSize: 12, color: "currentColor" },
          encoding: { y, x: { value: 4 }, text: { field: "of" } },
        },
      ],
    },
  };
}
