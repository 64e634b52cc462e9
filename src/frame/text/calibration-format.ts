import type { Detail, Side } from "../../calibration/calibration-view.ts";
import { digits, evidence, ratesText, share, skillText } from "./accuracy-format.ts";

const loss = (value: number | null) => digits(value, 6);

/** How well a calibration fits: figures, their values and notes. */
export function fitRows(one: Detail): [figure: string, value: string, note: string][] {
  const { skill, skillInterval } = skillText(one.skill, one.skill_interval_95, 3);
  const ends = one.skill_interval_95 === null ? "" : ` (${skillInterval})`;
  return [
    ["Log loss, nats per round", loss(one.log_loss), `baseline ${loss(one.baseline_log_loss)}`],
    ["Skill", skill, `against the best constant in hindsight${ends}`],
    ["Brier score", loss(one.brier), `baseline ${loss(one.baseline_brier)}`],
    ["Calibration error", digits(one.calibration_error), `by chance ${digits(one.calibration_error_floor)}`],
  ];
}

/** What {@link windowRows} gives. */
export const WINDOW_COLUMNS = ["Window", "n", "Stated", "Observed", "95 % interval", "z", "e-value", "Voids"];

type Window = Pick<
  Detail["windows"][number],
  "feature" | "sample_size" | "expected_rate" | "hit_rate" | "interval_95" | "z" | "e_value" | "voids"
>;

/** How windows did in a replay, as rows of texts. */
export function windowRows(windows: readonly Window[]): string[][] {
  return windows.map((one) => {
    const { stated, rate, interval } = ratesText({ ...one, baseline_rate: null, rate_bounds: null });
    return [
      one.feature,
      String(one.sample_size),
      stated,
      rate,
      interval,
      digits(one.z, 2),
      evidence(one.e_value),
      String(one.voids),
    ];
  });
}

/** A calibration of a comparison and its table. */
export type ComparedSide = Side & { table: string };

/** A value of one calibration, its difference from the first and whether it is the best of the row. */
interface Cell {
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
