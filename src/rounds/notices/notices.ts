import { multiplierText } from "../round.ts";

/** What a continuity notice is about; at most one of a kind is open for a table. */
export type NoticeKind =
  "gap" | "conflict" | "proof" | "stalled" | "stuck" | "format" | "quarantine" | "ids" | "model" | "operator";

/** In the order in which open notices are told; the weightiest first. */
export const NOTICE_ORDER: readonly NoticeKind[] = [
  "operator",
  "format",
  "stalled",
  "proof",
  "ids",
  "stuck",
  "gap",
  "conflict",
  "quarantine",
  "model",
];

/** Hours that a notice stays open after its cause was last seen: long enough for a reader who looks once a day. */
export const NOTICE_HOURS = { givenUpGap: 24, conflict: 24, proof: 24, quarantine: 1, model: 168 } as const;

/** An answer whose items are refused to at least this part, of at least this many, is in another format. */
const REFUSED_PART = 0.8;
const REFUSED_FROM = 5;

/** The gaps of a table that are worth telling of. Times are ISO 8601 UTC. */
export interface GapFacts {
  /** With a known range. */
  ranges: number;
  missing: bigint;
  from: bigint | null;
  to: bigint | null;
  /** Of unknown size. */
  unknown: number;
  since: string;
  isTrying: boolean;
  /** Why the newest one was given up. */
  reason: string | null;
}

/**
 * Says what is missing since when, and what is done about it.
 *
 * @example
 * gapSentence({ ranges: 1, missing: 3n, from: 812n, to: 814n, unknown: 0, since: "2026-11-21T04:00:12.1Z", isTrying: true, reason: null }) // => "3 rounds (812 to 814) are missing since 2026-11-21 04:00 UTC; trying to fetch them"
 */
export function gapSentence(gaps: GapFacts): string {
  const one = gaps.ranges === 0 ? false : gaps.missing === 1n && gaps.unknown === 0;
  const tail = gaps.isTrying
    ? `; trying to fetch ${one ? "it" : "them"}`
    : `; ${one ? "it" : "they"} could not be fetched${gaps.reason === null ? "" : `: ${gaps.reason}`}`;
  return `${missingText(gaps)} missing since ${minuteText(gaps.since)}${tail}`;
}

function missingText({ ranges, missing, from, to, unknown }: GapFacts): string {
  if (ranges === 0 || from === null || to === null) {
    return unknown > 1 ? `an unknown number of rounds in ${unknown} places are` : "an unknown number of rounds are";
  }
  const places = ranges > 1 ? ` in ${ranges} gaps` : "";
  const besides = unknown > 0 ? " and an unknown number besides" : "";
  if (missing === 1n && from === to) return besides === "" ? `1 round (${from}) is` : `1 round (${from})${besides} are`;
  if (ranges === 1 && missing < to - from + 1n) {
    return missing === 1n && besides === ""
      ? `1 of the rounds ${from} to ${to} is`
      : `${missing} of the rounds ${from} to ${to}${besides} are`;
  }
  return `${missing} rounds${places} (${from} to ${to})${besides} are`;
}

/** Rounds that came with two results, newest last. */
export interface ConflictFacts {
  rounds: number;
  roundId: string;
  kept: bigint;
  other: bigint;
  since: string;
}

/** Says which round came twice, with what, and which result was kept. */
export function conflictSentence({ rounds, roundId, kept, other, since }: ConflictFacts): string {
  return rounds === 1
    ? `round ${roundId} came twice with ${multiplierText(kept)} and ${multiplierText(other)} since ${minuteText(since)}; kept the first`
    : `${rounds} rounds came twice with different results since ${minuteText(since)}; kept the first of each`;
}

/** Rounds that a person corrected, newest last; null: declared void. */
export interface RevisionFacts {
  rounds: number;
  roundId: string;
  from: bigint | null;
  to: bigint | null;
  since: string;
}

/**
 * Says which round a person corrected, and that rounds are still listed as they came first.
 *
 * @example
 * revisionSentence({ rounds: 1, roundId: "812", from: 187n, to: 204n, since: "2026-11-21T04:00:12.1Z" }) // => "round 812 was corrected from 1.87 to 2.04 at 2026-11-21 04:00 UTC; it is listed as it came first, and no forecast on it counts"
 */
export function revisionSentence({ rounds, roundId, from, to, since }: RevisionFacts): string {
  if (rounds > 1) {
    return `${rounds} rounds were corrected since ${minuteText(since)}; they are listed as they came first, and no forecast on them counts`;
  }
  const what =
    to === null
      ? "was declared void"
      : `was corrected from ${from === null ? "void" : multiplierText(from)} to ${multiplierText(to)}`;
  return `round ${roundId} ${what} at ${minuteText(since)}; it is listed as it came first, and no forecast on it counts`;
}

/** Items that are quarantined, newest last. */
export interface RefusedFacts {
  items: number;
  roundId: string | null;
  reason: string;
  since: string;
}

/** Says which rounds fail their proof. */
export function proofSentence({ items, roundId, reason, since }: RefusedFacts): string {
  return items === 1
    ? `round ${roundId ?? "without an id"} failed its fairness proof at ${minuteText(since)} (${reason}); it is quarantined`
    : `${items} rounds failed their fairness proof since ${minuteText(since)}; they are quarantined`;
}

/** Says how many items failed validation; why is for operators, next to each item in quarantine. */
export function quarantineSentence({ items, roundId, since }: RefusedFacts): string {
  const which = roundId === null ? "" : ` (round ${roundId})`;
  return items === 1
    ? `1 item${which} failed validation at ${minuteText(since)}; it is quarantined`
    : `${items} items failed validation since ${minuteText(since)}; they are quarantined`;
}

/** A promotion of another model. */
export interface ModelFacts {
  from: string;
  to: string;
  since: string;
}

/** States from when on another model makes the forecasts. */
export function modelSentence({ from, to, since }: ModelFacts): string {
  return `forecasts are made by the model ${to} instead of ${from} since ${minuteText(since)}; each has a record of its own`;
}

/** Says that the feed repeats one result. */
export function stuckSentence(stuck: { hundredths: number; roundId: string }, since: string): string {
  return `the feed repeats ${multiplierText(stuck.hundredths)} since round ${stuck.roundId}, ${minuteText(since)}; the repeats are quarantined until another result comes`;
}

/** Says that nothing can be forecast, since new rounds stand before one that is known. */
export function idsSentence(newest: string, since: string): string {
  return `the house lists its new rounds as older than round ${newest} since ${minuteText(since)}, so that none is forecast; if it began a new numbering, give the game a new market`;
}

/** Says that no new round comes although the house is polled. */
export function stalledSentence(since: string): string {
  return `no new round came since ${minuteText(since)}`;
}

/**
 * Says that answers could not be read at all; why is for operators, next to each refused answer. `isChanged` where that
 * was so for many in a row, which maintenance and a new format both come to.
 */
export function unreadableSentence(since: string, isChanged = false): string {
  const why = isChanged ? ": it shows error pages or changed its format" : "";
  return `the house's answers cannot be read since ${minuteText(since)}${why}`;
}

/**
 * What an answer says about the house's format: a sentence where most of its items were refused, null if most were
 * good, undefined where there are too few to tell. `isChanged` where answers in a row say so.
 */
export function formatSentence(
  items: number,
  refused: number,
  since: string,
  isChanged = false,
): string | null | undefined {
  if (items === 0) return undefined;
  if (refused < items * REFUSED_PART) return null;
  if (items < REFUSED_FROM) return undefined;
  const what = isChanged ? "changed" : "seems to have changed";
  return `the house ${what} its format since ${minuteText(since)}: ${refused} of the ${items} items of its newest answer cannot be read`;
}

/** An ISO 8601 UTC time to the minute, as sentences tell it. */
function minuteText(iso: string): string {
  return `${iso.slice(0, 16).replace("T", " ")} UTC`;
}
