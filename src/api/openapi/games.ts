import { z } from "zod";
import { games } from "../games.ts";
import type { Description } from "./description.ts";
import { at, count, head, status, tableName } from "./fields.ts";

export const gamesDescription: Description = {
  operation: games,
  name: "Games",
  summary: "The tables of your plan, and whether each is live",
  description: "One entry per table. It has exactly these eight fields.",
  isCounted: true,
  response: z.object({
    ...head,
    games: z.array(
      z.object({
        ...tableName,
        continuity_notice: z.boolean().meta({ description: "Whether a continuity notice applies to the table now." }),
        continuity_text: z
          .string()
          .nullable()
          .meta({ description: "The text of the notice, for example about missing rounds or contradicting results." }),
        status,
        last_round_at: at.nullable().meta({ description: "When the last round was received; null before the first." }),
        buffered_rounds: count.meta({ description: "Recent rounds in memory: the most that `/rounds` can list." }),
      }),
    ),
  }),
  example: {
    ok: true,
    plan: "Pro",
    games: [
      {
        house: "bustabit",
        game: "crash",
        market: "global",
        continuity_notice: false,
        continuity_text: null,
        status: "live",
        last_round_at: "2026-11-21T12:55:43.8028620Z",
        buffered_rounds: 120,
      },
    ],
  },
};
