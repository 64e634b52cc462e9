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
  /** This limit of another plan. */
  limitOf: (plan: Limits) => bigint | null;
}

type Limits = Pick<ListedPlan, "day_limit" | "month_limit">;

/** Used calls of the day and the month against the limits of the plan. */
export function limitBars(
  usage: Pick<UsageFacts, "dayUsed" | "monthUsed" | "dayResetsAt" | "monthResetsAt">,
  limits: Limits | null,
): LimitBar[] {
  return [
    bar(limits, {
      name: "Calls today",
      used: usage.dayUsed,
      resetsAt: usage.dayResetsAt,
      code: "day_quota_exceeded",
      limitOf: (plan) => plan.day_limit,
    }),
    bar(limits, {
      name: "Calls this month",
      used: usage.monthUsed,
      resetsAt: usage.monthResetsAt,
      code: "month_quota_exceeded",
      limitOf: (plan) => plan.month_limit,
    }),
  ];
}

function bar(limits: Limits | null, facts: Omit<LimitBar, "limit" | "percent" | "tone">): LimitBar {
  const limit = limits === null ? null : facts.limitOf(limits);
  const percent = percentOf(facts.used, limit);
  const tone = percent === null || percent < 80 ? "" : percent < 100 ? "warn" : "bad";
  return { ...facts, limit, percent, tone };
}

/** Whole percent of a limit that is used, rounded down: 100 only if nothing is left. */
function percentOf(used: bigint, limit: bigint | null): number | null {
  if (limit === null) return null;
  return used >= limit ? 100 : Number((used * 100n) / limit);
}
