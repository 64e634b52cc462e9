import type { ListedPlan } from "../../callers/plan-store.ts";
import type { UsageFacts } from "../../usage/store.ts";

/** Calls of a day or month against the limit of the plan. */
export interface LimitBar {
  name: string;
  used: bigint;
  limit: bigint | null;
  /** Whole percent of the limit that is used, rounded down; null without a limit. */
  percent: number | null;
  /** `warn` from 80 %, `bad` at 100 %. */
  tone: "" | "warn" | "bad";
  resetsAt: string;
  /** The error that refuses further calls. */
  code: string;
}

/** Used calls of the day and the month against the limits of the plan. */
export function limitBars(
  usage: Pick<UsageFacts, "dayUsed" | "monthUsed" | "dayResetsAt" | "monthResetsAt">,
  limits: Pick<ListedPlan, "day_limit" | "month_limit"> | null,
): LimitBar[] {
  return [
    bar("Calls today", usage.dayUsed, limits?.day_limit ?? null, usage.dayResetsAt, "day_quota_exceeded"),
    bar("Calls this month", usage.monthUsed, limits?.month_limit ?? null, usage.monthResetsAt, "month_quota_exceeded"),
  ];
}

function bar(name: string, used: bigint, limit: bigint | null, resetsAt: string, code: string): LimitBar {
  const percent = percentOf(used, limit);
  const tone = percent === null || percent < 80 ? "" : percent < 100 ? "warn" : "bad";
  return { name, used, limit, percent, tone, resetsAt, code };
}

/** Whole percent of a limit that is used, rounded down: 100 only if nothing is left. */
function percentOf(used: bigint, limit: bigint | null): number | null {
  if (limit === null) return null;
  return used >= limit ? 100 : Number((used * 100n) / limit);
}
