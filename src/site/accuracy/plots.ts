import type { Plot } from "../../charts/draw.ts";
import { skillPlot } from "../../charts/skill.ts";
import { bestLogLoss } from "../../forecasts/accuracy/figures/figures.ts";
import { referenceDetails, type ReferenceSums } from "../../forecasts/accuracy/figures/reference-sums.ts";
import { LEAST_FOR_SKILL } from "../../forecasts/accuracy/figures/verdict.ts";
import {
  decimalsOf,
  digits,
  ratesText,
  reliabilityFigure,
  share,
  skillText,
} from "../../frame/text/accuracy-format.ts";
import { timeText } from "../../frame/text/format.ts";
import type { Measured } from "./lines.ts";

/** A plot and its numbers. */
export interface ToDraw {
  plot: Plot;
  columns: readonly string[];
  rows: readonly (readonly string[])[];
}

/** The rules that players follow. */
const RULES: ReadonlyMap<keyof ReferenceSums, string> = new Map([
  ["last_20", "last 20 rounds"],
  ["last_100", "last 100 rounds"],
  ["due", "longest absent"],
  ["theory", "declared odds"],
]);

/** Plots the skill of several tables or houses; lines of one name are of several models, so their models are named. */
export function skillsOf(measured: readonly Measured[]): ToDraw | null {
  const byName = Map.groupBy(measured, ({ name }) => name);
  return drawnSkills(
    "Skill against the best constant in hindsight",
    measured.map(({ name, row: { model }, figures: { skill, skill_interval_95, sample_size } }) => ({
      name: byName.get(name)?.length === 1 ? name : `${name}, ${model}`,
      skill,
      interval: skill_interval_95,
      n: sample_size,
    })),
  );
}

/** Plots our skill next to that of the rules that players follow, on the same forecasts. */
export function referencesOf({ figures, row }: Measured): ToDraw | null {
  const { skill, skill_interval_95: interval, sample_size: n } = figures;
  return drawnSkills("Skill next to popular rules", [
    { name: "ours", skill, interval, n },
    ...referenceDetails(row.references, bestLogLoss(row.sums)).map((one) => ({
      name: RULES.get(one.name) ?? one.name,
      skill: one.skill,
      interval: null,
      n: one.sample_size,
    })),
  ]);
}

function drawnSkills(
  title: string,
  skills: readonly { name: string; skill: number | null; interval: [number, number] | null; n: number }[],
): ToDraw | null {
  const points = skills.flatMap(({ name, skill, interval, n }) => {
    if (skill === null) return [];
    const of = `${name}, ${n.toLocaleString("en-US")} scored${n < LEAST_FOR_SKILL ? ": too few" : ""}`;
    const [low, high] = interval ?? [skill, skill]; // without an interval it is a point alone
    return [{ of, skill, low, high }];
  });
  if (points.length === 0) return null;
  return {
    plot: skillPlot(title, points),
    columns: ["Scope", "Forecasts", "Skill", "95 % interval"],
    rows: skills.map(({ name, skill, interval, n }) => {
      const text = skillText(skill, interval, decimalsOf(interval ?? skills[0]?.interval ?? null));
      return [name, n.toLocaleString("en-US"), text.skill, text.skillInterval];
    }),
  };
}

/** Plots stated probabilities against outcomes, of one table or house. */
export function reliabilityOf({ figures }: Measured): ToDraw | null {
  if (figures.reliability.length === 0) return null;
  return reliabilityFigure("Stated and observed probability", figures.reliability, figures.withheld !== null);
}

/** Returns every figure of a line as name and value. */
export function factsOf({ figures }: Measured): { name: string; value: string }[] {
  const voids = Object.entries(figures.voids).filter(([, n]) => n > 0);
  const { rate, interval, stated, baseline, bounds } = ratesText(figures);
  const { skill, skillInterval } = skillText(figures.skill, figures.skill_interval_95);
  return [
    { name: "Scored forecasts", value: figures.sample_size.toLocaleString("en-US") },
    { name: "Hits", value: figures.hits.toLocaleString("en-US") },
    { name: "Hit rate", value: rate },
    { name: "95 % interval", value: interval },
    { name: "Stated on average", value: stated },
    { name: "Long-run estimate at that time", value: baseline },
    { name: "Skill", value: skill },
    { name: "Skill, 95 % interval", value: skillInterval },
    { name: "Log loss, nats (baseline)", value: `${digits(figures.log_loss)} (${digits(figures.baseline_log_loss)})` },
    { name: "Brier (baseline)", value: `${digits(figures.brier)} (${digits(figures.baseline_brier)})` },
    {
      name: "Calibration error (by chance alone)",
      value: `${digits(figures.calibration_error)} (${digits(figures.calibration_error_floor)})`,
    },
    { name: "Rounds with a forecast in time", value: share(figures.coverage, 1) },
    {
      name: "Void",
      value: voids.length === 0 ? "none" : voids.map(([kind, n]) => `${n} ${kind}`).join(", "),
    },
    { name: "Hit rate if every void had missed or hit", value: bounds },
    { name: "Pending", value: figures.pending.toLocaleString("en-US") },
    { name: "Covers rounds received until", value: figures.as_of === null ? "–" : timeText(new Date(figures.as_of)) },
    { name: "Sealed by witnesses in time", value: share(figures.sealed, 1) },
    ...(figures.withheld === null ? [] : [{ name: "Skill and intervals are withheld", value: figures.withheld }]),
  ];
}
