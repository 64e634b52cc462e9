import type { HouseRound } from "../houses/contract.ts";
import { believableNumbers } from "./jump.ts";
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
import type { Stored } from "./take-in.ts";

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

/**
 * Sorts out the items of one answer: repeats are counted, other results for the same round become conflicts (within an
 * answer the item listed first is kept), what cannot be read is refused, and the rest is put in playing order. Numbers
 * that a person chose or that we computed may jump as far as they like.
 */
export function placeItems(
  state: TableState,
  { items, manner, reach }: Pick<Answer, "items" | "manner" | "reach">,
  { known, heldBack }: Stored,
): Placed {
  const placed: Placed = { slots: [], sharesRounds: false, duplicates: 0, conflicts: [], refused: [] };
  const firsts = new Map<string, number>();
  const candidates: { roundId: string | null; occurredAt: string | null; slot: Slot }[] = [];
  const isByHand = manner === "first" || manner === "late";
  const whyFar = isByHand ? () => null : believableNumbers(state, { items, reach, heldBack });
  for (const [index, item] of items.entries()) {
    const refusal = item.ok && state.roundIds === "consecutive" ? badNumber(item, whyFar) : null;
    if (!item.ok || refusal !== null) {
      const roundId = item.ok ? item.round.roundId : item.roundId;
      const { code, reason } = item.ok ? (refusal ?? { code: "bad_id", reason: "" }) : item;
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

function badNumber(
  { round: { roundId }, verified }: Extract<CheckedItem, { ok: true }>,
  whyFar: (number: bigint) => string | null,
): Pick<RefusedItem, "code" | "reason"> | null {
  const number = numberOf(roundId);
  if (number !== null) {
    const reason = verified === true ? null : whyFar(number); // a proof is of a number
    return reason === null ? null : { code: "far_ahead", reason };
  }
  const reason = `expected a whole number of up to 18 digits without leading zeros, came ${JSON.stringify(roundId)}; where ids do not count up, set round_ids: opaque`;
  return { code: "bad_id", reason };
}
