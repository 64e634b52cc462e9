import { createHash } from "node:crypto";

const sha256 = (...parts: Uint8Array[]) => createHash("sha256").update(Buffer.concat(parts)).digest();

const splitAt = (size: number) => 2 ** Math.ceil(Math.log2(size) - 1);

/** MTH, word for word as RFC 6962 §2.1 defines it, by recursion. */
export function mth(leaves: readonly Uint8Array[]): Buffer {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return sha256(Buffer.of(0), leaves[0]!);
  const k = splitAt(leaves.length);
  return sha256(Buffer.of(1), mth(leaves.slice(0, k)), mth(leaves.slice(k)));
}

/** PATH, word for word as RFC 6962 §2.1.1 defines it. */
export function path(m: number, leaves: readonly Uint8Array[]): Buffer[] {
  if (leaves.length === 1) return [];
  const k = splitAt(leaves.length);
  return m < k
    ? [...path(m, leaves.slice(0, k)), mth(leaves.slice(k))]
    : [...path(m - k, leaves.slice(k)), mth(leaves.slice(0, k))];
}

/** PROOF, word for word as RFC 6962 §2.1.2 defines it. */
export function consistency(m: number, leaves: readonly Uint8Array[]): Buffer[] {
  return m === 0 ? [] : subproof(m, leaves, true);
}

function subproof(m: number, leaves: readonly Uint8Array[], isWhole: boolean): Buffer[] {
  if (m === leaves.length) return isWhole ? [] : [mth(leaves)];
  const k = splitAt(leaves.length);
  return m <= k
    ? [...subproof(m, leaves.slice(0, k), isWhole), mth(leaves.slice(k))]
    : [...subproof(m - k, leaves.slice(k), false), mth(leaves.slice(0, k))];
}
