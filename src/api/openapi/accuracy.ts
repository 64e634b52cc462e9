import { z } from "zod";
import { NOTICE } from "../../forecasts/accuracy/present.ts";
import { accuracy } from "../accuracy.ts";
import type { Description } from "./description.ts";
import { at, count, feature, head, house, interval, notice, probability, tableName } from "./fields.ts";

const figure = (description: string) => z.number().nullable().meta({ description });
const rate = (description: string) => probability.nullable().meta({ description });

const measured = z.object({
  feature: feature.meta({ description: "`next_color` or `window:<color>:<target>`." }),
  model: z.string().meta({ description: "The model and its version." }),
  house,
  game: tableName.game.nullable().meta({ description: "The id of the game; null with `scope=house`." }),
  market: tableName.market.nullable().meta({ description: "The id of the market; null with `scope=house`." }),
  period: z.string().meta({ description: "The requested period." }),
  period_start: at.meta({ description: "Its start: forecasts issued from here on." }),
  period_end: at.meta({ description: "Its end: the end of the current hour or day." }),
  as_of: at.nullable().meta({
    description:
      "When the newest counted round was received; of a house, the time up to which all its tables are counted.",
  }),
  as_of_round_id: z.string().nullable().meta({ description: "The id of that round; null for several tables." }),
  sample_size: count.meta({ description: "Forecasts that were scored." }),
  hits: count.meta({
    description:
      "How many were right. For `next_color`: the most probable color was the result; for a window: its color was a result within its rounds.",
  }),
  hit_rate: rate("hits / sample_size; null without a score. Compare it with the two rates below, never with one half."),
  interval_95: interval.nullable().meta({ description: "The 95 % Wilson interval of the hit rate." }),
  expected_rate: rate("The mean probability that the forecasts stated for a hit."),
  baseline_rate: rate("The same according to our long-run estimate at that time; no skill is claimed against it."),
  coverage: rate(
    "Share of received rounds, including late ones, with a forecast in time; for windows, the share of possible windows that were issued.",
  ),
  not_issued: count.meta({
    description: "Rounds without a forecast; for windows, possible windows that were not issued.",
  }),
  late_rounds: count.nullable().meta({ description: "Rounds received after a later one; null for windows." }),
  voids: z
    .object({
      gap: count.meta({ description: "Rounds were missing." }),
      late: count.meta({ description: "The round had been requested before the forecast was issued." }),
      conflict: count.meta({ description: "The house gave two results." }),
      impossible: count.meta({
        description: "Always 0: an impossible result is quarantined, so that forecasts on its round are void as `gap`.",
      }),
      operator: count.meta({ description: "An operator's decision, which is in the audit log." }),
    })
    .meta({ description: "Forecasts that cannot be scored, by cause. A void is final." }),
  rate_bounds: interval.nullable().meta({ description: "The hit rate if all voids had missed, and if all had hit." }),
  withheld: z.string().nullable().meta({
    description:
      "Why interval, z, e-value and skill are null although there are scores: too many forecasts are void, or too many rounds of the table are late. With `scope=house`, a table whose own figures are withheld counts as void as a whole.",
  }),
  pending: count.meta({
    description:
      "Forecasts issued in the period that are not scored yet, including those whose round ended while scoring is paused.",
  }),
  sealed: rate(
    "Share of settled forecasts that a witness's checkpoint of the public log covered before the first round after them was requested, as the operator states. It covers the time of issue only.",
  ),
  z: figure("How far the hits are from the stated probabilities, in standard deviations."),
  e_value: figure(
    "Evidence that the stated probabilities are off target, valid over `all` only: it takes at least 20 × the number of rows you compare.",
  ),
  log_loss: figure("Mean −ln of the probability of the result, in nats; less is better."),
  baseline_log_loss: figure("The same according to our long-run estimate at that time."),
  brier: figure("Mean squared error, summed over the colors; less is better."),
  baseline_brier: figure("The same according to our long-run estimate at that time."),
  rps: figure("Ranked probability score, which counts a neighboring color as a smaller error; less is better."),
  baseline_rps: figure("The same according to our long-run estimate at that time."),
  skill: figure(
    "1 − log loss ÷ that of the best constant probabilities in hindsight, fitted per table and model; 0 or less on a fair game.",
  ),
  skill_interval_95: interval
    .nullable()
    .meta({ description: "Its 95 % interval; if it contains 0, no skill is shown." }),
  calibration_error: figure("Mean distance between stated and measured rates over ten bins."),
  calibration_error_floor: figure("The expected value by chance alone if every stated probability were exact."),
  reliability: z
    .array(
      z.object({
        p_from: probability.meta({ description: "Stated probabilities from here …" }),
        p_to: probability.meta({ description: "… to below here." }),
        n: count.meta({ description: "Stated probabilities in this bin; for `next_color` each color counts as one." }),
        mean_p: probability.meta({ description: "Their mean stated probability." }),
        hits: count.meta({ description: "How many of them were right." }),
      }),
    )
    .meta({ description: "The bins that are not empty." }),
  references: z
    .array(
      z.object({
        name: z.string().meta({
          description:
            "`theory` is the odds of the declared edge, if the house declares one; the others are rules that players use.",
        }),
        log_loss: figure("Its log loss on the same forecasts."),
        brier: figure("Its Brier score on the same forecasts."),
        skill: figure("Its skill against the same constant."),
      }),
    )
    .meta({ description: "Other forecasts, scored on the same rounds." }),
});

export const accuracyDescription: Description = {
  operation: accuracy,
  name: "Accuracy",
  summary: "Measured accuracy of the forecasts, per feature and period",
  description:
    "One row per table, feature and model. Every forecast ever issued counts. Figures without a sample are null, never 0.",
  isCounted: true,
  response: z.object({ ...head, notice, accuracy: z.array(measured) }),
  example: {
    ok: true,
    plan: "Pro",
    notice: NOTICE,
    accuracy: [
      {
        feature: "next_color",
        model: "k7@1",
        house: "bustabit",
        game: "crash",
        market: "global",
        period: "30d",
        period_start: "2026-10-23T00:00:00.0000000Z",
        period_end: "2026-11-22T00:00:00.0000000Z",
        as_of: "2026-11-22T09:30:05.1234560Z",
        as_of_round_id: "9163711",
        sample_size: 63,
        hits: 29,
        hit_rate: 0.4603174603174603,
        interval_95: [0.34308864576044984, 0.5821074811910463],
        expected_rate: 0.5120715555555555,
        baseline_rate: 0.520991746031746,
        coverage: 1,
        not_issued: 0,
        late_rounds: 0,
        voids: { gap: 0, late: 0, conflict: 0, impossible: 0, operator: 0 },
        rate_bounds: [0.4603174603174603, 0.4603174603174603],
        withheld: null,
        pending: 0,
        sealed: 0,
        z: -0.8218744213490594,
        e_value: 0.719529123801633,
        log_loss: 0.9711214761904762,
        baseline_log_loss: 0.981358492063492,
        brier: 0.5971920011088889,
        baseline_brier: 0.6033943115626667,
        rps: 0.3501915839787302,
        baseline_rps: 0.35384951069388887,
        skill: 0.01043147428366428,
        skill_interval_95: [0.00232388661450437, 0.01853906195282419],
        calibration_error: 0.03556754497354497,
        calibration_error_floor: 0.046149738410461355,
        reliability: [{ p_from: 0.5, p_to: 0.6, n: 63, mean_p: 0.5120715555555555, hits: 29 }],
        references: [
          {
            name: "last_20",
            log_loss: 1.0194136507936509,
            brier: 0.6295795751795873,
            skill: -0.03877803986812256,
          },
        ],
      },
    ],
  },
};
