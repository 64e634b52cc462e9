import { z } from "zod";
import { USAGE_PARAMS, USAGE_PATH } from "../usage.ts";
import type { Description } from "./description.ts";
import { at, count, head } from "./fields.ts";

const spent = {
  requests: count.meta({ description: "Calls counted so far: responses with status 200." }),
  limit: count.nullable().meta({ description: "The limit of the plan; null if it has none." }),
  remaining: count.nullable().meta({ description: "How many remain; null if there is no limit." }),
  resets_at: at.meta({ description: "When the count is reset." }),
};
const own = count.meta({ description: "Its counted calls." });
const date = z.iso.date().meta({ description: "The UTC day." });

export const usageDescription: Description = {
  operation: { path: USAGE_PATH, params: USAGE_PARAMS },
  name: "Usage",
  summary: "Your calls today and this month, and what remains",
  description: "Free of charge, and available when the quota is used up. It includes every 200 sent before.",
  isCounted: false,
  response: z.object({
    ...head,
    key: z
      .object({
        name: z.string().meta({ description: "The name that the account gave it." }),
        last4: z.string().length(4).meta({ description: "Its last four characters." }),
      })
      .meta({ description: "The key of this call. The counts are those of the whole account." }),
    day: z.object({ date, ...spent }).meta({ description: "This UTC day." }),
    month: z
      .object({
        month: z
          .string()
          .regex(/^\d{4}-\d{2}$/)
          .meta({ description: "The UTC month." }),
        ...spent,
      })
      .meta({ description: "This UTC month." }),
    burst: z
      .object({
        per_second: z.int().min(1).meta({ description: "The sustained rate in calls per second." }),
        burst: z.int().min(1).meta({ description: "The most calls in a burst." }),
      })
      .meta({ description: "The rate limit." }),
    endpoints: z
      .array(z.object({ endpoint: z.string().meta({ description: "The last part of the path." }), requests: own }))
      .meta({ description: "Today's calls by endpoint." }),
    days: z
      .array(z.object({ date, requests: own }))
      .meta({ description: "The requested number of days, today first." }),
  }),
  example: {
    ok: true,
    plan: "Pro",
    key: { name: "default", last4: "ulqH" },
    day: {
      date: "2026-11-21",
      requests: 124,
      limit: 100_000,
      remaining: 99_876,
      resets_at: "2026-11-22T00:00:00.0000000Z",
    },
    month: {
      month: "2026-11",
      requests: 89_000,
      limit: 2_500_000,
      remaining: 2_411_000,
      resets_at: "2026-12-01T00:00:00.0000000Z",
    },
    burst: { per_second: 10, burst: 20 },
    endpoints: [
      { endpoint: "forecasts", requests: 34 },
      { endpoint: "rounds", requests: 90 },
    ],
    days: [{ date: "2026-11-21", requests: 124 }],
  },
};
