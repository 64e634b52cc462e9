import type { HeldPlan } from "../../callers/account-store.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** From here on a plan counts as ending soon: as long as the mail before an end is ahead of it, and a few days more. */
const SOON_DAYS = 7;

/** Where an account stands with its plan. */
export interface PlanState {
  kind: "none" | "running" | "ending" | "over";
  /** The plan that holds now, or held last; null where there was none. */
  plan: string | null;
  endsAt: string | null;
  /** Whole days that are left, rounded down; null where it has no end or is over. */
  daysLeft: number | null;
  /** What comes after it, where that is settled. */
  next: { plan: string; startsAt: string } | null;
}

/**
 * Where an account stands, of the plans it holds (newest first) at a moment.
 *
 * @example
 * planState([], 0).kind; // => "none"
 * planState([{ plan: "Pro", startsAt: "1970-01-01T00:00:00Z", endsAt: "1970-01-04T12:00:00Z", state: "current" }], 0).daysLeft; // => 3
 */
export function planState(held: readonly HeldPlan[], nowMs: number): PlanState {
  const current = held.find(({ state }) => state === "current");
  const future = held.findLast(({ state }) => state === "future");
  const next = future === undefined ? null : { plan: future.plan, startsAt: future.startsAt };
  if (current === undefined) {
    const past = held.find(({ state }) => state === "past");
    if (past === undefined) return { kind: "none", plan: null, endsAt: null, daysLeft: null, next };
    return { kind: "over", plan: past.plan, endsAt: past.endsAt, daysLeft: null, next };
  }
  const { plan, endsAt } = current;
  // one that goes on under its own name ends where the last of them does
  const end = endOf(held, plan, endsAt);
  if (end === null) return { kind: "running", plan, endsAt: null, daysLeft: null, next };
  const daysLeft = Math.max(0, Math.floor((Date.parse(end) - nowMs) / DAY_MS));
  const kind = daysLeft < SOON_DAYS && (next === null || next.plan === plan) ? "ending" : "running";
  return { kind, plan, endsAt: end, daysLeft, next: next?.plan === plan ? null : next };
}

/** When the last of the stretches of a plan ends that follow each other without a gap; null where it has no end. */
function endOf(held: readonly HeldPlan[], plan: string, endsAt: string | null): string | null {
  let end = endsAt;
  for (const one of held.toReversed()) {
    if (end === null) return null;
    if (one.state === "future" && one.plan === plan && one.startsAt <= end) {
      end = one.endsAt === null || one.endsAt > end ? one.endsAt : end;
    }
  }
  return end;
}

/**
 * A time that is left, in whole days and hours: a plan that was bought just now has all but a moment of its days left.
 *
 * @example
 * timeLeft(30 * 86_400_000 - 1); // => "29 days 23 hours"
 * timeLeft(86_400_000); // => "1 day"
 * timeLeft(3_600_000); // => "1 hour"
 * timeLeft(1); // => "less than an hour"
 */
export function timeLeft(ms: number): string {
  const hours = Math.floor(Math.max(0, ms) / HOUR_MS);
  const parts = [
    { count: Math.floor(hours / 24), unit: "day" },
    { count: hours % 24, unit: "hour" },
  ].filter(({ count }) => count > 0);
  if (parts.length === 0) return "less than an hour";
  return parts.map(({ count, unit }) => `${count} ${unit}${count === 1 ? "" : "s"}`).join(" ");
}

/** Something that a newcomer does, in the order in which it is done. */
export interface Step {
  label: string;
  href: string;
  isDone: boolean;
}

/** What a newcomer does until the first call is answered; empty once all of it is done. */
export function nextSteps(done: {
  hasBalance: boolean;
  hasHadPlan: boolean;
  hasKey: boolean;
  hasCalled: boolean;
}): Step[] {
  const steps = [
    { label: "Top up your balance", href: "/console/top-up", isDone: done.hasBalance || done.hasHadPlan },
    { label: "Buy a plan from it", href: "/console/plans", isDone: done.hasHadPlan },
    { label: "Create a key", href: "/console/keys", isDone: done.hasKey || done.hasCalled },
    { label: "Make your first call", href: "/console/first-call", isDone: done.hasCalled },
  ];
  return steps.every(({ isDone }) => isDone) ? [] : steps;
}
