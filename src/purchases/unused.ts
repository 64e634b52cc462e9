/**
 * What is left of a purchase at a moment: its value by the share of its time that is still to come, rounded down to a
 * micro-unit. All of it before it begins, nothing once it has ended. Times are in the same unit, such as microseconds.
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
