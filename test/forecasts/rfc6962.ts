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

/** Where a proof leads from a forecast's hash: what anyone can write in a few lines. */
export function rootByProof({ hash, index, size, proof }: Record<"index" | "size", number> & Proof): string {
  const siblings = proof.map((hex) => Buffer.from(hex, "hex"));
  let node = sha256(Buffer.of(0), Buffer.from(hash, "hex"));
  for (let at = index, last = size - 1; last > 0; at >>= 1, last >>= 1) {
    if (at % 2 === 1) node = sha256(Buffer.of(1), siblings.shift()!, node);
    else if (at < last) node = sha256(Buffer.of(1), node, siblings.shift()!);
  }
  return siblings.length === 0 ? node.toString("hex") : "a proof that is too long";
}

type Proof = { hash: string; proof: string[] };
