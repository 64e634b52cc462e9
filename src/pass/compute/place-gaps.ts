import { numberOf, type OpenedGap } from "../../rounds/round.ts";
import { listKnown } from "./known-rounds.ts";
import type { GapRow } from "./rows.ts";
import { UNKNOWN_GAPS, type PassState } from "./state.ts";

/** The gaps of unknown length after a response, the newest first: `opened` by it, without those that it has `shown` whole. */
export function unknownGapsAfter(
  { unknownGaps }: PassState,
  opened: readonly OpenedGap[],
  shown: readonly { beforeRoundId: string }[],
): PassState["unknownGaps"] {
  const added = opened.filter(({ range }) => range === null);
  if (added.length + shown.length === 0) return unknownGaps;
  const closed = new Set(shown.map(({ beforeRoundId }) => beforeRoundId));
  const left = unknownGaps.filter(({ beforeRoundId }) => !closed.has(beforeRoundId));
  const newest = added.toReversed().map(({ afterRoundId, beforeRoundId }) => ({ afterRoundId, beforeRoundId }));
  return [...newest, ...left].slice(0, UNKNOWN_GAPS);
}

/** A gap with the number of its missing rounds: known ones, which an import stored before, are not missing. */
export function gapRow({ range, afterRoundId, beforeRoundId }: OpenedGap, { known }: PassState): GapRow {
  if (range === null) return { fromNumber: null, toNumber: null, missing: null, afterRoundId, beforeRoundId };
  const { from, to } = range;
  let there = 0n;
  for (const [id] of listKnown(known)) {
    const number = numberOf(id);
    if (number !== null && number >= from && number <= to) there += 1n;
  }
  return { fromNumber: from, toNumber: to, missing: to - from + 1n - there, afterRoundId, beforeRoundId };
}
