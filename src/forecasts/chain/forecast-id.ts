/**
 * The id of a forecast: its table and its place in that table's chain.
 *
 * @example
 * forecastIdOf(12, 345n); // => "f12-345"
 */
export function forecastIdOf(tableId: number, seq: bigint): string {
  return `f${tableId}-${seq}`;
}

/**
 * The table and the place that an id names; null if it is no id of ours.
 *
 * @example
 * parseForecastId("f12-345").seq === 345n; // => true
 * parseForecastId("f12-0345"); // => null
 */
export function parseForecastId(id: string): { tableId: number; seq: bigint } | null {
  const [, tableId, seq] = /^f([1-9][0-9]{0,8})-([1-9][0-9]{0,17})$/.exec(id) ?? [];
  return tableId === undefined || seq === undefined ? null : { tableId: Number(tableId), seq: BigInt(seq) };
}
