import { numberOf, type OpenedGap } from "../../rounds/round.ts";
import { listKnown } from "./known-rounds.ts";
import type { GapRow } from "./rows.ts";
import { UNKNOWN_GAPS, type PassState } from "./state.ts";

/**
 * Gaps of one response that are stored one by one, as many as a page of history has rounds. A response with more comes from
 * a feed that skips ids or that we cannot read, and might have thousands.
 */
const GAPS_AT_ONCE = 100;

/** The gaps of unknown length after a response, the newest first: `opened` by it, without those that it has `shown` whole. */
export function unknownGapsAfter(
  { unknownGaps }: PassState,
  opened: readonly GapRow[],
  shown: readonly { beforeRoundId: string }[],
): PassState["unknownGaps"] {
  const added = opened.filter(({ fromNumber }) => fromNumber === null);
  if (added.length + shown.length === 0) return unknownGaps;
  const closed = new Set(shown.map(({ beforeRoundId }) => beforeRoundId));
  const left = unknownGaps.filter(({ beforeRoundId }) => !closed.has(beforeRoundId));
  const newest = added.toReversed().map(({ afterRoundId, beforeRoundId }) => ({ afterRoundId, beforeRoundId }));
  return [...newest, ...left].slice(0, UNKNOWN_GAPS);
}

/**
 * The gaps of a response in playing order, each with the number of its missing rounds: known ones, which an import stored
 * before, are not missing. More than a hundred are joined: one gap from the first to the last that misses what they miss.
 */
export function gapRows(opened: readonly OpenedGap[], { known }: PassState): GapRow[] {
  if (opened.length === 0) return [];
  const numbers = listKnown(known).flatMap(([id]) => numberOf(id) ?? []);
  const rows = opened.map((gap) => gapRow(gap, numbers));
  const [first, last] = [rows[0], rows.at(-1)];
  if (rows.length <= GAPS_AT_ONCE || first === undefined || last === undefined) return rows;
  const { fromNumber, afterRoundId } = first;
  const missing = first.missing === null ? null : rows.reduce((sum, row) => sum + (row.missing ?? 0n), 0n);
  return [{ ...last, fromNumber, afterRoundId, missing }];
}

function gapRow({ range, afterRoundId, beforeRoundId }: OpenedGap, known: readonly bigint[]): GapRow {
  if (range === null) return { fromNumber: null, toNumber: null, missing: null, afterRoundId, beforeRoundId };
  const { from, to } = range;
  const there = known.filter((number) => number >= from && number <= to).length;
  return { fromNumber: from, toNumber: to, missing: to - from + 1n - BigInt(there), afterRoundId, beforeRoundId };
}
