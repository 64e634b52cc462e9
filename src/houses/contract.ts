import type { z } from "zod";

/** One finished game as a house sends it, before it is matched with stored data. */
export interface HouseRound {
  roundId: string;
  /** Integer hundredths, floored from the exact decimal the house sent; at least 100. */
  hundredths: number;
  /** The multiplier exactly as received, as text. */
  rawValue: string;
  /** ISO 8601 UTC, up to microseconds, or null if the house sends no time. */
  occurredAt: string | null;
  /** The fairness hash, lower case hex, or null. */
  hash: string | null;
}

/** One item of a response: a round, or a refusal with its reason and the raw item. */
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

/** A parsed response: its items, or the reason why it cannot be read as a whole. */
export type ReadResponse = { ok: true; items: HouseItem[] } | { ok: false; reason: string };

/** A request to a house; the path is relative to its base_url. */
export interface FeedRequest {
  method: "GET" | "POST";
  path: string;
  headers: Record<string, string>;
  body?: string;
  /**
   * The round whose own page is requested: a 404 means that it was not played yet. Absent if the response is a list. The
   * path with it is stored as it is, so it must contain no other value of `feed`.
   */
  roundId?: string;
}

/** Which end of a list is the newest; `auto` detects it from stored rounds. */
export type FeedOrder = "auto" | "newest_first" | "newest_last";

/** What the options of every adapter resolve to, in addition to its own. */
export interface FeedOptions {
  /** The worth of one unit of the house: 0.01 if it sends hundredths. */
  scale: number;
  /** Values that mean an instant crash: stored as 1.00. */
  instant: (string | number)[];
  order: FeedOrder;
}

/** The state of a table when its newest rounds are requested. */
export interface Known {
  /** The number of the newest stored round if ids are consecutive; null before the first. */
  newest: bigint | null;
}

/** Which page of older rounds is requested. */
export interface HistoryRequest {
  /** The round before which older ones are requested. */
  beforeId: string;
  /** Pages that were read already, for houses that count pages from the newest. */
  page: number;
  limit: number;
  /** ISO 8601. */
  now: string;
}

/** The context of a response for its parser. */
export interface ReadOptions {
  /** ISO 8601: the oldest accepted time, for pages of history. */
  oldest?: string;
  /** The path that was requested: if each round has its own page, it names the round. */
  path?: string;
}

/**
 * The requests to one kind of house and the parser of its responses; each adapter is one file.
 *
 * All functions are pure. `feed` is always the parsed value of the adapter's own `options` for the table.
 */
export interface Adapter<Feed extends FeedOptions = FeedOptions> {
  name: string;
  /** The options under `feed:` in houses.yaml, with their defaults. */
  options: z.ZodType<Feed>;
  /**
   * `list`: one request returns the newest rounds. `page`: each round has its own page; the next one is requested, and its
   * 404 means that it was not played yet. Page houses have consecutive ids.
   */
  rounds: "list" | "page";
  /** How older rounds are requested: back from an id, or by pages counted from the newest. */
  paging: "id" | "number";
  /** Values that mean an instant crash on every table of this house, by default. */
  instant: (string | number)[];
  /** Headers that the house requires and an operator must configure. */
  needsHeaders: readonly string[];
  /** Whether a response has the hash that proves a round. */
  hasHash(feed: Feed): boolean;
  /** The request for new rounds. */
  poll(feed: Feed, known: Known): FeedRequest;
  /** The request for rounds before `beforeId`, or null if the house has no history pages. */
  history(feed: Feed, ask: HistoryRequest): FeedRequest | null;
  /**
   * What a body lists for one table, as text: if it is unchanged, so are the table's rounds. Null if unknown: then only an
   * identical body counts as unchanged. For responses that several tables share.
   */
  part(feed: Feed, body: Buffer): string | null;
  /**
   * Parses a response body. `now` (ISO 8601) bounds accepted times: 30 days before to a day after it; `oldest` replaces
   * the lower bound. Never throws, whatever the house sent.
   */
  read(feed: Feed, body: Buffer, now: string, options?: ReadOptions): ReadResponse;
}

/** Adds the common defaults: a list, paging by id, no headers, no instant values, no hash. */
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
