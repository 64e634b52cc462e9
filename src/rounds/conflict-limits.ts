/**
 * Other results of one round that are listed as conflicts. One suffices to void the forecasts on the round; the payloads have
 * all of them while they are stored.
 */
export const RESULTS_LISTED = 20;

/**
 * While a table has this many undecided conflicts, a round gets only one: a feed whose running round rises with each poll
 * would add one per poll.
 */
export const UNDECIDED_LISTED = 1_000;
