import { colorOf } from "./colors.ts";
import { placeItems, type NewSlot, type Slot } from "./place.ts";
import type { RoundsResponse, Conflict, KnownRound, OpenedGap, RefusedItem, TableState, IntakeRound } from "./round.ts";

/** The state of a round in quarantine. */
export interface HeldBack {
  /** It is quarantined because the feed was stuck. */
  stuck: boolean;
  /** When it was first listed with a number too far ahead; null if that is not the reason. */
  aheadAt: string | null;
  /** An operator released it. */
  released: boolean;
}

/** What is stored of the rounds that a response lists. */
export interface Stored {
  known: ReadonlyMap<string, KnownRound>;
  heldBack: ReadonlyMap<string, HeldBack>;
}

/** What to store of a response. */
export interface IntakePlan {
  rounds: IntakeRound[];
  conflicts: Conflict[];
  refused: RefusedItem[];
  gaps: OpenedGap[];
  /** The feed began to repeat one result (`begun`), or stopped (`over`); null if the response proves neither. */
  stuck: { kind: "begun"; hundredths: number; roundId: string } | { kind: "over" } | null;
  onTime: number;
  /** The ids of the response in playing order, null for an item that cannot be read. */
  sequence: (string | null)[];
  state: TableState;
}

/** Returns a table's history hash after a round. */
export type Link = (previous: string, round: Omit<IntakeRound, "historyHash">) => string;

/** Six equal results in a row have a chance of at most 3 in 10,000,000 if 5 % of rounds end immediately. */
const STUCK_FROM = 6;

/**
 * Decides what to store of one response: gives each new round its place, its color and its link in the table's chain of
 * hashes, separates on-time from late rounds, and finds gaps, conflicts and implausible items. Pure: the stored state
 * is an argument, and the next state is returned.
 *
 * A round is late if its number is not above the newest one. If ids are opaque, it is late if the house lists it as
 * older than a stored round or, in a response without our newest round, if its time is before that round's. A table
 * begins with the oldest round of its first response.
 */
export function planIntake(before: TableState, response: RoundsResponse, stored: Stored, link: Link): IntakePlan {
  const { slots, sharesRounds, conflicts, refused } = placeItems(before, response, stored);
  const taken: IntakePlan = {
    rounds: [],
    conflicts,
    refused,
    gaps: [],
    stuck: null,
    onTime: 0,
    sequence: [],
    state: { ...before },
  };
  const isLate = latenessOf(before, response, slots);
  const neighbors: Neighbors = { isHidden: false, older: null, run: { hundredths: 0, length: 0 } };
  for (const [place, slot] of slots.entries()) {
    if (slot.kind === "bad") {
      neighbors.isHidden = true;
      taken.sequence.push(null);
      continue;
    }
    const isProven = (slot.kind === "new" ? slot.verified : slot.known.verified) === true;
    neighbors.run = nextRun(neighbors.run, slot.round.hundredths, isProven);
    const late = slot.kind === "new" ? isLate(slot, place, taken.state) : slot.known.late;
    if (slot.kind === "new") {
      if (!late && response.manner === "history") continue; // the next poll takes it
      if (isStuck(slot, late, taken.state, neighbors, response, stored)) {
        taken.refused.push(stuckItem(slot));
        if (!late && taken.stuck?.kind !== "begun") {
          taken.stuck = { kind: "begun", hundredths: slot.round.hundredths, roundId: slot.round.roundId };
        }
        neighbors.isHidden = true;
        taken.sequence.push(null);
        continue;
      }
      takeOne(taken, slot, { late, response, stored, neighbors, sharesRounds, link });
    }
    taken.sequence.push(slot.round.roundId);
    neighbors.isHidden = false;
    neighbors.older = { roundId: slot.round.roundId, late };
  }
  return taken;
}

/** What precedes an item in its response. */
interface Neighbors {
  /** The item right before it cannot be read. */
  isHidden: boolean;
  older: { roundId: string; late: boolean } | null;
  /** Equal unproven results up to and including the item itself. */
  run: { hundredths: number; length: number };
}

function takeOne(
  taken: IntakePlan,
  { round, number, verified }: NewSlot,
  about: {
    late: boolean;
    response: RoundsResponse;
    stored: Stored;
    neighbors: Neighbors;
    sharesRounds: boolean;
    link: Link;
  },
): void {
  const { late, response, neighbors, stored } = about;
  const { state } = taken;
  let gap: OpenedGap | null = null;
  if (!late) {
    const { older } = neighbors;
    // right after a late round: other rounds were played since the newest one
    const isApart = taken.onTime === 0 && (older === null ? !about.sharesRounds : older.late);
    gap = gapBefore(state, { roundId: round.roundId, number }, response.manner, {
      isHidden: neighbors.isHidden || isApart,
      olderId: older === null || older.late ? null : older.roundId,
    });
    if (gap !== null) taken.gaps.push(gap);
    taken.stuck = OVER;
    taken.onTime += 1;
  }
  state.lastSeq += 1n;
  const { roundId, hundredths, rawValue, occurredAt } = round;
  const placed: IntakeRound = {
    seq: state.lastSeq,
    roundId,
    hundredths,
    rawValue,
    color: colorOf(hundredths, state.colors),
    occurredAt,
    // it was listed before, though unreadable
    absentAt: late || stored.heldBack.has(roundId) ? null : response.absentAt,
    afterGap: gap !== null,
    late,
    proofHash: round.hash,
    verified,
    historyHash: "",
  };
  state.historyHash = about.link(state.historyHash, placed);
  placed.historyHash = state.historyHash;
  taken.rounds.push(placed);
  if (!late) setNewest(state, round, { number, isProven: verified === true });
}

const OVER = { kind: "over" } as const;

/** Returns whether a new round, in playing order, follows rounds that were played later. */
function latenessOf(
  before: TableState,
  { manner }: RoundsResponse,
  slots: readonly Slot[],
): (slot: NewSlot, place: number, now: TableState) => boolean {
  if (manner === "late" || manner === "reread") return () => true;
  if (manner === "first" || before.newestRoundId === null) return () => false;
  if (before.roundIds === "consecutive") {
    // the newest number itself is new only after a reset to a round that is not stored
    return ({ number }, _, now) => number !== null && now.newestNumber !== null && number <= now.newestNumber;
  }
  const newestAt = slots.findLastIndex((slot) => slot.kind === "known" && slot.round.roundId === before.newestRoundId);
  const lastKnownAt = slots.findLastIndex(({ kind }) => kind === "known");
  const newestMs = before.newestOccurredAt === null ? null : Date.parse(before.newestOccurredAt);
  return ({ round }, place) => {
    if (newestAt !== -1) return place < newestAt;
    if (place < lastKnownAt) return true;
    if (round.occurredAt !== null && newestMs !== null) return Date.parse(round.occurredAt) < newestMs;
    return manner === "history"; // a page that was requested as older, without times
  };
}

/** The gap before an on-time round; null if there is none. */
function gapBefore(
  state: TableState,
  { roundId: beforeRoundId, number }: { roundId: string; number: bigint | null },
  manner: RoundsResponse["manner"],
  { isHidden, olderId }: { isHidden: boolean; olderId: string | null },
): OpenedGap | null {
  if (state.newestRoundId === null) return null;
  if (state.roundIds === "opaque") {
    const isGap = isHidden && manner === "poll";
    return isGap ? { range: null, afterRoundId: olderId ?? state.newestRoundId, beforeRoundId } : null;
  }
  if (number === null || state.newestNumber === null || number === state.newestNumber + 1n) return null;
  return {
    range: { from: state.newestNumber + 1n, to: number - 1n },
    afterRoundId: state.newestRoundId,
    beforeRoundId,
  };
}

/** Whether a round repeats a result too often in a row. A late round is compared within its own response. */
function isStuck(
  { round, verified }: NewSlot,
  late: boolean,
  state: TableState,
  { run }: Neighbors,
  { manner }: RoundsResponse,
  { heldBack }: Stored,
): boolean {
  const held = heldBack.get(round.roundId);
  if (verified === true || held?.released === true || manner === "late" || manner === "first") return false;
  if (late) return run.length >= STUCK_FROM || held?.stuck === true;
  return state.sameHundredths === round.hundredths && state.sameCount >= STUCK_FROM - 1;
}

function nextRun(run: { hundredths: number; length: number }, hundredths: number, isProven: boolean) {
  if (isProven) return { hundredths: 0, length: 0 };
  return { hundredths, length: run.hundredths === hundredths ? run.length + 1 : 1 };
}

function setNewest(
  state: TableState,
  { roundId, hundredths, occurredAt }: NewSlot["round"],
  { number, isProven }: { number: bigint | null; isProven: boolean },
): void {
  const isSame = !isProven && state.sameHundredths === hundredths;
  state.newestRoundId = roundId;
  state.newestNumber = number;
  state.newestOccurredAt = occurredAt ?? state.newestOccurredAt;
  state.sameHundredths = isProven ? null : hundredths;
  state.sameCount = isProven ? 0 : isSame ? state.sameCount + 1 : 1;
}

function stuckItem({ round, raw }: NewSlot): RefusedItem {
  const reason = `the result ${round.rawValue} was received at least ${STUCK_FROM} times in a row without a proof; if the house confirms it, release the item`;
  return { code: "stuck_feed", reason, roundId: round.roundId, raw };
}
