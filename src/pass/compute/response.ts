/* What a pass processes: a response with its content, however it came. */
import type { FeedOrder } from "../../houses/contract.ts";
import type { Anchor } from "../../houses/fairness/prove.ts";
import type { HeldBack } from "../../rounds/intake.ts";
import type { RoundsResponse, CheckedItem, KnownRound } from "../../rounds/round.ts";
import type { PayloadRow } from "./rows.ts";

/** A response that is to be stored, as it was received. */
export type ReceivedPayload = Pick<
  PayloadRow,
  "path" | "status" | "contentType" | "bytes" | "sha256" | "body" | "served"
>;

/** The content of a response, after reading and proofs. */
export type ReadResponse =
  | {
      ok: true;
      items: readonly CheckedItem[];
      feedOrder: FeedOrder;
      /** Items that the adapter refused; proofs and stuck feeds do not count. */
      refusedByAdapter: number;
      /** It is the page of one round. */
      isPage: boolean;
      /** The newest proven round. */
      anchor: Anchor | null;
      /** The stored part of rounds that the state does not know; see `idsToLookUp`. */
      known?: ReadonlyMap<string, KnownRound>;
      heldBack?: ReadonlyMap<string, HeldBack>;
    }
  | { ok: false; reason: string };

/** The house's response to a poll. */
export interface PolledResponse {
  from: "poll";
  requestedAt: string;
  receivedAt: string;
  /**
   * What it proves about rounds that it does not list: not played yet; nothing any more; nothing beyond earlier
   * evidence.
   */
  absence: "proven" | "forgotten" | "as_before";
  /** It may be the page of a round that was played long ago. */
  isAhead: boolean;
  /** Null if it is not stored: it failed, is a 404, or repeats the newest payload. */
  payload: ReceivedPayload | null;
  /** It is a 304, or equal to the newest payload, or its part for this table is. */
  isRepeat: boolean;
  /** SHA-256 of the part for this table, see `sharedPart`; null if the table does not share it. */
  part: string | null;
  /** Null without a payload. */
  read: ReadResponse | null;
}

/** A stored payload: unread, or read again after its adapter was fixed. */
export interface StoredResponse {
  from: "stored";
  requestedAt: string;
  receivedAt: string;
  sha256: string;
  /** Request time of the previous response; null if that one proves nothing. */
  absentAt: string | null;
  manner: RoundsResponse["manner"];
  /** Other payloads of the table are still unread. */
  isMoreUnread: boolean;
  read: ReadResponse;
}

/** Rounds without a payload of a poll: a page of history (to be stored), computed rounds, or an import. */
export interface AddedRounds {
  from: "history" | "computed" | "import";
  requestedAt: string | null;
  receivedAt: string;
  manner: RoundsResponse["manner"];
  payload: ReceivedPayload | null;
  read: ReadResponse;
}

/** Whatever a pass processes. */
export type PassResponse = PolledResponse | StoredResponse | AddedRounds;
