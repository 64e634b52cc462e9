/** A gap of unknown size, given by the rounds on both sides. */
export interface UnknownGap {
  afterRoundId: string;
  beforeRoundId: string;
}

/**
 * Returns the gaps of unknown size that a response closes: it lists both ends, and every item between them can be read.
 * `found` is the number of rounds between. `sequence` is the ids of the response in playing order, null for an item
 * that cannot be read.
 */
export function gapsShownWhole<Gap extends UnknownGap>(
  sequence: readonly (string | null)[],
  gaps: readonly Gap[],
): (Gap & { found: number })[] {
  if (gaps.length === 0) return [];
  const places = new Map(sequence.map((id, place) => [id, place]));
  return gaps.flatMap((gap) => {
    const after = places.get(gap.afterRoundId);
    const before = places.get(gap.beforeRoundId);
    if (after === undefined || before === undefined || after > before) return [];
    return sequence.slice(after, before).includes(null) ? [] : [{ ...gap, found: before - after - 1 }];
  });
}
