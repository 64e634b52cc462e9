import { statusOf } from "../../houses/status.ts";
import { duration, type Tone, timeText } from "../../frame/text/format.ts";
import type { HouseFacts } from "../../health/house-facts-store.ts";
import type { OpenAlert } from "./open-store.ts";
import type { Problem } from "./problems.ts";

/** One failed poll is a hiccup; two in a row are not. */
const FAILURES_SHOWN = 2;
/** A house is not polled any more if three polls in a row, and at least these seconds, are missing. */
const UNPOLLED_SECONDS = 30;
/** Alerts that repeat the problem of a house. */
export const HOUSE_ALERTS = new Set(["house_offline", "not_polled"]);
/** A house that requests a wait of up to a minute is no problem. */
const LONG_WAIT_MS = 60_000;

/** Returns what is wrong with a house; null if nothing is, or if it is disabled. */
export function houseProblem(
  house: HouseFacts,
  { alerts, liveWindowSeconds, now }: { alerts: readonly OpenAlert[]; liveWindowSeconds: number; now: Date },
): Problem | null {
  if (!house.enabled) return null;
  const found = pauseOf(house) ?? circuitOf(house, now) ?? silenceOf(house, liveWindowSeconds);
  if (found === null) return null;
  const alert = alerts.find(({ kind, subject }) => HOUSE_ALERTS.has(kind) && subject === house.id);
  const doing = alert === undefined ? found.doing : `${found.doing}; alert open since ${timeText(alert.openedAt)}`;
  return { subject: house.id, href: `/ops/houses/${house.id}`, action: "Open house", ...found, doing };
}

type Found = Omit<Problem, "subject" | "href" | "action">;

function pauseOf({ pausedAt, pausedBy, pauseReason }: HouseFacts): Found | null {
  if (pausedAt === null) return null;
  const what = `paused by ${pausedBy}`;
  const doing = "not polled until an operator resumes it";
  return { kind: "paused", tone: "info", what, since: pausedAt, why: pauseReason ?? "", doing };
}

/** Problems that its polls show. Rate limits (429) do not count as failures of the circuit. */
function circuitOf(house: HouseFacts, now: Date): Found | null {
  const { circuit, openedTimes, failuresInRow, throttledInRow, nextAllowedAt, isWaiting } = house;
  const why = house.lastError ?? "Its polls get no usable response";
  const next =
    nextAllowedAt === null || nextAllowedAt <= now
      ? "now"
      : `in ${duration((nextAllowedAt.getTime() - now.getTime()) / 1_000)}, at ${timeText(nextAllowedAt).slice(11)}`;
  const okAt = house.lastOkAt === null ? null : new Date(house.lastOkAt);
  const bad = { kind: "circuit", tone: "bad" as Tone, why, since: house.openedAt ?? okAt };
  if (circuit === "open") {
    return { ...bad, what: "not responding", doing: `circuit open: probe ${openedTimes} ${next}` };
  }
  if (circuit === "half_open") {
    return { ...bad, what: "not responding", doing: `circuit half open: probe ${openedTimes} is running` };
  }
  if (failuresInRow >= FAILURES_SHOWN) {
    const doing = `polled every ${paceText(house.pollEverySeconds)}; ${failuresInRow} polls in a row failed, the circuit opens at 5`;
    return { ...bad, kind: "polls_fail", what: "polls fail", since: okAt, doing };
  }
  if (isWaiting && throttledInRow > 0) {
    const doing = `polled again ${next}, as it requested`;
    const what = "rate limited by the house";
    return { kind: "throttled", tone: "warn", what, since: okAt, why: "It returned status 429", doing };
  }
  if (isWaiting && nextAllowedAt !== null && nextAllowedAt.getTime() - now.getTime() > LONG_WAIT_MS) {
    const doing = `polled again ${next}`;
    return { kind: "waiting", tone: "warn", what: "polling is on hold", since: okAt, why, doing };
  }
  return null;
}

/** Problems that its rounds show, while its polls succeed. */
function silenceOf(house: HouseFacts, liveWindowSeconds: number): Found | null {
  const { pollEverySeconds, unpolledSeconds, lastPollAt, newestPolledAt: since } = house;
  if (unpolledSeconds > Math.max(UNPOLLED_SECONDS, 3 * pollEverySeconds)) {
    const why =
      lastPollAt === null
        ? "It was never polled"
        : `No poll for ${duration(unpolledSeconds)}, though polling is allowed`;
    const doing = "check that workers run the queue poll-house and that it is not paused";
    return { kind: "not_polled", tone: "bad", what: "not polled", since: lastPollAt, why, doing };
  }
  const status = statusOf(house, liveWindowSeconds * 1_000);
  if (status === "live") return null;
  const doing = `polled every ${paceText(pollEverySeconds)}`;
  const why = lastPollAt === null ? "It was not polled yet" : "Its polls succeed but return no new or readable round";
  if (since === null && lastPollAt === null) {
    return { kind: "no_round", tone: "warn", what: "no round yet", since, why, doing };
  }
  const what =
    since === null ? "no round yet" : status === "offline" ? "offline: no round for an hour" : "stale: no new round";
  return { kind: status, tone: status === "offline" ? "bad" : "warn", what, since, why, doing };
}

/**
 * Formats an interval between polls.
 *
 * @example
 * paceText(0.25); // => "250 ms"
 * paceText(2.5); // => "2.5 s"
 * paceText(90); // => "1 min 30 s"
 */
export function paceText(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1_000)} ms`;
  return seconds < 60 ? `${Number(seconds.toFixed(1))} s` : duration(seconds);
}
