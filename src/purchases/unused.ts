/**
 * Returns the remaining value of a purchase: its value times the remaining share of its period, rounded down to a
 * micro-unit. The full value before it begins, zero after it has ended. Times are in any common unit.
 *
 * @example
 * unusedMicros(29_000_000n, { startsAt: 0n, endsAt: 30n }, 10n); // => 19_333_333n
 * unusedMicros(29_000_000n, { startsAt: 0n, endsAt: 30n }, -5n); // => 29_000_000n
 * unusedMicros(29_000_000n, { startsAt: 0n, endsAt: 30n }, 30n); // => 0n
 */
export function unusedMicros(
  valueMicros: bigint,
  { startsAt, endsAt }: { startsAt: bigint; endsAt: bigint },
  at: bigint,
): bigint {
  if (at >= endsAt) return 0n;
  const left = endsAt - (at > startsAt ? at : startsAt);
  return (valueMicros * left) / (endsAt - startsAt);
}
