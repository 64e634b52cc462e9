import { multiplierText } from "../round.ts";

/** The subject of a continuity notice; at most one of a kind is open per table. */
export type NoticeKind =
  "gap" | "conflict" | "proof" | "stalled" | "stuck" | "format" | "quarantine" | "ids" | "model" | "operator";

/** The order in which open notices are listed: the most serious first. */
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

/** Hours that a notice stays open after its cause was last seen: long enough for a reader who checks once a day. */
export const NOTICE_HOURS = { givenUpGap: 24, conflict: 24, proof: 24, quarantine: 1, model: 168 } as const;

/** Causes of a kind that are counted for a notice; beyond that it states "more than 1,000", and not since when. */
export const MOST_CAUSES = 1_000;

/** The gaps of a table that a notice mentions. Times are ISO 8601 UTC. */
export interface GapFacts {
  /** Gaps with a known range. */
  ranges: number;
  missing: bigint;
  from: bigint | null;
  to: bigint | null;
  /** Gaps of unknown size. */
  unknown: number;
  since: string;
  isTrying: boolean;
  /** Why the newest one was given up. */
  reason: string | null;
}

/**
 * States what is missing, since when, and whether it is still being fetched.
 *
 * @example
 * gapSentence({ ranges: 1, missing: 3n, from: 812n, to: 814n, unknown: 0, since: "2026-11-21T04:00:12.1Z", isTrying: true, reason: null }) // => "3 rounds (812 to 814) are missing since 2026-11-21 04:00 UTC; trying to fetch them"
 */
export function gapSentence(gaps: GapFacts): string {
  const one = isOneRound(gaps);
  const tail = gaps.isTrying
    ? `; trying to fetch ${one ? "it" : "them"}`
    : `; ${one ? "it" : "they"} could not be fetched${gaps.reason === null ? "" : `: ${gaps.reason}`}`;
  if (gaps.ranges + gaps.unknown > MOST_CAUSES) return `rounds in more than 1,000 places are missing${tail}`;
  return `${missingText(gaps, "are")} missing since ${minuteText(gaps.since)}${tail}`;
}

/** The gaps of a notice that closes and of which one was filled; those of which no round was missing are not counted. */
export interface ClosedGapFacts extends Omit<GapFacts, "isTrying" | "reason"> {
  /** All of their rounds were received. */
  isComplete: boolean;
}

/**
 * States what was missing, and whether all of it was received.
 *
 * @example
 * closedGapSentence({ ranges: 1, missing: 3n, from: 812n, to: 814n, unknown: 0, since: "2026-11-21T04:00:12.1Z", isComplete: true }) // => "3 rounds (812 to 814) were missing since 2026-11-21 04:00 UTC; all were received"
 */
export function closedGapSentence(gaps: ClosedGapFacts): string {
  if (gaps.ranges + gaps.unknown === 0) return "no round was missing";
  const all = isOneRound(gaps) ? "it was received" : "all were received";
  const tail = gaps.isComplete ? all : "some were received, the others could not be fetched";
  return `${missingText(gaps, "were")} missing since ${minuteText(gaps.since)}; ${tail}`;
}

type MissingFacts = Pick<GapFacts, "ranges" | "missing" | "from" | "to" | "unknown">;

function isOneRound({ ranges, missing, unknown }: MissingFacts): boolean {
  return ranges > 0 && missing === 1n && unknown === 0;
}

function missingText({ ranges, missing, from, to, unknown }: MissingFacts, many: "are" | "were"): string {
  const one = many === "are" ? "is" : "was";
  if (ranges === 0 || from === null || to === null) {
    return unknown > 1
      ? `an unknown number of rounds in ${unknown} places ${many}`
      : `an unknown number of rounds ${many}`;
  }
  const places = ranges > 1 ? ` in ${ranges} gaps` : "";
  const besides = unknown > 0 ? " and an unknown number in other places" : "";
  if (missing === 1n && from === to) return `1 round (${from})${besides} ${besides === "" ? one : many}`;
  if (ranges === 1 && missing < to - from + 1n) {
    return missing === 1n && besides === ""
      ? `1 of the rounds ${from} to ${to} ${one}`
      : `${missing} of the rounds ${from} to ${to}${besides} ${many}`;
  }
  return `${missing} rounds${places} (${from} to ${to})${besides} ${many}`;
}

/** Rounds that were received with two results, newest last. */
export interface ConflictFacts {
  rounds: number;
  /** Other results than the kept ones. */
  results: number;
  roundId: string;
  kept: bigint;
  other: bigint;
  since: string;
}

/** States which round was received twice, with which results, and which result was kept. */
export function conflictSentence({ rounds, results, roundId, kept, other, since }: ConflictFacts): string {
  if (results > MOST_CAUSES)
    return "rounds were received with more than 1,000 other results; the first of each is kept";
  return rounds === 1
    ? `round ${roundId} was received twice, with ${multiplierText(kept)} and ${multiplierText(other)} since ${minuteText(since)}; the first is kept`
    : `${rounds} rounds were received twice with different results since ${minuteText(since)}; the first of each is kept`;
}

/** Rounds that an operator corrected, newest last; a result of null means void. */
export interface RevisionFacts {
  rounds: number;
  roundId: string;
  from: bigint | null;
  to: bigint | null;
  since: string;
}

/**
 * States which round an operator corrected, and that rounds are still listed as first received.
 *
 * @example
 * revisionSentence({ rounds: 1, roundId: "812", from: 187n, to: 204n, since: "2026-11-21T04:00:12.1Z" }) // => "round 812 was corrected from 1.87 to 2.04 at 2026-11-21 04:00 UTC; it is listed as first received, and no forecast on it counts"
 */
export function revisionSentence({ rounds, roundId, from, to, since }: RevisionFacts): string {
  if (rounds > 1) {
    return `${rounds} rounds were corrected since ${minuteText(since)}; they are listed as first received, and no forecast on them counts`;
  }
  const what =
    to === null
      ? "was declared void"
      : `was corrected from ${from === null ? "void" : multiplierText(from)} to ${multiplierText(to)}`;
  return `round ${roundId} ${what} at ${minuteText(since)}; it is listed as first received, and no forecast on it counts`;
}

/** Items that are quarantined, newest last. */
export interface RefusedFacts {
  items: number;
  roundId: string | null;
  reason: string;
  since: string;
}

/** States which rounds fail their proof. */
export function proofSentence({ items, roundId, reason, since }: RefusedFacts): string {
  if (items > MOST_CAUSES) return "more than 1,000 rounds failed their fairness proof; they are quarantined";
  return items === 1
    ? `round ${roundId ?? "without an id"} failed its fairness proof at ${minuteText(since)} (${reason}); it is quarantined`
    : `${items} rounds failed their fairness proof since ${minuteText(since)}; they are quarantined`;
}

/** States how many items failed validation. The reasons are for operators, next to each item in quarantine. */
export function quarantineSentence({ items, roundId, since }: RefusedFacts): string {
  if (items > MOST_CAUSES) return "more than 1,000 items failed validation; they are quarantined";
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
  return `forecasts are made by the model ${to} instead of ${from} since ${minuteText(since)}; each has its own record`;
}

/** States that the feed repeats one result. */
export function stuckSentence(stuck: { hundredths: number; roundId: string }, since: string): string {
  return `the feed repeats ${multiplierText(stuck.hundredths)} since round ${stuck.roundId}, ${minuteText(since)}; the repeats are quarantined until another result is received`;
}

/** States that nothing can be forecast, because new rounds are listed before a known one. */
export function idsSentence(newest: string, since: string, roundIds: "consecutive" | "opaque"): string {
  const advice =
    roundIds === "opaque"
      ? "if the time of that round is wrong, staff can reset it"
      : "if it began a new numbering, give the game a new market";
  return `since ${minuteText(since)} the house lists its new rounds as older than round ${newest}, so none of them is forecast; ${advice}`;
}

/** States that no new round arrives although the house is polled. */
export function stalledSentence(since: string): string {
  return `no new round was received since ${minuteText(since)}`;
}

/**
 * States that responses cannot be read at all; the reasons are for operators, next to each refused response.
 * `isChanged` if many in a row could not be read, which maintenance and a new format both cause.
 */
export function unreadableSentence(since: string, isChanged: boolean): string {
  const why = isChanged ? ": it shows error pages or changed its format" : "";
  return `the house's responses cannot be read since ${minuteText(since)}${why}`;
}

/** States how many items of a response were refused. `isChanged` if consecutive responses confirm another format. */
export function formatSentence(
  { items, refused }: { items: number; refused: number },
  since: string,
  isChanged: boolean,
): string {
  const what = isChanged ? "changed" : "seems to have changed";
  return `the house ${what} its format since ${minuteText(since)}: ${refused} of the ${items} items of its newest response cannot be read`;
}

/** An ISO 8601 UTC time to the minute, as sentences show it. */
function minuteText(iso: string): string {
  return `${iso.slice(0, 16).replace("T", " ")} UTC`;
}
