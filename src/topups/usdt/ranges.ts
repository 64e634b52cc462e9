/** Blocks from the first to the last, both among them. */
export interface BlockRange {
  from: bigint;
  to: bigint;
}

/**
 * What to read next, so that one answer stays small; null where nothing is left.
 *
 * @example
 * nextRange(1n, 1_500n, 1_000n); // => { from: 1n, to: 1_000n }
 * nextRange(1_001n, 1_500n, 1_000n); // => { from: 1_001n, to: 1_500n }
 * nextRange(1_501n, 1_500n, 1_000n); // => null
 */
export function nextRange(from: bigint, head: bigint, size: bigint): BlockRange | null {
  if (from > head) return null;
  const end = from + size - 1n;
  return { from, to: end < head ? end : head };
}

/**
 * How far a chain counts as read for good, once it was read up to `read` and its newest block is `head`: what lies deeper
 * than `rescan` blocks is not replaced any more, and what does not is read again at the next look.
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

/**
 * How many blocks confirm a deposit, its own among them, seen from the newest block; 0 where that is below it.
 *
 * @example
 * confirmationsOf(100n, 100n); // => 1
 * confirmationsOf(100n, 111n); // => 12
 * confirmationsOf(100n, 99n); // => 0
 */
export function confirmationsOf(block: bigint, head: bigint): number {
  return head < block ? 0 : Number(head - block) + 1;
}

/** Parts of a list, none longer than `size`. */
export function batches<Item>(items: readonly Item[], size: number): Item[][] {
  const parts: Item[][] = [];
  for (let from = 0; from < items.length; from += size) parts.push(items.slice(from, from + size));
  return parts;
}
