/**
 * One band of a table's palette, lowest first. It contains the multipliers below `below` hundredths; null for the last
 * band, which has no upper bound.
 */
export interface Color {
  name: string;
  below: number | null;
}

/**
 * Returns the color of a multiplier. A bound belongs to the band above it: with `below: 200`, 2.00 has the next color.
 * `hundredths` is rounded down from the house's value, so that 1.9999 stays below 2.
 *
 * @throws RangeError if the palette has no last band without a bound
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
