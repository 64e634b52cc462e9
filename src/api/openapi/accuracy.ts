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
  period: z.string().meta({ description: "The period that was asked for." }),
  period_start: at.meta({ description: "Its start: forecasts issued from here on." }),
  period_end: at.meta({ description: "Its end, that is of the hour or day that is still running." }),
  sample_size: count.meta({ description: "Forecasts that were scored." }),
  hits: count.meta({
    description: "How many came true. Of `next_color`: the likeliest color came; of a window: its color came in time.",
  }),
  hit_rate: rate("hits / sample_size; null without a score. Compare it with the two rates below, never with one half."),
  interval_95: interval.nullable().meta({ description: "The 95 % Wilson interval of the hit rate." }),
  expected_rate: rate("The mean probability that was stated for what counts as a hit."),
  baseline_rate: rate("The same by the long-run shares alone."),
  coverage: rate("Share of on-time rounds for which a forecast was issued in time; null for windows."),
  not_issued: count.nullable().meta({ description: "On-time rounds without a forecast; null for windows." }),
  voids: z
    .object({
      gap: count.meta({ description: "Rounds were missing." }),
      house: count.meta({ description: "The house withdrew it." }),
      quarantine: count.meta({ description: "The house gave two results, or an impossible one." }),
      late: count.meta({ description: "The round had been requested before the forecast was issued." }),
    })
    .meta({ description: "Forecasts that cannot be judged, by reason. A void is final." }),
  rate_bounds: interval.nullable().meta({ description: "The hit rate had all voids missed, and had all hit." }),
  pending: count.meta({ description: "Forecasts whose round has not come." }),
  z: figure("How far the hits are from the stated probabilities, in standard deviations."),
  e_value: figure("Evidence that the stated probabilities are off target: 20 or more says so, less says nothing."),
  log_loss: figure("Mean −ln of the probability of what came, in nats; less is better."),
  baseline_log_loss: figure("The same by the long-run shares alone."),
  brier: figure("Mean squared error, summed over the colors; less is better."),
  baseline_brier: figure("The same by the long-run shares alone."),
  rps: figure("Ranked probability score, which also knows that neighbouring colors are near; less is better."),
  baseline_rps: figure("The same by the long-run shares alone."),
  skill: figure("1 − log_loss / baseline_log_loss: 0 is no better than the long-run shares, below 0 is worse."),
  skill_interval_95: interval.nullable().meta({ description: "Its 95 % interval; where 0 is inside, none is shown." }),
  calibration_error: figure("Mean distance between stated and measured rates over ten bins."),
  calibration_error_floor: figure("What it would be by chance alone for forecasts that are exactly right."),
  reliability: z
    .array(
      z.object({
        p_from: probability.meta({ description: "Stated probabilities from here …" }),
        p_to: probability.meta({ description: "… to below here." }),
        n: count.meta({ description: "Statements in this bin; of `next_color` each color is one." }),
        mean_p: probability.meta({ description: "Their mean stated probability." }),
        hits: count.meta({ description: "How many of them came true." }),
      }),
    )
    .meta({ description: "The bins that hold anything." }),
  references: z
    .array(
      z.object({
        name: z.string().meta({ description: "`last_20` and `last_100` go by the newest rounds alone." }),
        log_loss: figure("Its log loss on the same forecasts."),
        brier: figure("Its Brier score on the same forecasts."),
        skill: figure("Its skill against the same baseline."),
      }),
    )
    .meta({ description: "Rules of thumb that people go by, scored on the same rounds." }),
});

export const accuracyDescription: Description = {
  operation: accuracy,
  name: "Accuracy",
  summary: "What was measured of the forecasts, per feature and period",
  description:
    "One row per table, feature and model. All forecasts ever issued count, none is left out. Figures without a sample are null, never 0.",
  isCounted: true,
  answer: z.object({ ...head, notice, accuracy: z.array(measured) }),
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
        sample_size: 63,
        hits: 29,
        hit_rate: 0.4603174603174603,
        interval_95: [0.34308864576044984, 0.5821074811910463],
        expected_rate: 0.5120715555555555,
        baseline_rate: 0.520991746031746,
        coverage: 1,
        not_issued: 0,
        voids: { gap: 0, house: 0, quarantine: 0, late: 0 },
        rate_bounds: [0.4603174603174603, 0.4603174603174603],
        pending: 0,
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
