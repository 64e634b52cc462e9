import type { HouseRound } from "../houses/contract.ts";
import { inPlayingOrder } from "./order.ts";
import {
  numberOf,
  type Answer,
  type CheckedItem,
  type Conflict,
  type KnownRound,
  type RefusedItem,
  type TableState,
} from "./round.ts";

/** One place in the playing order of an answer: a round that is new or known, or an item that cannot be read. */
export type Slot = NewSlot | { kind: "known"; round: HouseRound; known: KnownRound } | { kind: "bad" };

/** A round that we do not have yet. */
export interface NewSlot {
  kind: "new";
  index: number;
  round: HouseRound;
  verified: true | null;
  raw: unknown;
}

/** The items of one answer sorted out: each round once, in playing order. */
export interface Placed {
  slots: Slot[];
  /** The answer names a round that we have: what it lists joins on to ours. */
  sharesRounds: boolean;
  duplicates: number;
  conflicts: Conflict[];
  refused: RefusedItem[];
}

/** A jump of more is a broken id: taken in, it would make every true round after it late for ever. */
const LONGEST_JUMP = 10_000_000n;

/**
 * Sorts out the items of one answer: repeats are counted, other results for the same round become conflicts (within an
 * answer the item listed first is kept), what cannot be read is refused, and the rest is put in playing order. Numbers
 * that a person chose or that we computed may jump as far as they like.
 */
export function placeItems(
  state: TableState,
  { items, manner }: Pick<Answer, "items" | "manner">,
  known: ReadonlyMap<string, KnownRound>,
): Placed {
  const placed: Placed = { slots: [], sharesRounds: false, duplicates: 0, conflicts: [], refused: [] };
  const firsts = new Map<string, number>();
  const candidates: { roundId: string | null; occurredAt: string | null; slot: Slot }[] = [];
  const isBelievable = manner === "first" || manner === "late" ? () => null : believableNumbers(state, items);
  for (const [index, item] of items.entries()) {
    const refusal = item.ok && state.roundIds === "consecutive" ? badNumber(item.round.roundId, isBelievable) : null;
    if (!item.ok || refusal !== null) {
      const roundId = item.ok ? item.round.roundId : item.roundId;
      const { code, reason } = item.ok ? { code: "bad_id" as const, reason: refusal ?? "" } : item;
      placed.refused.push({ index, code, reason, roundId, raw: item.raw });
      candidates.push({ roundId, occurredAt: null, slot: { kind: "bad" } });
      continue;
    }
    const { round, verified, raw } = item;
    const { roundId, occurredAt, hundredths } = round;
    const stored = known.get(roundId);
    const kept = firsts.get(roundId) ?? stored?.hundredths;
    if (kept !== undefined && kept !== hundredths) {
      placed.conflicts.push({ index, roundId, kept, other: hundredths, otherRaw: round.rawValue });
    } else if (kept !== undefined) {
      placed.duplicates += 1;
    }
    if (firsts.has(roundId)) continue;
    firsts.set(roundId, stored?.hundredths ?? hundredths);
    const slot: Slot =
      stored === undefined
        ? { kind: "new", index, round, verified, raw }
        : { kind: "known", round: { ...round, hundredths: stored.hundredths }, known: stored };
    candidates.push({ roundId, occurredAt, slot });
  }
  placed.sharesRounds = candidates.some(({ roundId }) => roundId !== null && known.has(roundId));
  // an unreadable copy of a round that is there anyway hides nothing
  const missing = candidates.filter(
    ({ roundId, slot }) => slot.kind !== "bad" || roundId === null || !(firsts.has(roundId) || known.has(roundId)),
  );
  const readable = state.roundIds === "consecutive" ? missing.filter(({ slot }) => slot.kind !== "bad") : missing;
  placed.slots = inPlayingOrder(readable, state, known, { newIsNewer: manner === "poll" }).map(({ slot }) => slot);
  return placed;
}

function badNumber(roundId: string, isBelievable: (number: bigint) => string | null): string | null {
  const number = numberOf(roundId);
  if (number !== null) return isBelievable(number);
  return `expected a whole number of up to 18 digits without leading zeros, came ${JSON.stringify(roundId)}; where ids do not count up, set round_ids: opaque`;
}

/** Says what is wrong with a number that lies far above all that is known, or, in a first answer, far from the others. */
function believableNumbers(state: TableState, items: readonly CheckedItem[]): (number: bigint) => string | null {
  const advice = "if the house began a new numbering, give the game a new market";
  const { newestNumber } = state;
  if (newestNumber !== null) {
    return (number) =>
      number - newestNumber > LONGEST_JUMP
        ? `the id ${number} is more than ${LONGEST_JUMP} above the newest known, ${newestNumber}; ${advice}`
        : null;
  }
  const numbers = items.flatMap((item) => (item.ok ? (numberOf(item.round.roundId) ?? []) : []));
  // ids have up to 18 digits, too many for a library that computes with doubles
  const median = numbers.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))[Math.floor(numbers.length / 2)] ?? 0n;
  return (number) =>
    number - median > LONGEST_JUMP || median - number > LONGEST_JUMP
      ? `the id ${number} is more than ${LONGEST_JUMP} away from the others of the answer, around ${median}`
      : null;
}
