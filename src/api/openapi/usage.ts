import { z } from "zod";
import { USAGE_PARAMS, USAGE_PATH } from "../usage.ts";
import type { Description } from "./description.ts";
import { at, count, head } from "./fields.ts";

const spent = {
  requests: count.meta({ description: "Calls counted so far: answers with the status 200." }),
  limit: count.nullable().meta({ description: "How many the plan has; null where it has no number." }),
  remaining: count.nullable().meta({ description: "How many are left; null where there is no limit." }),
  resets_at: at.meta({ description: "When the count begins again." }),
};
const own = count.meta({ description: "Its calls that were counted." });
const date = z.iso.date().meta({ description: "The UTC day." });

export const usageDescription: Description = {
  operation: { path: USAGE_PATH, params: USAGE_PARAMS },
  name: "Usage",
  summary: "Your calls today and this month, and what is left",
  description: "Free of charge, and answered when the quota is gone. Every 200 that was answered before is in it.",
  isCounted: false,
  answer: z.object({
    ...head,
    key: z
      .object({
        name: z.string().meta({ description: "The name that its holder gave it." }),
        last4: z.string().length(4).meta({ description: "Its last four characters." }),
      })
      .meta({ description: "The key of this call. The numbers are of the whole account." }),
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
        per_second: z.int().min(1).meta({ description: "Calls a second that can go on for ever." }),
        burst: z.int().min(1).meta({ description: "Calls that may come at once." }),
      })
      .meta({ description: "How fast calls may come." }),
    endpoints: z
      .array(z.object({ endpoint: z.string().meta({ description: "The last part of the path." }), requests: own }))
      .meta({ description: "Today's calls by endpoint." }),
    days: z
      .array(z.object({ date, requests: own }))
      .meta({ description: "As many days as were asked for, today first." }),
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
