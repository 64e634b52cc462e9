/**
 * How an answer could be read: `refused` where its items could not, `unreadable` where nothing of it could, `held` where
 * the page of a round could and the round is quarantined all the same.
 */
export type Verdict = "good" | "refused" | "unreadable" | "held" | "untold";

/** What is known of the form of a feed's answers. */
export interface FormatState {
  /** Answers in a row that are `refused`, `unreadable` or `held`: none of them brought a round. */
  badAnswers: number;
  /** ISO 8601: since when the house is taken to have changed its format; null if it is not. */
  since: string | null;
}

/** An answer whose items are refused to at least this part, of at least this many, is in another format. */
const REFUSED_PART = 0.8;
const REFUSED_FROM = 5;
/** One page full of broken items can be an accident of the house, two in a row are its new format. */
const REFUSED_IN_ROW = 2;
/** Houses show maintenance pages with status 200 for a while, so whole answers are given more time. */
const UNREADABLE_IN_ROW = 5;

/**
 * What one answer says about the house's format, by the items that its adapter refused; `kept` are all that are kept
 * apart. A page of one round is refused with its only item; a list of fewer than five items says too little, an empty
 * one nothing.
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
  if (items === 0) return "untold";
  if (refused < items * REFUSED_PART) return isPage && kept === items ? "held" : "good";
  return isPage ? "unreadable" : items < REFUSED_FROM ? "untold" : "refused";
}

/** The state after one more answer that arrived at `now`. */
export function nextFormat(state: FormatState, verdict: Verdict, now: string): FormatState {
  if (verdict === "untold") return state;
  if (verdict === "good") return { badAnswers: 0, since: null };
  const badAnswers = state.badAnswers + 1;
  if (verdict === "held") return { badAnswers, since: state.since };
  const enough = verdict === "refused" ? REFUSED_IN_ROW : UNREADABLE_IN_ROW;
  return { badAnswers, since: state.since ?? (badAnswers >= enough ? now : null) };
}
