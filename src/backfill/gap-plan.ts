/** Larger gaps are not filled automatically: computing them takes half a minute, requesting them an hour. */
export const LARGEST_GAP = 100_000n;
/** Attempts before a gap is given up; with the waits between them an hour and a half. */
export const MOST_ATTEMPTS = 8;

const FIRST_WAIT_MS = 5_000;
const LONGEST_WAIT_MS = 3_600_000;
/** The shortest time between two pages of a house's history. */
const SHORTEST_PAUSE_MS = 200;

/** The wait after this many failed attempts: 5 s, 15 s, 45 s … an hour. */
export function waitAfterAttempts(attempts: number): number {
  return Math.min(FIRST_WAIT_MS * 3 ** Math.max(0, attempts - 1), LONGEST_WAIT_MS);
}

/** The pause between two requests for pages: that between two polls, at least 200 ms. */
export function pauseBetweenPages(pollEveryMs: number): number {
  return Math.max(SHORTEST_PAUSE_MS, pollEveryMs);
}

/** Why a gap is too large to be filled automatically. */
export function tooLargeReason(missing: bigint): string {
  return `${missing} rounds are more than are fetched automatically (${LARGEST_GAP}); add them with \`roundhouse import\``;
}
