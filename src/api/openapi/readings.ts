import { z } from "zod";
import { NOTICE } from "../../forecasts/accuracy/present.ts";
import { LANGUAGES } from "../../forecasts/readings/reading-languages.ts";
import { readings } from "../readings.ts";
import type { Description } from "./description.ts";
import { at, count, head, tableName } from "./fields.ts";

export const readingsDescription: Description = {
  operation: readings,
  name: "Readings",
  summary: "The current behavior of each table, as text and as data",
  description:
    "Every sentence is made from the listed facts. A reading describes past rounds and recommends nothing; past rounds change the odds only if the reading states it.",
  isCounted: true,
  response: z.object({
    ...head,
    notice: z.string().meta({ description: "Show it wherever you show the text; it has the same language." }),
    readings: z.array(
      z.object({
        ...tableName,
        generated_at: at.meta({ description: "When the reading was made." }),
        lang: z.enum(LANGUAGES).meta({ description: "The language of the text." }),
        text: z.string().meta({ description: "The reading." }),
        facts: z
          .array(
            z.object({
              name: z
                .string()
                .meta({ description: "The name of the fact; the color follows a colon, as in `gap:pink`." }),
              value: z.number().nullable().meta({ description: "The current value; null if it is unknown." }),
              expected: z.number().nullable().meta({ description: "The usual value; null if there is none." }),
              rounds: count.meta({ description: "The number of rounds behind it." }),
              unusual: z.boolean().meta({
                description:
                  "True for a value that chance alone gives once in a hundred; among many facts a few are always marked.",
              }),
            }),
          )
          .meta({ description: "Empty while too few rounds are known, or the table is silent or paused." }),
        based_on_rounds: count.meta({ description: "The number of rounds of the table that were examined." }),
      }),
    ),
  }),
  example: {
    ok: true,
    plan: "Pro",
    notice: NOTICE,
    readings: [
      {
        house: "bustabit",
        game: "crash",
        market: "global",
        generated_at: "2026-11-21T13:35:46.1906740Z",
        lang: "en",
        text: "No pink for 4 rounds (on average it occurs every 10.2 rounds; a wait this long or longer happens 66% of the time). In 102 rounds of this table the past has not changed the odds (evidence 0.15×, we require 80×): pink occurred in 9.8% of all rounds, and a wait makes it neither more nor less likely.",
        facts: [
          { name: "gap:pink", value: 4, expected: 10.1836, rounds: 102, unusual: false },
          { name: "gap_chance:pink", value: 0.661374, expected: null, rounds: 102, unusual: false },
          { name: "dependence_evidence", value: 0.153682, expected: 1, rounds: 102, unusual: false },
        ],
        based_on_rounds: 102,
      },
    ],
  },
};
