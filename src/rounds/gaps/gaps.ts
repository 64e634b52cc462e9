/** A gap of unknown size by the rounds on both its sides. */
export interface UnknownGap {
  afterRoundId: string;
  beforeRoundId: string;
}

/**
 * Which gaps of unknown size an answer closes: it lists both ends, and nothing between them that cannot be read. `found`
 * counts the rounds between. `sequence` is the answer in playing order, null for what cannot be read.
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
