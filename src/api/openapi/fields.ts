import { z } from "zod";
import { NOTICE } from "../../forecasts/accuracy/present.ts";
import { STATUSES } from "../../houses/status.ts";

/** The format of a time in all JSON. */
export const TIME_PATTERN = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{7}Z$/;

/** The schema of a time. */
export const at = z
  .string()
  .regex(TIME_PATTERN)
  .meta({
    description: "A time in UTC with seven digits after the second; such texts sort as their times do.",
    examples: ["2026-11-21T04:00:12.1234560Z"],
  });

export const probability = z.number().min(0).max(1);
export const count = z.int().min(0);
export const hash = z.string().regex(/^[0-9a-f]{64}$/);

/** Two ends, the lower one first: an array, since Prism and code generators reject the `prefixItems` of a tuple. */
export const interval = z.array(z.number()).length(2);

/** The two fields that every response begins with. */
export const head = {
  ok: z.literal(true).meta({ description: "Always true here; an error has false and a status other than 200." }),
  plan: z.string().meta({ description: "The plan of the key.", examples: ["Pro"] }),
};

export const notice = z.literal(NOTICE).meta({ description: "Show it wherever you show the figures." });

export const house = z.string().meta({ description: "The id of the house.", examples: ["bustabit"] });

/** The names of a table. */
export const tableName = {
  house,
  game: z.string().meta({ description: "The id of the game.", examples: ["crash"] }),
  market: z.string().meta({ description: "The id of the market.", examples: ["global"] }),
};

export const status = z.enum(STATUSES).meta({
  description:
    "`live`: a round of the house was received within the last minutes. `stale`: within the last hour. `offline`: none in the last hour, or the table is not polled. `paused`: the operator paused it.",
});

/** A probability of each color; the keys are the table's colors, from the lowest band to the highest. */
export const shares = z.record(z.string(), probability);

export const feature = z.string().regex(/^(?:next_color|window:[a-z0-9][a-z0-9_-]*:\d+)$/);
