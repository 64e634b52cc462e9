/** More rounds than this are not fetched by ourselves: computing them takes half a minute, asking for them an hour. */
export const LARGEST_GAP = 100_000n;
/** Attempts before a gap is given up; with the waits between them that is an hour and a half. */
export const MOST_ATTEMPTS = 8;

const FIRST_WAIT_MS = 5_000;
const LONGEST_WAIT_MS = 3_600_000;
/** The shortest time between two pages of a house's history. */
const SHORTEST_PAUSE_MS = 200;

/** How long a gap waits after so many failed attempts: 5 s, 15 s, 45 s … an hour. */
export function waitAfterAttempts(attempts: number): number {
  return Math.min(FIRST_WAIT_MS * 3 ** Math.max(0, attempts - 1), LONGEST_WAIT_MS);
}

/** How long a house is left alone between two pages: as long as between two polls, at least 200 ms. */
export function pauseBetweenPages(pollEveryMs: number): number {
  return Math.max(SHORTEST_PAUSE_MS, pollEveryMs);
}

/** Why a gap is too large to be filled here. */
export function tooLargeReason(missing: bigint): string {
  return `${missing} rounds are more than are fetched without being told to (${LARGEST_GAP}); add them with \`roundhouse import\``;
}
