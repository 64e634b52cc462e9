import { z } from "zod";
import { NOTICE } from "../../forecasts/accuracy/present.ts";
import { forecasts } from "../forecasts.ts";
import type { Description } from "./description.ts";
import { at, count, feature, hash, head, interval, notice, probability, shares, tableName } from "./fields.ts";

const issued = {
  forecast_id: z.string().meta({ description: "The id of this forecast in exports and proofs." }),
  issued_at: at.meta({ description: "When it was issued, before its first round could be known." }),
  after_round_id: z
    .string()
    .meta({ description: "The newest round known then; the forecast is about the rounds that follow." }),
};
const ownHash = hash.meta({
  description: "SHA-256 over the forecast and the hash of the previous forecast in the table's chain.",
});

const nextColor = z.object({
  ...issued,
  target_round_id: z.string().nullable().meta({
    description: "The round it is about; null if ids are not consecutive and so not known in advance.",
  }),
  model: z.string().meta({ description: "The model and its version." }),
  probabilities: shares.meta({ description: "By color, lowest band first; they sum to 1." }),
  baseline: shares.meta({ description: "Our long-run estimate at that time; no skill is claimed against it." }),
  hash: ownHash,
});

const window = z.object({
  feature: feature.meta({ description: "`window:<color>:<target>`." }),
  color: z.string().meta({ description: "The color, or one that counts as it, that is expected." }),
  target: z
    .int()
    .meta({ description: "The intended probability of the window in percent, approximately: 50, 80 or 90." }),
  ...issued,
  rounds: z.int().min(1).meta({ description: "How many rounds after `after_round_id` the window spans." }),
  probability: probability.meta({
    description: "The issued probability that the color is a result within these rounds.",
  }),
  baseline: probability.meta({ description: "The same according to our long-run estimate: 1 − (1 − share)^rounds." }),
  now: z
    .object({
      rounds_left: count.meta({ description: "Rounds of the window that are not played yet." }),
      probability: probability
        .nullable()
        .meta({ description: "The probability for the remaining rounds; null once the color was a result." }),
      scored: z.literal(false).meta({ description: "Always false: only the issued probability is ever scored." }),
    })
    .meta({ description: "The current state of the window, for information." }),
  measured: z
    .object({
      period: z.string().meta({ description: "The measured period." }),
      sample_size: count.meta({ description: "Windows of this feature that were scored in it." }),
      hit_rate: probability
        .nullable()
        .meta({ description: "The share in which the color was a result; null without a scored window." }),
      interval_95: interval.nullable().meta({ description: "Its 95 % Wilson interval." }),
    })
    .nullable()
    .meta({ description: "The measured accuracy of this feature on this table; null before the first score." }),
  hash: ownHash,
});

export const forecastsDescription: Description = {
  operation: forecasts,
  name: "Forecasts",
  summary: "Probabilities of the next color and of windows, each with its baseline",
  description:
    "A forecast is fixed before its round can be known, never changed, and always counted in `/accuracy`. If no forecast is possible, `state` gives the reason; the response is still a 200.",
  isCounted: true,
  response: z.object({
    ...head,
    notice,
    forecasts: z.array(
      z.object({
        ...tableName,
        state: z.enum(["ready", "waiting", "warming_up", "silent", "paused"]).meta({
          description:
            "`ready`: all forecasts are current. `waiting`: none was issued after the newest round yet; open windows are still listed. `warming_up`: none was ever issued. `silent`: no round was received for minutes. `paused`: the operator paused the table. The last three have no probabilities.",
        }),
        generated_at: at.meta({ description: "When this entry was last written." }),
        calibration: z
          .object({
            version: z.int().meta({ description: "Counts the calibrations of the table." }),
            rounds: z.int().meta({ description: "The number of rounds in the calibration." }),
            as_of: at.meta({ description: "The time of the calibration." }),
          })
          .nullable()
          .meta({ description: "The newest replay that reproduced the live model's state; null before the first." }),
        next_color: nextColor.nullable().meta({ description: "The next round's color; null unless `ready`." }),
        windows: z.array(window).meta({ description: "Open windows." }),
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
