import type { HouseRound } from "../houses/contract.ts";
import { believableNumbers } from "./jump.ts";
import { inPlayingOrder, type Placeable } from "./order.ts";
import {
  numberOf,
  type RoundsResponse,
  type CheckedItem,
  type Conflict,
  type KnownRound,
  type RefusedItem,
  type TableState,
} from "./round.ts";
import type { Stored } from "./intake.ts";

/** One place in the playing order of a response: a new round, a known round, or an item that cannot be read. */
export type Slot = NewSlot | { kind: "known"; round: HouseRound; known: KnownRound } | { kind: "bad" };

/** A round that is not stored yet. */
export interface NewSlot {
  kind: "new";
  round: HouseRound;
  /** Of a consecutive id; else null. */
  number: bigint | null;
  verified: true | null;
  raw: unknown;
}

/** The sorted items of one response: each round once, in playing order. */
export interface Placed {
  slots: Slot[];
  /** The response contains a stored round that was on time, readable or not: it connects to the stored sequence. */
  sharesRounds: boolean;
  conflicts: Conflict[];
  refused: RefusedItem[];
}

/**
 * Sorts the items of one response: repeats are left out, different results for one round become conflicts (the first in
 * the response is kept), unreadable items are refused, and the rest is put in playing order. Numbers of imports and of
 * computed rounds may jump by any amount.
 */
export function placeItems(
  state: TableState,
  { items, manner, reach }: Pick<RoundsResponse, "items" | "manner" | "reach">,
  { known, heldBack }: Stored,
): Placed {
  const placed: Placed = { slots: [], sharesRounds: false, conflicts: [], refused: [] };
  const firsts = new Map<string, number>();
  const candidates: (Placeable & { slot: Slot })[] = [];
  const isManual = manner === "first" || manner === "late";
  const whyFar = isManual ? () => null : believableNumbers(state, { items, reach, heldBack });
  for (const item of items) {
    const number = item.ok && state.roundIds === "consecutive" ? numberOf(item.round.roundId) : null;
    const refusal = item.ok && state.roundIds === "consecutive" ? badNumber(item, number, whyFar) : null;
    if (!item.ok || refusal !== null) {
      const roundId = item.ok ? item.round.roundId : item.roundId;
      const { code, reason } = item.ok ? (refusal ?? { code: "bad_id", reason: "" }) : item;
      placed.refused.push({ code, reason, roundId, raw: item.raw });
      candidates.push({ roundId, number: null, occurredAt: null, slot: { kind: "bad" } });
      continue;
    }
    const { round, verified, raw } = item;
    const { roundId, occurredAt, hundredths } = round;
    const stored = known.get(roundId);
    const kept = firsts.get(roundId) ?? stored?.hundredths;
    if (kept !== undefined && kept !== hundredths) {
      placed.conflicts.push({ roundId, kept, other: hundredths, otherRaw: round.rawValue });
    }
    if (firsts.has(roundId)) continue;
    firsts.set(roundId, stored?.hundredths ?? hundredths);
    const slot: Slot =
      stored === undefined
        ? { kind: "new", round, number, verified, raw }
        : { kind: "known", round: { ...round, hundredths: stored.hundredths }, known: stored };
    candidates.push({ roundId, number, occurredAt, slot });
  }
  placed.sharesRounds = candidates.some(({ roundId }) => roundId !== null && known.get(roundId)?.late === false);
  // an unreadable copy of a round that is also readable or stored hides nothing
  const missing =
    placed.refused.length === 0
      ? candidates
      : candidates.filter(
          ({ roundId, slot }) =>
            slot.kind !== "bad" || roundId === null || !(firsts.has(roundId) || known.has(roundId)),
        );
  placed.slots = inPlayingOrder(missing, state, known, { newIsNewer: manner === "poll" }).map(({ slot }) => slot);
  return placed;
}

function badNumber(
  { round: { roundId }, verified }: Extract<CheckedItem, { ok: true }>,
  number: bigint | null,
  whyFar: (number: bigint) => string | null,
): Pick<RefusedItem, "code" | "reason"> | null {
  if (number !== null) {
    const reason = verified === true ? null : whyFar(number); // a proof confirms the number
    return reason === null ? null : { code: "far_ahead", reason };
  }
  const reason = `expected a whole number of up to 18 digits without leading zeros, found ${JSON.stringify(roundId)}; if ids are not consecutive, set round_ids: opaque`;
  return { code: "bad_id", reason };
}
