import { historyLink } from "../../record/hashes.ts";
import { gapsShownWhole } from "../../rounds/gaps/gaps.ts";
import { roundsSince } from "../../rounds/jump.ts";
import { quarantinedItem } from "../../rounds/lists/quarantined-item.ts";
import { numberOf, type KnownRound } from "../../rounds/round.ts";
import { planIntake, type HeldBack, type IntakePlan } from "../../rounds/intake.ts";
import { knownAmong, listKnown, withRounds } from "./known-rounds.ts";
import { gapRows, unknownGapsAfter } from "./place-gaps.ts";
import { absentAtOf, afterResponse, exactly, headAfter } from "./place-head.ts";
import { changeOf, noticesAfter, noticesAfterUnreadable } from "./place-notices.ts";
import { markOf, payloadOf, storedPayload } from "./place-payload.ts";
import { SOURCES, type RoundRow } from "./rows.ts";
import { bandOf } from "./settle.ts";
import type { PassResponse } from "./response.ts";
import { HELD_ROUNDS, KNOWN_ROUNDS, type CompletePassRows, type PassState } from "./state.ts";

type PlacedState = Pick<PassState, "head" | "known" | "heldBack" | "unknownGaps" | "notices" | "format" | "hasUnread">;
type PlacedRows = Pick<
  CompletePassRows,
  | "payloads"
  | "marks"
  | "rounds"
  | "quarantine"
  | "conflicts"
  | "gaps"
  | "lateNumbers"
  | "shownGaps"
  | "notices"
  | "changesNotices"
  | "format"
>;

/** The content of a response before anything is settled or learned. */
export interface Placed {
  state: PlacedState;
  rows: PlacedRows;
  /** Rounds that now have a second result: of earlier passes by seq, and of this one. */
  disputed: ReadonlySet<bigint>;
  /** Ids of the response in playing order, null for an item that cannot be read. */
  sequence: IntakePlan["sequence"];
}

/** Items per response that are quarantined one by one; beyond that the stored payload suffices. */
const QUARANTINED_AT_ONCE = 1_000;
/** The same for a response that is refused to this part or more: its format changed, and all items have the same reason. */
const QUARANTINED_OF_BAD = 100;
const BAD_PART = 0.8;

const NO_ROWS: PlacedRows = {
  payloads: [],
  marks: [],
  rounds: [],
  quarantine: [],
  conflicts: [],
  gaps: [],
  lateNumbers: [],
  shownGaps: [],
  notices: [],
  changesNotices: false,
  format: null,
};

/** Stores the payload of a response unread; only its evidence on rounds that it does not list counts. */
function keepUnread(state: PassState, response: PassResponse): Placed {
  const { head, known, heldBack, unknownGaps, notices, format } = state;
  const isKept = response.from === "poll" && response.payload !== null;
  return {
    state: {
      head: afterResponse(head, response, false),
      known,
      heldBack,
      unknownGaps,
      notices,
      format,
      hasUnread: state.hasUnread || isKept,
    },
    rows: { ...NO_ROWS, payloads: isKept ? [payloadOf(state, response, { state: "unread" })] : [] },
    disputed: new Set(),
    sequence: [],
  };
}

/**
 * Places each new round of a response, and finds missing, duplicate and invalid ones. A polled one is stored unread before
 * older payloads are read.
 */
export function placeResponse(state: PassState, response: PassResponse): Placed {
  const { read } = response;
  if (read === null || (response.from === "poll" && state.hasUnread)) return keepUnread(state, response);
  const hasUnread = response.from === "stored" ? response.isMoreUnread : state.hasUnread;
  if (!read.ok) return refuseResponse({ ...state, hasUnread }, response, read.reason);
  const { head, table } = state;
  const known = knownAmong(state, read.items, read.known);
  const heldBack = read.heldBack === undefined ? state.heldBack : new Map([...state.heldBack, ...read.heldBack]);
  const manner = response.from === "poll" ? "poll" : response.manner;
  const source = response.from === "stored" ? (manner === "poll" ? "poll" : "history") : response.from;
  const { requestedAt, receivedAt } = response;
  const link = historyLink({ source, requestedAt, receivedAt });
  const taken = planIntake(
    {
      roundIds: table.roundIds,
      feedOrder: read.feedOrder,
      colors: table.bands,
      lastSeq: head.lastSeq,
      historyHash: head.historyHash,
      newestRoundId: head.newestRoundId,
      newestNumber: head.newestNumber,
      newestOccurredAt: head.newestOccurredAt,
      lastRoundAt: head.lastRoundAt,
      sameHundredths: head.sameHundredths,
      sameCount: head.sameCount,
    },
    { items: read.items, absentAt: absentAtOf(head, response), manner, reach: () => reachOf(state, receivedAt) },
    { known, heldBack },
    (previous, round) => link(previous, round, exactly(round.occurredAt)),
  );
  const refused = quarantinedOf(taken.refused, read.items.length);
  const rounds = roundRowsOf(state, taken, { source: SOURCES.indexOf(source), requestedAt, receivedAt });
  const shown = gapsShownWhole(taken.sequence, state.unknownGaps);
  const gaps = gapRows(taken.gaps, state);
  const payloadReceivedAt = response.from !== "stored" && response.payload === null ? null : receivedAt;
  const isPoll = manner === "poll";
  const noticed = isPoll ? noticesAfter(state, read, taken, receivedAt) : null;
  const outcome = { items: read.items.length, newRounds: rounds.length, quarantined: taken.refused.length };
  return {
    state: {
      head: headAfter(state, response, taken, rounds),
      known: withRounds(
        state.known,
        taken.rounds.slice(-KNOWN_ROUNDS).map((round) => [round.roundId, knownOf(round, receivedAt)]),
      ),
      heldBack: heldBackAfter(state.heldBack, refused, receivedAt),
      unknownGaps: unknownGapsAfter(state, gaps, shown),
      notices: noticed?.notices ?? state.notices,
      format: noticed?.format ?? state.format,
      hasUnread,
    },
    rows: {
      payloads: storedPayload(state, response, { state: "read", ...outcome }),
      marks: markOf(response, { state: "read", ...outcome }),
      rounds,
      quarantine: refused.map(({ code, reason, roundId, raw }) => {
        const { item, itemSha256 } = quarantinedItem(raw);
        return { payloadReceivedAt, code, reason, roundId, item, itemSha256 };
      }),
      conflicts: taken.conflicts.map(({ roundId, kept, other, otherRaw }) => ({
        payloadReceivedAt,
        roundId,
        keptHundredths: kept,
        otherHundredths: other,
        otherRaw,
      })),
      gaps,
      lateNumbers: lateNumbersOf(state, rounds),
      shownGaps: shown.map(({ beforeRoundId, found }) => ({ beforeRoundId, found })),
      notices: noticed?.events ?? [],
      changesNotices:
        gaps.length + shown.length + taken.conflicts.length + taken.refused.length > 0 ||
        taken.rounds.some(({ late, roundId }) => late || heldBack.has(roundId)),
      format: noticed === null ? null : changeOf(state.format, noticed.format),
    },
    disputed: disputedSeqs(taken, known),
    sequence: taken.sequence,
  };
}

function quarantinedOf(refused: IntakePlan["refused"], items: number): IntakePlan["refused"] {
  return refused.slice(0, refused.length >= BAD_PART * items ? QUARANTINED_OF_BAD : QUARANTINED_AT_ONCE);
}

/** A response that cannot be read at all: it is stored with the reason, and proves nothing about any round. */
function refuseResponse(state: PassState, response: PassResponse, reason: string): Placed {
  const { known, heldBack, unknownGaps, hasUnread } = state;
  const isPoll = response.from === "poll" || response.manner === "poll";
  const noticed = isPoll ? noticesAfterUnreadable(state, response.receivedAt) : null;
  const outcome = { state: "refused", refusedReason: reason } as const;
  return {
    state: {
      head: afterResponse(state.head, response, true),
      known,
      heldBack,
      unknownGaps,
      notices: noticed?.notices ?? state.notices,
      format: noticed?.format ?? state.format,
      hasUnread,
    },
    rows: {
      ...NO_ROWS,
      payloads: storedPayload(state, response, outcome),
      marks: markOf(response, outcome),
      notices: noticed?.events ?? [],
      format: noticed === null ? null : changeOf(state.format, noticed.format),
    },
    disputed: new Set(),
    sequence: [],
  };
}

/** How many rounds may have been played since the newest known one. */
function reachOf({ head, known }: PassState, receivedAt: string): bigint {
  const rounds = listKnown(known).map(([, round]) => round);
  return roundsSince(head, rounds, receivedAt);
}

function roundRowsOf(
  { table, head }: PassState,
  taken: IntakePlan,
  { source, requestedAt, receivedAt }: { source: number; requestedAt: string | null; receivedAt: string },
): RoundRow[] {
  let ordinal = head.lastOrdinal;
  // field by field: spreads take half a microsecond per round
  return taken.rounds.map((round) => ({
    seq: round.seq,
    ordinal: round.late ? null : (ordinal += 1n),
    roundId: round.roundId,
    hundredths: round.hundredths,
    rawValue: round.rawValue,
    palette: head.palette,
    color: bandOf(round.hundredths, table.bands),
    source,
    requestedAt,
    receivedAt,
    occurredAt: exactly(round.occurredAt),
    absentAt: round.absentAt,
    afterGap: round.afterGap,
    late: round.late,
    verified: round.verified,
    proofHash: round.proofHash,
    historyHash: round.historyHash,
  }));
}

function knownOf(
  { seq, hundredths, late, verified, proofHash }: IntakePlan["rounds"][number],
  receivedAt: string,
): KnownRound {
  return { seq, hundredths, late, verified, proofHash, receivedAt };
}

/** The newest quarantined rounds, as they would be read from the rows. */
function heldBackAfter(
  heldBack: ReadonlyMap<string, HeldBack>,
  refused: IntakePlan["refused"],
  receivedAt: string,
): ReadonlyMap<string, HeldBack> {
  if (refused.every(({ roundId }) => roundId === null)) return heldBack;
  const after = new Map(heldBack);
  for (const { roundId, code } of refused) {
    if (roundId === null) continue;
    const held = after.get(roundId) ?? { stuck: false, aheadAt: null, released: false };
    const aheadAt = held.aheadAt ?? (code === "far_ahead" ? receivedAt : null);
    after.delete(roundId);
    after.set(roundId, { ...held, stuck: held.stuck || code === "stuck_feed", aheadAt });
  }
  for (const roundId of after.keys()) {
    if (after.size <= HELD_ROUNDS) break;
    after.delete(roundId);
  }
  return after;
}

function lateNumbersOf({ table }: PassState, rounds: readonly RoundRow[]): bigint[] {
  if (table.roundIds === "opaque") return [];
  return rounds.flatMap(({ late, roundId }) => (late ? (numberOf(roundId) ?? []) : []));
}

/** Seqs of rounds that were received with another result than the one that was kept. */
function disputedSeqs({ conflicts, rounds }: IntakePlan, known: ReadonlyMap<string, KnownRound>): Set<bigint> {
  const seqs = new Set<bigint>();
  for (const { roundId } of conflicts) {
    const round = known.get(roundId) ?? rounds.find((one) => one.roundId === roundId);
    if (round !== undefined && !round.late) seqs.add(round.seq);
  }
  return seqs;
}
