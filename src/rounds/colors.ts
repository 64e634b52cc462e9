/** One band of a table's palette, lowest first: multipliers below `below` hundredths; null for the last, which has no bound. */
export interface Color {
  name: string;
  below: number | null;
}

/**
 * The color a multiplier falls in. Bounds belong to the band above them: with `below: 200`, 2.00 is the next color.
 * `hundredths` is floored from what the house sent, so that 1.9999 stays below 2.
 * @throws RangeError where the palette has no last band without a bound.
 *
 * @example
 * colorOf(199, [{ name: "blue", below: 200 }, { name: "pink", below: null }]) // => "blue"
 * colorOf(200, [{ name: "blue", below: 200 }, { name: "pink", below: null }]) // => "pink"
 */
export function colorOf(hundredths: number, palette: readonly Color[]): string {
  const band = palette.find(({ below }) => below === null || hundredths < below);
  if (band === undefined) throw new RangeError(`expected a palette whose last color has no bound, for ${hundredths}`);
  return band.name;
}
