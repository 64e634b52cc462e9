import { corpPlot } from "../../charts/reliability.ts";
import { waitsPlot } from "../../charts/waits.ts";
import type { Measured } from "../../forecasts/accuracy/measure.ts";
import type { RateSums } from "../../forecasts/accuracy/rates-store.ts";
import {
  byOf,
  decimalsOf,
  digits,
  evidence,
  HEIGHT_COLUMNS,
  heightRows,
  ratesOf,
  ratesText,
  reliabilityFigure,
  share,
  skillText,
} from "./accuracy-format.ts";

/** The columns of a list of records: their names in {@link cellsOf}, and their labels. */
export const COLUMNS = [
  ["of", "table"],
  ["feature", "feature"],
  ["model", "model"],
  ["n", "n"],
  ["rate", "hit rate"],
  ["interval", "95 % interval"],
  ["stated", "stated"],
  ["baseline", "baseline"],
  ["z", "z"],
  ["e", "e-value"],
  ["verdict", "verdict"],
  ["logLoss", "log loss"],
  ["skill", "skill"],
  ["skillInterval", "skill, 95 % interval"],
  ["error", "calibration error"],
  ["floor", "its floor"],
  ["coverage", "coverage"],
  ["voids", "voids"],
  ["bounds", "bounds"],
] as const;

/** A record in a list: a text for each of {@link COLUMNS}. */
export type Cells = Record<(typeof COLUMNS)[number][0], string>;

type Listed = Parameters<typeof ratesText>[0] &
  Pick<Measured, "house" | "game" | "market" | "feature" | "model" | "sample_size" | "z" | "e_value" | "verdict"> &
  Pick<Measured, "log_loss" | "skill" | "skill_interval_95" | "calibration_error" | "calibration_error_floor"> &
  Pick<Measured, "coverage" | "voids">;

/** The cells of a record; rates and skill have `decimals`, or as many as their sample allows. */
export function cellsOf(row: Listed, decimals?: number): Cells {
  const voids = Object.entries(row.voids).filter(([, n]) => n > 0);
  return {
    of: nameOf(row),
    feature: row.feature,
    model: row.model,
    n: String(row.sample_size),
    ...ratesText(row, decimals),
    z: digits(row.z, 2),
    e: evidence(row.e_value),
    verdict: row.verdict,
    logLoss: digits(row.log_loss),
    ...skillText(row.skill, row.skill_interval_95, decimals),
    error: digits(row.calibration_error),
    floor: digits(row.calibration_error_floor),
    coverage: share(row.coverage, 1),
    voids: voids.length === 0 ? "0" : voids.map(([kind, n]) => `${n} ${kind}`).join(", "),
  };
}

/** The name of a table or a whole house. */
export function nameOf({ house, game, market }: Pick<Measured, "house" | "game" | "market">): string {
  return game === null ? house : `${house}/${game}/${market}`;
}

/** A table of texts, as pages, files and commands show it. */
interface Section {
  title: string;
  columns: readonly string[];
  rows: readonly (readonly string[])[];
}

/** What was measured, as tables of texts: the page, the file and the command show the same. */
export function sectionsOf(row: Measured | null): Section[] {
  if (row === null) return [];
  const voids = Object.entries(row.voids).map(([kind, n]) => [kind, String(n)]);
  const total = Object.values(row.voids).reduce((sum, n) => sum + n, 0);
  return [
    {
      title: "Figures",
      columns: ["Figure", "Value"],
      rows: figureRows(row),
    },
    {
      title: "Voids by reason",
      columns: ["Reason", "Forecasts"],
      rows: [...voids, ["all", String(total)], ["hit rate, had all missed or hit", ratesText(row).bounds]],
    },
    {
      title: `References, on the same ${row.sample_size} forecasts`,
      columns: ["Forecast", "Stated", "Hit rate", "z", "Log loss", "Brier", "Skill", "Skill, 95 % interval"],
      // of the same forecasts, so the digits of our intervals are right for all
      rows: [{ ...row, name: "ours" }, ...row.references.map((one) => ({ ...one, skill_interval_95: null }))].map(
        (one) => {
          const { skill, skillInterval } = skillText(
            one.skill,
            one.skill_interval_95,
            decimalsOf(row.skill_interval_95),
          );
          const count = decimalsOf(row.interval_95);
          return [
            one.name,
            share(one.expected_rate, count),
            share(one.hit_rate, count),
            digits(one.z, 2),
            digits(one.log_loss),
            digits(one.brier),
            skill,
            skillInterval,
          ];
        },
      ),
    },
    {
      title: "CORP: Brier = MCB − DSC + UNC",
      columns: ["Color", "MCB", "DSC", "UNC"],
      rows: row.corp.map(({ color, mcb, dsc, unc }, i) => [
        color ?? `color ${i + 1}`,
        digits(mcb, 4),
        digits(dsc, 4),
        digits(unc, 4),
      ]),
    },
  ];
}

function figureRows(row: Measured): string[][] {
  const { rate, interval, stated, baseline } = ratesText(row);
  const { skill, skillInterval } = skillText(row.skill, row.skill_interval_95);
  return [
    ["verdict", row.verdict],
    ["scored forecasts (n)", String(row.sample_size)],
    ["hits", String(row.hits)],
    ["hit rate", rate],
    ["95 % interval", interval],
    ["stated", stated],
    ["baseline", baseline],
    ["z", digits(row.z, 2)],
    ["e-value", evidence(row.e_value)],
    ["log loss, nats", digits(row.log_loss)],
    ["log loss of the baseline", digits(row.baseline_log_loss)],
    ["Brier", digits(row.brier)],
    ["Brier of the baseline", digits(row.baseline_brier)],
    ["RPS", digits(row.rps)],
    ["skill", skill],
    ["skill, 95 % interval", skillInterval],
    ["calibration error", digits(row.calibration_error)],
    ["its floor, by luck alone", digits(row.calibration_error_floor)],
    ["coverage", share(row.coverage, 1)],
    ["rounds without a forecast", row.not_issued === null ? "–" : String(row.not_issued)],
    ["pending", String(row.pending)],
  ];
}

/** The CORP reliability curve: its plot, and its steps as numbers. */
export function curveOf({ corp }: Measured) {
  const steps = corp.flatMap(({ color, curve }, i) =>
    curve.map(({ p_from, p_to, rate, n }) => ({ of: color ?? `color ${i + 1}`, from: p_from, to: p_to, rate, n })),
  );
  return {
    plot: corpPlot("CORP reliability curve", steps),
    columns: ["Stated", "Color", "Times", "Observed, recalibrated"],
    rows: steps.map(({ of, from, to, rate, n }) => [
      `${digits(from, 3)} to ${digits(to, 3)}`,
      of,
      String(n),
      digits(rate, 4),
    ]),
  };
}

/** The plots of a feature, each with the numbers in it. */
export function figuresOf(row: Measured, rates: readonly RateSums[]) {
  const isWithheld = row.withheld !== null;
  return [
    ratesOf(rates, byOf(row), isWithheld),
    reliabilityFigure("Reliability", row.reliability, isWithheld),
    curveOf(row),
    ...(row.pit === null
      ? []
      : [
          {
            plot: waitsPlot(
              "PIT of waits for the top color (a backtest of the newest calibration)",
              row.pit.waits,
              row.pit.heights,
            ),
            columns: HEIGHT_COLUMNS,
            rows: heightRows(row.pit.heights),
          },
        ]),
  ];
}
