import type { HeldPlan } from "../../callers/account-store.ts";
import { remindDays } from "../../purchases/reminder.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** The plan of an account, and what follows it. */
export interface PlanState {
  kind: "none" | "running" | "ending" | "over";
  /** The current plan, else the last one; null if there was none. */
  plan: string | null;
  endsAt: string | null;
  /** The plan that follows, if one is bought or granted. */
  next: { plan: string; startsAt: string } | null;
}

/**
 * The plan state of an account at a time, from the plans that it holds, newest first. A plan that no other follows ends
 * soon from the day of its reminder.
 *
 * @example
 * planState([], { nowMs: 0, hasBank: false }).kind; // => "none"
 * planState([{ plan: "Pro", startsAt: "1970-01-01T00:00:00Z", endsAt: "1970-01-05T00:00:00Z", state: "current" }], { nowMs: 0, hasBank: true }).kind; // => "running"
 * planState([{ plan: "Pro", startsAt: "1970-01-01T00:00:00Z", endsAt: "1970-01-05T00:00:00Z", state: "current" }], { nowMs: 86_400_000, hasBank: true }).kind; // => "ending"
 */
export function planState(
  held: readonly HeldPlan[],
  { nowMs, hasBank }: { nowMs: number; hasBank: boolean },
): PlanState {
  const current = held.find(({ state }) => state === "current");
  const future = held.findLast(({ plan, state }) => state === "future" && plan !== current?.plan);
  const next = future === undefined ? null : { plan: future.plan, startsAt: future.startsAt };
  if (current === undefined) {
    const past = held.find(({ state }) => state === "past");
    if (past === undefined) return { kind: "none", plan: null, endsAt: null, next };
    return { kind: "over", plan: past.plan, endsAt: past.endsAt, next };
  }
  const { plan, startsAt, endsAt } = current;
  const isFollowed = held.some(({ state }) => state === "future");
  if (!isFollowed && endsAt !== null) {
    const days = remindDays((Date.parse(endsAt) - Date.parse(startsAt)) / DAY_MS, { hasBank });
    if (Date.parse(endsAt) - nowMs <= days * DAY_MS) return { kind: "ending", plan, endsAt, next };
  }
  // a renewed plan ends when its last renewal ends
  return { kind: "running", plan, endsAt: endOf(held, plan, endsAt), next };
}

/** The end of the last period of a plan that follows without a gap; null if it has no end. */
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

/** A step of a newcomer. */
export interface Step {
  label: string;
  href: string;
  isDone: boolean;
}

/** The open steps of a newcomer, in order, up to the first call; empty when all are done. */
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
