import type { FeedSettings } from "./settings.ts";

/** One finished game as a house tells it, before anything of ours is known about it. */
export interface HouseRound {
  roundId: string;
  /** Integer hundredths, floored from the exact decimal the house sent; at least 100. */
  hundredths: number;
  /** The multiplier exactly as it came, as text. */
  rawValue: string;
  /** ISO 8601 UTC, up to microseconds, or null where the house gives no time. */
  occurredAt: string | null;
  /** The fairness hash, lower case hex, or null. */
  hash: string | null;
}

/** One item of an answer: a round, or a refusal with its reason; the raw item is kept beside a refusal. */
export type HouseItem =
  | { ok: true; round: HouseRound; raw: unknown }
  | { ok: false; code: RefusalCode; reason: string; roundId: string | null; raw: unknown };

/** Reasons why one item is quarantined. */
export type RefusalCode =
  | "missing_id"
  | "bad_id"
  | "missing_multiplier"
  | "not_a_number"
  | "impossible_multiplier"
  | "absurd_time"
  | "bad_hash"
  | "proof_mismatch"
  | "stuck_feed"
  | "not_an_item";

/** A whole answer: its items, or the reason why it cannot be read at all. */
export type ReadAnswer = { ok: true; items: HouseItem[] } | { ok: false; reason: string };

/** How one kind of house is asked and read; each adapter is one file. */
export interface Adapter {
  name: string;
  /** The request for what is new. */
  poll(feed: FeedSettings): { method: "GET" | "POST"; path: string; headers: Record<string, string>; body?: string };
  /** The request for rounds before `beforeId`, or null where the house cannot page back. */
  history(
    feed: FeedSettings,
    page: { beforeId: string; limit: number },
  ): { method: "GET" | "POST"; path: string; headers: Record<string, string>; body?: string } | null;
  /**
   * Reads an answer's body; pure. `now` (ISO 8601) bounds believable times: a day before to a day after it. A page of
   * history is old by nature: its reader says with `oldest` (ISO 8601) how far back a time is still believed.
   */
  read(feed: FeedSettings, body: Buffer, now: string, options?: { oldest?: string }): ReadAnswer;
}
