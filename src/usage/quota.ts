import { untilNextDay, untilNextMonth } from "./calendar.ts";

/** How much of its calls an account has used at a moment (database time); a limit is null where the plan has none. */
export interface Quota {
  dayUsed: bigint;
  monthUsed: bigint;
  dayLimit: bigint | null;
  monthLimit: bigint | null;
  atMs: number;
}

/** One limit as callers see it. */
export interface Remaining {
  name: "day" | "month";
  limit: bigint;
  /** Nominal length of the period in seconds: a month counts as 30 days. */
  windowSeconds: number;
  left: bigint;
  /** Whole seconds, rounded up, until all of it is there again. */
  resetSeconds: number;
}

/** The limits that a quota has, the day before the month. There are none for a plan without numbers. */
export function remainingOf({ dayUsed, monthUsed, dayLimit, monthLimit, atMs }: Quota): Remaining[] {
  const both = [
    { name: "day", limit: dayLimit, used: dayUsed, windowSeconds: 86_400, waitMs: untilNextDay(atMs) },
    { name: "month", limit: monthLimit, used: monthUsed, windowSeconds: 2_592_000, waitMs: untilNextMonth(atMs) },
  ] as const;
  return both.flatMap(({ limit, used, waitMs, ...one }) =>
    limit === null
      ? []
      : [{ ...one, limit, left: used < limit ? limit - used : 0n, resetSeconds: Math.ceil(waitMs / 1_000) }],
  );
}
