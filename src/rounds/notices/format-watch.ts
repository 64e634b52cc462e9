/**
 * How well a response could be read: `refused`: its items failed validation; `unreadable`: nothing of it could be read;
 * `held`: the page of a round could be read, but the round is quarantined; `unknown`: too few items.
 */
export type Verdict = "good" | "refused" | "unreadable" | "held" | "unknown";

/** What is known of the format of a feed's responses. */
export interface FormatState {
  /** Consecutive responses that were `refused`, `unreadable` or `held`: none of them brought a round. */
  badResponses: number;
  /** ISO 8601: since when the house is taken to have changed its format; null if it is not. */
  since: string | null;
}

/**
 * At least this part of the items of a response, and at least this many items, must be refused to count as another
 * format.
 */
const REFUSED_PART = 0.8;
const REFUSED_FROM = 5;
/** One page of broken items can be an accident of the house; two in a row are a new format. */
const REFUSED_IN_ROW = 2;
/** Houses show maintenance pages with status 200 for a while, so unreadable responses are given more time. */
const UNREADABLE_IN_ROW = 5;

/**
 * Returns the verdict on one response: `refused` are the items that its adapter refused, `kept` all that were
 * quarantined. A page of one round is refused with its only item; a list of fewer than five items proves nothing.
 */
export function verdictOf({
  items,
  refused,
  kept,
  isPage,
}: {
  items: number;
  refused: number;
  kept: number;
  isPage: boolean;
}): Verdict {
  if (items === 0) return "unknown";
  if (refused < items * REFUSED_PART) return isPage && kept === items ? "held" : "good";
  return isPage ? "unreadable" : items < REFUSED_FROM ? "unknown" : "refused";
}

/** The state after one more response, which arrived at `now`. */
export function nextFormat(state: FormatState, verdict: Verdict, now: string): FormatState {
  if (verdict === "unknown") return state;
  if (verdict === "good") return { badResponses: 0, since: null };
  const badResponses = state.badResponses + 1;
  if (verdict === "held") return { badResponses, since: state.since };
  const enough = verdict === "refused" ? REFUSED_IN_ROW : UNREADABLE_IN_ROW;
  return { badResponses, since: state.since ?? (badResponses >= enough ? now : null) };
}
