import type { z } from "zod";

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
  | "far_ahead"
  | "stuck_feed"
  | "not_an_item";

/** A whole answer: its items, or the reason why it cannot be read at all. */
export type ReadResponse = { ok: true; items: HouseItem[] } | { ok: false; reason: string };

/** A request to a house; the path begins where its base_url ends. */
export interface Ask {
  method: "GET" | "POST";
  path: string;
  headers: Record<string, string>;
  body?: string;
  /** The round whose own page this is: a 404 says that it was not played yet. Left out where the answer is a list. */
  roundId?: string;
}

/** Which end of a list is the newest; `auto` is found out from what is known. */
export type FeedOrder = "auto" | "newest_first" | "newest_last";

/** What the options of every adapter come to, besides its own. */
export interface FeedOptions {
  /** What one unit of the house is worth: 0.01 where it sends hundredths. */
  scale: number;
  /** Values that mean an instant crash: stored as 1.00. */
  instant: (string | number)[];
  order: FeedOrder;
}

/** What is known when a house is asked for what is new. */
export interface Known {
  /** The number of the newest round that is stored, where ids count up; null before the first. */
  newest: bigint | null;
}

/** Which page of older rounds is asked for. */
export interface HistoryAsk {
  /** The round before which older ones are wanted. */
  beforeId: string;
  /** Pages that were read already, for houses that count pages from the newest. */
  page: number;
  limit: number;
  /** ISO 8601. */
  now: string;
}

/** What a reader may know beside the answer itself. */
export interface ReadOptions {
  /** ISO 8601: how far back a time is still believed, for pages of history. */
  oldest?: string;
  /** What was asked for: where each round has its own page, it names the round. */
  path?: string;
}

/**
 * How one kind of house is asked and read; each adapter is one file.
 *
 * Everything here is pure. `feed` is always what the adapter's own `options` gave for the table.
 */
export interface Adapter<Feed extends FeedOptions = FeedOptions> {
  name: string;
  /** The options that stand under `feed:` in houses.yaml, with their defaults. */
  options: z.ZodType<Feed>;
  /**
   * `list`: one request brings the newest rounds. `page`: each round has its own page; the next one is asked for, and
   * its 404 says that it was not played yet. Page houses have consecutive ids.
   */
  rounds: "list" | "page";
  /** How older rounds are asked for: back from an id, or by pages counted from the newest. */
  paging: "id" | "number";
  /** Values that are an instant crash with every table of this house, as `options` has them by default. */
  instant: (string | number)[];
  /** Headers the house insists on, which an operator must give. */
  needsHeaders: readonly string[];
  /** Does an answer carry the hash that proves a round? */
  hasHash(feed: Feed): boolean;
  /** The request for what is new. */
  poll(feed: Feed, known: Known): Ask;
  /** The request for rounds before `beforeId`, or null where the house cannot page back. */
  history(feed: Feed, ask: HistoryAsk): Ask | null;
  /**
   * What a body lists for one table, as text: when it is as before, so are the table's rounds. Null when that is not known, so
   * that only an equal body lists the same. For responses that several tables share.
   */
  part(feed: Feed, body: Buffer): string | null;
  /**
   * Reads an answer's body. `now` (ISO 8601) bounds believable times: 30 days before to a day after it; `oldest`
   * replaces the lower bound. Never throws for what a house sent.
   */
  read(feed: Feed, body: Buffer, now: string, options?: ReadOptions): ReadResponse;
}

/** Fills in what most adapters have in common: lists, paging by id, no headers, no instant values, no hash. */
export function adapter<Feed extends FeedOptions>(
  own: Pick<Adapter<Feed>, "name" | "options" | "poll" | "history" | "read"> & Partial<Adapter<Feed>>,
): Adapter<Feed> {
  return {
    rounds: "list",
    paging: "id",
    needsHeaders: [],
    instant: [],
    hasHash: () => false,
    part: () => null,
    ...own,
  };
}
