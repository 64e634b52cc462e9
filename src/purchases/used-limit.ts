import { timeOf } from "./receipt.ts";

/** A limit of a plan that the calls of an account already reach. */
export interface UsedLimit {
  plan: string;
  period: "day" | "month";
  /** Calls since the day or month began (UTC), with any plan. */
  used: bigint;
  limit: bigint;
  /** In the format of all JSON times. */
  resetsAt: string;
}

const NUMBERS = new Intl.NumberFormat("en-US");
const PERIODS = {
  day: { of: "today", code: "day_quota_exceeded" },
  month: { of: "this month", code: "month_quota_exceeded" },
} as const;

/**
 * What a buyer must know of such a limit.
 *
 * @example
 * usedLimitText({ plan: "Pro", period: "day", used: 9n, limit: 8n, resetsAt: "2026-11-22T00:00:00Z" }); // => "Calls that your account made before count too: 9 of 8 calls of today are used. With Pro, calls are refused with day_quota_exceeded (429) until 2026-11-22 00:00 UTC."
 */
export function usedLimitText({ plan, period, used, limit, resetsAt }: UsedLimit): string {
  const { of, code } = PERIODS[period];
  const counts = `${NUMBERS.format(used)} of ${NUMBERS.format(limit)} calls of ${of} are used`;
  return `Calls that your account made before count too: ${counts}. With ${plan}, calls are refused with ${code} (429) until ${timeOf(resetsAt)}.`;
}
