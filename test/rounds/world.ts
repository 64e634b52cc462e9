import { hash } from "node:crypto";
import type { HouseRound } from "../../src/houses/contract.ts";
import type { RoundsResponse, CheckedItem, KnownRound, TableState } from "../../src/rounds/round.ts";
import { planIntake, type HeldBack, type Link, type IntakePlan } from "../../src/rounds/intake.ts";

const NO_HASH = "0".repeat(64);

/** A hash of a round in its place; what is hashed of it is the caller's. */
export const linkOf: Link = (previous, { seq, roundId, hundredths }) =>
  hash("sha256", `${previous}|${seq}|${roundId}|${hundredths}`);

/** A table before its first round. */
function emptyTable(changed: Partial<TableState> = {}): TableState {
  return {
    roundIds: "consecutive",
    feedOrder: "auto",
    colors: [
      { name: "blue", below: 200 },
      { name: "purple", below: 1000 },
      { name: "pink", below: null },
    ],
    lastSeq: 0n,
    historyHash: NO_HASH,
    newestRoundId: null,
    newestNumber: null,
    newestOccurredAt: null,
    lastRoundAt: null,
    sameHundredths: null,
    sameCount: 0,
    ...changed,
  };
}

/** A good item as an adapter reads it. */
export function good(
  roundId: string | number,
  hundredths: number,
  changed: Partial<HouseRound> & { verified?: true | null } = {},
): CheckedItem {
  const { verified = null, ...round } = changed;
  return {
    ok: true,
    verified,
    raw: { id: roundId, hundredths },
    round: {
      roundId: String(roundId),
      hundredths,
      rawValue: String(hundredths / 100),
      occurredAt: null,
      hash: null,
      ...round,
    },
  };
}

/** An item that its adapter refused. */
export function bad(roundId: string | null = null): CheckedItem {
  return {
    ok: false,
    code: "impossible_multiplier",
    reason: "expected 1.00 or more, came 0",
    roundId,
    raw: { roundId },
  };
}

/** A table in memory that takes in one response after the other, as the store would. */
export function memoryTable(changed: Partial<TableState> = {}) {
  const known = new Map<string, KnownRound>();
  const heldBack = new Map<string, HeldBack>();
  const rounds: IntakePlan["rounds"] = [];
  let state = emptyTable(changed);
  let responses = 0;
  return {
    known,
    heldBack,
    rounds,
    state: () => state,
    take(items: readonly CheckedItem[], about: Partial<RoundsResponse> = {}): IntakePlan {
      responses += 1;
      const response: RoundsResponse = { items, absentAt: null, manner: "poll", reach: () => 100n, ...about };
      const taken = planIntake(state, response, { known, heldBack }, linkOf);
      state = taken.rounds.length === 0 ? taken.state : { ...taken.state, lastRoundAt: String(responses) };
      rounds.push(...taken.rounds);
      for (const { roundId, seq, hundredths, late, verified, proofHash } of taken.rounds) {
        known.set(roundId, { seq, hundredths, late, verified, proofHash, receivedAt: String(responses) });
      }
      for (const { roundId, code } of taken.refused) {
        const aheadAt = code === "far_ahead" ? String(responses) : null;
        if (roundId !== null) heldBack.set(roundId, { stuck: code === "stuck_feed", aheadAt, released: false });
      }
      return taken;
    },
  };
}
