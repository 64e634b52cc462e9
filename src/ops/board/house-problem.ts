import { statusOf } from "../../houses/status.ts";
import { duration, type Tone, timeText } from "../../frame/format.ts";
import type { HouseFacts } from "./house-facts-store.ts";
import type { OpenAlert } from "./open-store.ts";
import type { Problem } from "./problems.ts";

/** One failed poll is a hiccup; two in a row are not. */
const FAILURES_TO_TELL = 2;
/** Without a poll for three turns, and so many seconds at least, a house is not asked any more. */
const UNPOLLED_SECONDS = 30;
/** A house that asks for a minute's patience is no problem. */
const LONG_WAIT_MS = 60_000;

/** What is wrong with a house; null where nothing is, or where it is not polled at all. */
export function houseProblem(
  house: HouseFacts,
  { alerts, liveWindowSeconds, now }: { alerts: readonly OpenAlert[]; liveWindowSeconds: number; now: Date },
): Problem | null {
  if (!house.enabled) return null;
  const found = pauseOf(house) ?? circuitOf(house, now) ?? silenceOf(house, liveWindowSeconds);
  if (found === null) return null;
  const alert = alerts.find(({ kind, subject }) => kind === "house_offline" && subject === house.id);
  const doing = alert === undefined ? found.doing : `${found.doing}; alert open since ${timeText(alert.openedAt)}`;
  return { subject: house.id, href: `/ops/houses/${house.id}`, ...found, doing };
}

type Found = Omit<Problem, "subject" | "href">;

function pauseOf({ pausedAt, pausedBy, pauseReason }: HouseFacts): Found | null {
  if (pausedAt === null) return null;
  const what = `paused by ${pausedBy}`;
  return { tone: "info", what, since: pausedAt, why: pauseReason ?? "", doing: "not polled until somebody resumes it" };
}

/** What its polls say: all but 429 as the circuit counts it. */
function circuitOf(house: HouseFacts, now: Date): Found | null {
  const { circuit, openedTimes, failuresInRow, throttledInRow, nextAllowedAt, isWaiting } = house;
  const why = house.lastError ?? "its polls bring no good answer";
  const next =
    nextAllowedAt === null || nextAllowedAt <= now
      ? "now"
      : `in ${duration((nextAllowedAt.getTime() - now.getTime()) / 1_000)}, at ${timeText(nextAllowedAt).slice(11)}`;
  const bad = { tone: "bad" as Tone, why, since: house.openedAt ?? house.lastOkAt };
  if (circuit === "open") {
    return { ...bad, what: "does not answer, circuit open", doing: `circuit probes ${next}, probe ${openedTimes}` };
  }
  if (circuit === "half_open") {
    return { ...bad, what: "does not answer, being probed", doing: `probe ${openedTimes} is under way` };
  }
  if (failuresInRow >= FAILURES_TO_TELL) {
    const doing = `asked again every ${paceText(house.pollEverySeconds)}; given up at 5 failures in a row`;
    return { ...bad, what: `${failuresInRow} polls in a row failed`, since: house.lastOkAt, doing };
  }
  if (isWaiting && throttledInRow > 0) {
    const doing = `left alone as asked, polled again ${next}`;
    return { tone: "warn", what: "asks us to slow down", since: house.lastOkAt, why: "it answered 429", doing };
  }
  if (isWaiting && nextAllowedAt !== null && nextAllowedAt.getTime() - now.getTime() > LONG_WAIT_MS) {
    return { tone: "warn", what: "is left alone", since: house.lastOkAt, why, doing: `polled again ${next}` };
  }
  return null;
}

/** What its rounds say, where its polls are answered. */
function silenceOf(house: HouseFacts, liveWindowSeconds: number): Found | null {
  const { pollEverySeconds, newestPolledAgeMs, unpolledSeconds, lastPollAt, newestPolledAt: since } = house;
  if (unpolledSeconds > Math.max(UNPOLLED_SECONDS, 3 * pollEverySeconds)) {
    const why =
      lastPollAt === null ? "it was never asked" : `last asked ${duration(unpolledSeconds)} ago, though it could be`;
    const doing = "every worker with the queue poll-house asks; see the workers and whether the queue is paused";
    return { tone: "bad", what: "is not polled", since: lastPollAt, why, doing };
  }
  const status = statusOf({ newestPolledAgeMs, paused: false, enabled: true }, liveWindowSeconds * 1_000);
  if (status === "live") return null;
  const doing = `asked every ${paceText(pollEverySeconds)}`;
  const why =
    lastPollAt === null ? "it was not asked yet" : "its polls are answered, and bring no round that is new or readable";
  if (since === null && lastPollAt === null) return { tone: "warn", what: "no round yet", since, why, doing };
  const what =
    since === null ? "no round yet" : status === "offline" ? "offline: no round for an hour" : "stale: no new round";
  return { tone: status === "offline" ? "bad" : "warn", what, since, why, doing };
}

/**
 * How often something is done.
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
