/** What each code of a quarantined item means, as a sentence. */
const MEANINGS: Readonly<Record<string, string>> = {
  missing_id: "The item has no round id.",
  bad_id: "The round id cannot be used.",
  missing_multiplier: "The item has no multiplier.",
  not_a_number: "The multiplier is not a number.",
  impossible_multiplier: "The multiplier is outside the range that a house can pay.",
  absurd_time: "The time of the round is outside the range that is possible.",
  bad_hash: "The fairness hash is not a hash.",
  proof_mismatch: "The multiplier does not follow from the published proof.",
  far_ahead: "The round id is far ahead of the newest stored round.",
  stuck_feed: "The feed repeats one result, which no proof confirms.",
  not_an_item: "The item is not a round.",
};

/** Why an item is quarantined: what the code means and, if the reason states them, what was expected and found. */
export interface ItemReason {
  meaning: string;
  expected: string | null;
  found: string | null;
  advice: string | null;
}

/**
 * Splits a stored reason into its parts.
 *
 * @example
 * itemReason("impossible_multiplier", "expected 1.00 or more, found 0.42; list it under feed.instant");
 * // => { meaning: "The multiplier is outside …", expected: "1.00 or more", found: "0.42", advice: "list it under …" }
 */
export function itemReason(code: string, reason: string): ItemReason {
  const meaning = MEANINGS[code] ?? reason;
  const [, expected = null, found = null, advice = null] =
    /^expected (.+?), (?:came|found|got) (.+?)(?:; ((?:if|where|set|ask|check|list) .+))?$/s.exec(reason) ?? [];
  return expected === null && code in MEANINGS
    ? { meaning, expected, found, advice: reason }
    : { meaning, expected, found, advice };
}
