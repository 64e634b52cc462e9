import type { Side } from "../../calibration/calibration-view.ts";
import { digits, share, skillText } from "../../frame/text/accuracy-format.ts";

/** Calibrations in one table: more do not fit on a screen, and a plot has no more shapes. */
export const MOST_COMPARED = 8;

/** A calibration of a comparison and its table. */
export type ComparedSide = Side & { table: string };

/** A value of one calibration, its difference from the first and whether it is the best of the row. */
export interface Cell {
  text: string;
  difference: string | null;
  isBest: boolean;
}

interface Metric {
  label: string;
  value: (side: ComparedSide) => number | null;
  text: (value: number | null) => string;
  /** Which value is better. */
  better: "low" | "high" | null;
  /** A loss depends on the bands of the table, so it is compared within one table only. */
  isOfTable: boolean;
}

const loss = (value: number | null) => digits(value, 6);

const METRICS: readonly Metric[] = [
  { label: "Log loss, nats per round", value: (one) => one.log_loss, text: loss, better: "low", isOfTable: true },
  { label: "Baseline log loss", value: (one) => one.baseline_log_loss, text: loss, better: null, isOfTable: true },
  { label: "Skill", value: (one) => one.skill, text: (value) => share(value, 3), better: "high", isOfTable: false },
  { label: "Brier score", value: (one) => one.brier, text: loss, better: "low", isOfTable: true },
  { label: "Calibration error", value: (one) => one.calibration_error, text: loss, better: "low", isOfTable: false },
  {
    label: "Calibration error by chance",
    value: (one) => one.calibration_error_floor,
    text: loss,
    better: null,
    isOfTable: false,
  },
];

/** The metrics of calibrations as rows, a cell each; the first calibration is the reference. */
export function metricRows(sides: readonly ComparedSide[]): { label: string; cells: Cell[] }[] {
  const isOneTable = new Set(sides.map(({ table }) => table)).size === 1;
  return METRICS.map(({ label, value, text, better, isOfTable }) => {
    const values = sides.map(value);
    const isComparable = isOneTable || !isOfTable;
    const best = isComparable ? bestOf(values, better) : null;
    const first = values[0] ?? null;
    const cells = values.map((one, at) => ({
      text: text(one),
      difference: at === 0 || !isComparable || one === null || first === null ? null : signed(one - first, text),
      isBest: one !== null && one === best,
    }));
    return { label, cells };
  });
}

/** The best of the known values; null if none is better than another. */
function bestOf(values: readonly (number | null)[], better: "low" | "high" | null): number | null {
  const known = values.filter((value) => value !== null);
  if (better === null || new Set(known).size < 2) return null;
  return better === "low" ? Math.min(...known) : Math.max(...known);
}

function signed(difference: number, text: (value: number) => string): string {
  const size = text(Math.abs(difference));
  if (size === text(0)) return "±0";
  return `${difference < 0 ? "−" : "+"}${size}`;
}

/** Windows as rows: the hit rate of each calibration and the rate it stated. */
export function compareWindows(sides: readonly ComparedSide[]): string[][] {
  const features = [...new Set(sides.flatMap(({ windows }) => windows.map(({ feature }) => feature)))];
  return features.map((feature) => [
    feature,
    ...sides.map(({ windows }) => {
      const one = windows.find((window) => window.feature === feature);
      if (one === undefined) return "–";
      return `${share(one.hit_rate, 1)} (stated ${share(one.expected_rate, 1)}, n ${one.sample_size}, z ${digits(one.z, 1)})`;
    }),
  ]);
}

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
