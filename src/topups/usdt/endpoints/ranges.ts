/** Blocks from the first to the last, both included. */
export interface BlockRange {
  from: bigint;
  to: bigint;
}

/**
 * Returns the next range, small enough for one response; null if nothing is left. Each block of `alone`, lowest first,
 * has a range of its own.
 *
 * @example
 * nextRange(1n, 1_500n, 1_000n); // => { from: 1n, to: 1_000n }
 * nextRange(1_001n, 1_500n, 1_000n); // => { from: 1_001n, to: 1_500n }
 * nextRange(1_501n, 1_500n, 1_000n); // => null
 * nextRange(1n, 1_500n, 1_000n, [7n]); // => { from: 1n, to: 6n }
 * nextRange(7n, 1_500n, 1_000n, [7n]); // => { from: 7n, to: 7n }
 */
export function nextRange(from: bigint, head: bigint, size: bigint, alone: readonly bigint[] = []): BlockRange | null {
  if (from > head) return null;
  if (alone.includes(from)) return { from, to: from };
  const end = from + size - 1n;
  const before = alone.find((block) => block > from);
  const last = before === undefined || before > head ? head : before - 1n;
  return { from, to: end < last ? end : last };
}

/**
 * Returns the last settled block, after reading up to `read` with the newest block `head`: blocks deeper than `rescan`
 * are not replaced any more, the others are read again at the next poll.
 *
 * @example
 * settledTo({ read: 500n, head: 1_000n, rescan: 128 }); // => 500n
 * settledTo({ read: 1_000n, head: 1_000n, rescan: 128 }); // => 872n
 * settledTo({ read: 90n, head: 100n, rescan: 128 }); // => -1n
 */
export function settledTo({ read, head, rescan }: { read: bigint; head: bigint; rescan: number }): bigint {
  const deep = head - BigInt(rescan);
  const settled = read < deep ? read : deep;
  return settled < 0n ? -1n : settled;
}

/** How far back blocks can be requested again, so that a typing error does not delay new deposits for days. */
export const REREAD_DAYS = 30;
const DAY_MS = 86_400_000;

/**
 * Returns the lowest block that can be requested again, {@link REREAD_DAYS} before the newest that was read.
 *
 * @example
 * lowestReread(20_000_000n, 12_000); // => 19_784_000n
 * lowestReread(1_000n, 12_000); // => 0n
 */
export function lowestReread(read: bigint, blockMs: number): bigint {
  const lowest = read - BigInt(Math.floor((REREAD_DAYS * DAY_MS) / blockMs));
  return lowest < 0n ? 0n : lowest;
}

/**
 * Returns how many blocks confirm a deposit, including its own, seen from the newest block; 0 if that is below it.
 *
 * @example
 * confirmationsOf(100n, 100n); // => 1
 * confirmationsOf(100n, 111n); // => 12
 * confirmationsOf(100n, 99n); // => 0
 */
export function confirmationsOf(block: bigint, head: bigint): number {
  return head < block ? 0 : Number(head - block) + 1;
}

/** Splits a list into parts of at most `size`. */
export function batches<Item>(items: readonly Item[], size: number): Item[][] {
  const parts: Item[][] = [];
  for (let from = 0; from < items.length; from += size) parts.push(items.slice(from, from + size));
  return parts;
}
