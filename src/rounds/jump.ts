import { numberOf, type CheckedItem, type KnownRound, type TableState } from "./round.ts";
import type { HeldBack } from "./intake.ts";

/** Rounds that may be missing at any time: a house that skips a few numbers is accepted immediately. */
const SKIPPED = 100;
/** The pace of a table may have grown by this factor since its newest round. */
const FASTER = 4;
/** The assumed rounds per second of a table with too few known rounds to measure its pace. */
const UNKNOWN_PACE = 1;
/** The number of known rounds from which the pace is measured. */
const PACED = 16;

/**
 * Returns how many rounds of a table may have been played since its newest one, from the pace of the known rounds.
 *
 * @param receivedAt when the response that lists later rounds was received
 */
export function roundsSince(
  { lastRoundAt, newestOccurredAt }: { lastRoundAt: string | null; newestOccurredAt: string | null },
  known: Iterable<KnownRound>,
  receivedAt: string,
): bigint {
  const times = [...known].flatMap((round) => (round.late ? [] : Date.parse(round.receivedAt)));
  const span = (Math.max(...times) - Math.min(...times)) / 1_000;
  const pace = times.length >= PACED && span > 0 ? times.length / span : UNKNOWN_PACE;
  const since = [lastRoundAt, newestOccurredAt].flatMap((time) => (time === null ? [] : Date.parse(time)));
  const seconds = since.length === 0 ? 0 : Math.max(0, Date.parse(receivedAt) - Math.min(...since)) / 1_000;
  return BigInt(SKIPPED + Math.ceil(FASTER * pace * seconds));
}

/** A response whose ids are consecutive numbers, and the state of its table. */
interface Listed {
  items: readonly CheckedItem[];
  /** See {@link roundsSince}. */
  reach: () => bigint;
  heldBack: ReadonlyMap<string, HeldBack>;
}

/**
 * Returns a function that gives the reason why a number is too far above the newest known one, or null if it is
 * plausible. A far number is quarantined; it is accepted when a later response continues from it and none continues the
 * old sequence. In a table's first response a number must be near the others.
 */
export function believableNumbers(
  state: TableState,
  { items, reach, heldBack }: Listed,
): (number: bigint) => string | null {
  const numbers = items.flatMap((item) => (item.ok ? (numberOf(item.round.roundId) ?? []) : []));
  const { newestNumber } = state;
  if (newestNumber === null) {
    const near = BigInt(SKIPPED + items.length);
    // ids have up to 18 digits, too many for a library that computes with doubles
    const median = numbers.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))[Math.floor(numbers.length / 2)] ?? 0n;
    return (number) =>
      number - median > near || median - number > near
        ? `the id ${number} is more than ${near} away from the others of the response, around ${median}`
        : null;
  }
  if (numbers.every((number) => number <= newestNumber + BigInt(SKIPPED))) return () => null; // the common case
  const near = reach() + BigInt(items.length);
  const isOldContinued = numbers.some((number) => number > newestNumber && number <= newestNumber + near);
  const held = isOldContinued ? [] : heldNumbers(heldBack, state.lastRoundAt);
  const continued = held.filter((one) => numbers.some((number) => number > one && number <= one + near));
  return (number) => {
    if (number <= newestNumber + near || heldBack.get(String(number))?.released === true) return null;
    if (continued.some((one) => number >= one - near && number <= one + near)) return null;
    return `the id ${number} is ${number - newestNumber} above the newest known, ${newestNumber}, but at most ${near} rounds can have been played since; it is accepted when the house continues from it`;
  };
}

/**
 * Far numbers that were listed since the newest round; an older one was a mistake, because the old sequence continued.
 */
function heldNumbers(heldBack: ReadonlyMap<string, HeldBack>, lastRoundAt: string | null): bigint[] {
  return [...heldBack].flatMap(([roundId, { aheadAt }]) =>
    aheadAt !== null && (lastRoundAt === null || aheadAt >= lastRoundAt) ? (numberOf(roundId) ?? []) : [],
  );
}
