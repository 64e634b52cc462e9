import type { PageOutcome } from "./backfill.ts";
import type { Gap } from "./gap-attempt-store.ts";

/** A limit for houses that return the same page for every page number. */
const MOST_NUMBERED = 500;

/** Whether a gap continues after a page of history: from an id, not because it is filled, or not for a reason. */
export type Next = { kind: "more"; before: string } | { kind: "filled" } | { kind: "ended"; reason: string };

/**
 * If ids are consecutive: below the lowest number of the page; what the page omits above it will not be listed later.
 */
export function nextByNumber({ oldestRoundId }: PageOutcome, before: string): Next {
  const lowest = oldestRoundId === null ? null : BigInt(oldestRoundId);
  if (lowest === null || lowest >= BigInt(before)) {
    return { kind: "ended", reason: `the house's history ends at ${before}` };
  }
  return { kind: "more", before: String(lowest) };
}

/** If ids have no order: from the oldest round of the page, until it overlaps stored rounds. */
export function nextByPlace({ oldestRoundId, reachesOurs, isHidden }: PageOutcome, before: string): Next {
  if (isHidden) return { kind: "ended", reason: "the house lists an item there that cannot be read" };
  if (reachesOurs) return { kind: "filled" };
  if (oldestRoundId === null || oldestRoundId === before) {
    return { kind: "ended", reason: `the house's history ends at ${before}, before it reaches our rounds` };
  }
  return { kind: "more", before: oldestRoundId };
}

/** If the house counts pages from the newest: until a page reaches past the gap, or is empty. */
export function nextByPage(
  gap: Gap,
  outcome: PageOutcome,
  { beforeId: before, page }: { beforeId: string; page: number },
): Next {
  const { oldestRoundId, reachesOurs, isHidden } = outcome;
  if (page >= MOST_NUMBERED)
    return { kind: "ended", reason: `${MOST_NUMBERED} pages of the house's history do not reach it` };
  if (oldestRoundId === null) return { kind: "ended", reason: "the house's history ends before it reaches our rounds" };
  if (!hasRange(gap)) {
    if (isHidden) return { kind: "ended", reason: "the house lists an item there that cannot be read" };
    return reachesOurs ? { kind: "filled" } : { kind: "more", before };
  }
  const isPast = BigInt(oldestRoundId) <= gap.fromNumber;
  // past the beginning of the gap: the missing rounds were not listed
  return { kind: "more", before: isPast ? String(gap.fromNumber) : before };
}

/** Whether the numbers that a gap may miss are known. */
export function hasRange(gap: Gap): gap is Gap & { fromNumber: bigint; toNumber: bigint } {
  return gap.fromNumber !== null && gap.toNumber !== null;
}
