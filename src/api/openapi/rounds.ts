import { z } from "zod";
import { rounds } from "../rounds.ts";
import type { Description } from "./description.ts";
import { at, head, status, tableName } from "./fields.ts";

export const roundsDescription: Description = {
  operation: rounds,
  name: "Rounds",
  summary: "The newest rounds of each table, newest first",
  description:
    "Ordered by round id if a table's ids are consecutive, else by the time of the round. Older pages are not available: store what you need.",
  isCounted: true,
  response: z.object({
    ...head,
    tables: z.array(
      z.object({
        ...tableName,
        status,
        last_round_at: at.nullable().meta({ description: "When the last round was received; null before the first." }),
        rounds: z
          .array(
            z.object({
              round_id: z.string().meta({ description: "The house's id of the round, always text." }),
              multiplier: z
                .number()
                .min(1)
                .meta({ description: "The multiplier at which the round ended, with two decimals." }),
              color: z.string().meta({ description: "The band in which the multiplier falls." }),
              occurred_at: at
                .nullable()
                .meta({ description: "The time that the house states; null if it states none." }),
              received_at: at.meta({ description: "When it was received here." }),
              verified: z.boolean().nullable().meta({
                description:
                  "Whether the multiplier follows from the hash that the house had committed to; null if it commits to none.",
              }),
              late: z.boolean().meta({
                description: "Received after newer rounds, computed or imported: listed, but never used for forecasts.",
              }),
            }),
          )
          .meta({ description: "Empty before the table's first round." }),
      }),
    ),
  }),
  example: {
    ok: true,
    plan: "Pro",
    tables: [
      {
        house: "bustabit",
        game: "crash",
        market: "global",
        status: "live",
        last_round_at: "2026-11-21T12:55:43.8028620Z",
        rounds: [
          {
            round_id: "270",
            multiplier: 2.71,
            color: "purple",
            occurred_at: "2026-11-21T12:55:43.6170000Z",
            received_at: "2026-11-21T12:55:43.8028620Z",
            verified: true,
            late: false,
          },
        ],
      },
    ],
  },
};
