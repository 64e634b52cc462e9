import { skillText } from "../../frame/text/accuracy-format.ts";
import type { ComparedSide } from "../../frame/text/calibration-format.ts";

/** Calibrations in one table: more do not fit on a screen, and a plot has no more shapes. */
export const MOST_COMPARED = 8;

/** The skills of calibrations as points of a plot and as rows: {@link SKILL_COLUMNS}. */
export function skillsOf(sides: readonly ComparedSide[]) {
  const points = sides.flatMap(({ id, table, model, skill, skill_interval_95: interval }) => {
    if (skill === null) return [];
    const [low, high] = interval ?? [skill, skill];
    return [{ of: `calibration ${id}: ${table}, ${model}`, skill, low, high }];
  }); // a skill without an interval is a point alone
  const rows = sides.map(({ id, table, model, sample_size: n, skill, skill_interval_95: interval }) => [
    `calibration ${id}`,
    table,
    model,
    String(n),
    ...Object.values(skillText(skill, interval)),
  ]);
  return { points, rows };
}

/** The columns of {@link skillsOf}. */
export const SKILL_COLUMNS = ["Calibration", "Table", "Model", "n", "Skill", "95 % interval"];
