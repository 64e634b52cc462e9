import type { FeedOrder, HouseItem, HouseRound, RefusalCode } from "../houses/contract.ts";
import type { Color } from "./colors.ts";

/** An item of a response after its proof was checked; `verified` is null if nothing can prove it. */
export type CheckedItem =
  { ok: true; round: HouseRound; raw: unknown; verified: true | null } | Extract<HouseItem, { ok: false }>;

/**
 * The state of a table between two responses, from which new rounds are placed; changed only under the table's lock.
 */
export interface TableState {
  readonly roundIds: "consecutive" | "opaque";
  readonly feedOrder: FeedOrder;
  readonly colors: readonly Color[];
  lastSeq: bigint;
  historyHash: string;
  /** The newest round that was not late; null before the first. */
  newestRoundId: string | null;
  newestNumber: bigint | null;
  newestOccurredAt: string | null;
  /** When the newest round was received, on time or late; null before the first. */
  lastRoundAt: string | null;
  /** The result that the newest unproven on-time rounds have in common, and how many in a row have it. */
  sameHundredths: number | null;
  sameCount: number;
}

/** The stored part of a round. */
export interface KnownRound {
  seq: bigint;
  hundredths: number;
  late: boolean;
  verified: boolean | null;
  proofHash: string | null;
  /** When the response with this round was received; rounds of one response have the same time. */
  receivedAt: string;
}

/** One response to take in. */
export interface RoundsResponse {
  /** In the house's order. */
  items: readonly CheckedItem[];
  /** When the previous response was requested; null if that proves nothing. */
  absentAt: string | null;
  /**
   * `poll`: each round is on time or late by its place. `history`: only rounds older than the newest are taken, all
   * late. `late`: all are late. `first`: none is late; fills an empty table in the given order. `reread`: a stored
   * payload is read again, all are late.
   */
  manner: "poll" | "history" | "late" | "first" | "reread";
  /** How many rounds may have been played since the newest known one, by time and pace; see `roundsSince`. */
  reach: () => bigint;
}

/** A round to store, with its place and its hash. */
export interface IntakeRound {
  seq: bigint;
  roundId: string;
  hundredths: number;
  rawValue: string;
  color: string;
  occurredAt: string | null;
  absentAt: string | null;
  afterGap: boolean;
  late: boolean;
  proofHash: string | null;
  verified: true | null;
  historyHash: string;
}

/** A quarantined item. */
export interface RefusedItem {
  code: RefusalCode;
  reason: string;
  roundId: string | null;
  raw: unknown;
}

/** A round with another result than the one that was kept. */
export interface Conflict {
  roundId: string;
  kept: number;
  other: number;
  otherRaw: string;
}

/** Rounds known to exist and not received: a range of numbers, or of unknown size if ids are opaque. */
export interface OpenedGap {
  range: { from: bigint; to: bigint } | null;
  afterRoundId: string;
  beforeRoundId: string;
}

/**
 * The number of a round whose ids are consecutive; null for any other text. Leading zeros are refused: 007 and 7 would
 * be one round with two names.
 */
export function numberOf(roundId: string): bigint | null {
  // digit by digit: a regular expression takes twice as long, and an imported row asks five times
  const { length } = roundId;
  if (length === 0 || length > MOST_DIGITS || (length > 1 && roundId.startsWith("0"))) return null;
  for (let at = 0; at < length; at += 1) {
    const code = roundId.charCodeAt(at);
    if (code < ZERO || code > NINE) return null;
  }
  return BigInt(roundId);
}

const MOST_DIGITS = 18;
const ZERO = 0x30;
const NINE = 0x39;

/**
 * Hundredths as a multiplier with two decimals.
 *
 * @example
 * multiplierText(187) // => "1.87"
 * multiplierText(100) // => "1.00"
 */
export function multiplierText(hundredths: number | bigint): string {
  const digits = String(hundredths).padStart(3, "0");
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
