import type { FeedOrder, HouseItem, HouseRound, RefusalCode } from "../houses/contract.ts";
import type { Color } from "./colors.ts";

/** How a round came to us: polled, asked for or read once more afterwards, computed from a later hash, or imported. */
export type RoundSource = "poll" | "history" | "computed" | "import";

/** An item of an answer after its proof was checked; `verified` is null if there is nothing to prove it with. */
export type CheckedItem =
  { ok: true; round: HouseRound; raw: unknown; verified: true | null } | Extract<HouseItem, { ok: false }>;

/** What a table must remember between two answers to place new rounds; changed only under the table's lock. */
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
  /** The result of the newest on-time rounds that nothing proves, and how many of them in a row have it. */
  sameHundredths: number | null;
  sameCount: number;
}

/** What a table already has of a round. */
export interface KnownRound {
  seq: bigint;
  hundredths: number;
  late: boolean;
  verified: boolean | null;
  proofHash: string | null;
  /** When the response that brought it was received; rounds of one response have the same. */
  receivedAt: string;
}

/** One answer to take in. */
export interface Answer {
  /** As the house sent them. */
  items: readonly CheckedItem[];
  /** When the answer before was asked for, or null if that tells nothing. */
  absentAt: string | null;
  /**
   * `poll`: each round is on time or late by its place. `history`: only rounds older than the newest are taken, all
   * late. `late`: all late. `first`: none is late; for filling an empty table in the order given. `reread`: an answer of
   * a house that is read once more, all late.
   */
  manner: "poll" | "history" | "late" | "first" | "reread";
  /** How many rounds may have been played since the newest known one, by time and pace; see `roundsSince`. */
  reach: () => bigint;
}

/** A round as it is stored, with the place and the hash it was given. */
export interface TakenRound {
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

/** An item that is quarantined; `index` is its place in the answer as the house sent it. */
export interface RefusedItem {
  index: number;
  code: RefusalCode;
  reason: string;
  roundId: string | null;
  raw: unknown;
}

/** The same round with another result than the one that was kept. */
export interface Conflict {
  index: number;
  roundId: string;
  kept: number;
  other: number;
  otherRaw: string;
}

/** Rounds known to exist and not received: a range of numbers, or, where ids tell nothing, of unknown size. */
export interface OpenedGap {
  range: { from: bigint; to: bigint } | null;
  afterRoundId: string;
  beforeRoundId: string;
}

/**
 * The number of a round whose ids count up; null for any other text. Leading zeros are not taken: 007 and 7 would be
 * one round with two names.
 */
export function numberOf(roundId: string): bigint | null {
  return /^(?:0|[1-9][0-9]{0,17})$/.test(roundId) ? BigInt(roundId) : null;
}

/**
 * Hundredths as people write a multiplier.
 *
 * @example
 * multiplierText(187) // => "1.87"
 * multiplierText(100) // => "1.00"
 */
export function multiplierText(hundredths: number | bigint): string {
  const digits = String(hundredths).padStart(3, "0");
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
