import { z } from "zod";
import { NOTICE } from "../../forecasts/accuracy/present.ts";
import { forecasts } from "../forecasts.ts";
import type { Description } from "./description.ts";
import { at, count, feature, hash, head, interval, notice, probability, shares, tableName } from "./fields.ts";

const issued = {
  forecast_id: z.string().meta({ description: "Names this forecast in exports and proofs." }),
  issued_at: at.meta({ description: "When it was fixed, before its first round could be known." }),
  after_round_id: z.string().meta({ description: "The newest round known then; the forecast speaks of what follows." }),
};
const ownHash = hash.meta({
  description: "SHA-256 over the forecast and the hash of the one before it in the table's chain.",
});

const nextColor = z.object({
  ...issued,
  target_round_id: z.string().nullable().meta({
    description: "The round it speaks of; null where ids are not consecutive and so not known in advance.",
  }),
  model: z.string().meta({ description: "The model and its version." }),
  probabilities: shares.meta({ description: "By color, lowest band first; they sum to 1." }),
  baseline: shares.meta({ description: "Our long-run estimate at that time; no claim of skill is made against it." }),
  hash: ownHash,
});

const window = z.object({
  feature: feature.meta({ description: "`window:<color>:<target>`." }),
  color: z.string().meta({ description: "The color, or one that counts as it, that is to come." }),
  target: z.int().meta({ description: "About how probable, in percent, the window was made to be: 50, 80 or 90." }),
  ...issued,
  rounds: z.int().min(1).meta({ description: "How many rounds after `after_round_id` the window spans." }),
  probability: probability.meta({ description: "That the color comes within these rounds, as it was issued." }),
  baseline: probability.meta({ description: "The same from our long-run estimate, 1 − (1 − share)^rounds." }),
  now: z
    .object({
      rounds_left: count.meta({ description: "Rounds of the window that are still to come." }),
      probability: probability
        .nullable()
        .meta({ description: "That it comes in the rounds left; null once it has come." }),
      scored: z.literal(false).meta({ description: "Always false: only the issued probability is ever scored." }),
    })
    .meta({ description: "Where the window stands now, for information." }),
  measured: z
    .object({
      period: z.string().meta({ description: "The period that was measured over." }),
      sample_size: count.meta({ description: "Windows of this feature that were scored in it." }),
      hit_rate: probability.nullable().meta({ description: "The share in which the color came; null without any." }),
      interval_95: interval.nullable().meta({ description: "Its 95 % Wilson interval." }),
    })
    .nullable()
    .meta({ description: "What was measured of this feature on this table; null before the first score." }),
  hash: ownHash,
});

export const forecastsDescription: Description = {
  operation: forecasts,
  name: "Forecasts",
  summary: "Probabilities of the next color and of windows, each beside its baseline",
  description:
    "A forecast is fixed before its round can be known, never changed, and always counted in `/accuracy`. Where nothing can be said the `state` tells why; that is an answer, not an error.",
  isCounted: true,
  answer: z.object({
    ...head,
    notice,
    forecasts: z.array(
      z.object({
        ...tableName,
        state: z.enum(["ready", "waiting", "warming_up", "silent", "paused"]).meta({
          description:
            "`ready`: all there is. `waiting`: nothing was issued after the newest round, open windows are still shown. `warming_up`: none was issued yet. `silent`: no round came for minutes. `paused`: by the operator. The last three carry no probabilities.",
        }),
        generated_at: at.meta({ description: "When what is shown of the table was last written." }),
        calibration: z
          .object({
            version: z.int().meta({ description: "Counts the calibrations of the table." }),
            rounds: z.int().meta({ description: "Rounds it was made of." }),
            as_of: at.meta({ description: "When it was made." }),
          })
          .nullable()
          .meta({ description: "The newest replay that arrived at the live model's state; null before the first." }),
        next_color: nextColor.nullable().meta({ description: "The next round's color; null unless `ready`." }),
        windows: z.array(window).meta({ description: "Windows that have not ended." }),
      }),
    ),
  }),
  example: {
    ok: true,
    plan: "Pro",
    notice: NOTICE,
    forecasts: [
      {
        house: "bustabit",
        game: "crash",
        market: "global",
        state: "ready",
        generated_at: "2026-11-21T12:55:43.8960040Z",
        calibration: null,
        next_color: {
          forecast_id: "f1-264",
          issued_at: "2026-11-21T12:55:43.8747910Z",
          after_round_id: "270",
          target_round_id: "271",
          model: "k7@1",
          probabilities: { blue: 0.502228, purple: 0.397294, pink: 0.100478 },
          baseline: { blue: 0.500714, purple: 0.392286, pink: 0.107 },
          hash: "22901a1fb73236c834e05c36a8cc23be3f45b0e1e6ae780cfacbff1d6a5e8196",
        },
        windows: [
          {
            feature: "window:pink:80",
            color: "pink",
            target: 80,
            forecast_id: "f1-249",
            issued_at: "2026-11-21T12:55:38.9068180Z",
            after_round_id: "265",
            rounds: 16,
            probability: 0.817121,
            baseline: 0.82607,
            now: { rounds_left: 11, probability: null, scored: false },
            measured: {
              period: "30d",
              sample_size: 4,
              hit_rate: 1,
              interval_95: [0.5101091635454027, 1],
            },
            hash: "c8e7f026c4d462f42c8fd328e09a1ea1fa2d9f3a55a4a6a4d4912c193e12c7ba",
          },
        ],
      },
    ],
  },
};
