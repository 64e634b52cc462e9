/**
 * A tree of hashes: one root over any number of leaves, from which any single leaf can be proved with a few others.
 *
 * The tree is that of Certificate Transparency (RFC 6962 §2.1, unchanged in RFC 9162): SHA-256 of 0x00 and the data for
 * a leaf, of 0x01 and both children for a node, so that no node can pass for a leaf. Hashes are lower case hex outside,
 * bytes inside.
 */
import { createHash } from "node:crypto";

/** A tree that grows leaf by leaf and remembers one hash a level: two million leaves need no more than two. */
export interface GrowingTree {
  /** Adds the next leaf. @throws Error where a second one is to be proved */
  add(data: Uint8Array, options?: { prove?: boolean }): void;
  /** Closes the tree: its root, and the proof of the leaf that was to be proved. Once only. */
  finish(): GrownTree;
}

/** A tree that is whole. */
export interface GrownTree {
  root: string;
  /** Leaves of the whole tree. */
  size: number;
  /** Null where no leaf was to be proved. */
  proved: { index: number; proof: string[] } | null;
}

/** All that a verifier needs beside a root he trusts. */
export interface Inclusion {
  /** The leaf's data. */
  leaf: Uint8Array;
  /** Its place, from 0. */
  index: number;
  /** Leaves of the whole tree. */
  size: number;
  /** Sibling hashes from the leaf up. */
  proof: readonly string[];
}

/** A subtree whose leaves are `first` to `first + count - 1`. */
interface Subtree {
  hash: Buffer;
  first: number;
  count: number;
}

const HASH = /^[0-9a-f]{64}$/;

/**
 * An empty tree.
 *
 * RFC 6962 cuts at the largest power of two below the size. Growing, that is a row of full subtrees, each smaller than
 * the one before: two of the same size become one, and at the end they are joined from the right.
 *
 * @example
 * growTree().finish().root; // => "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
 */
export function growTree(): GrowingTree {
  const full: Subtree[] = [];
  const proof: string[] = [];
  let size = 0;
  let index: number | null = null;

  /** Joins neighbors; the one without the leaf to be proved is the sibling on its way up. */
  function join(left: Subtree, right: Subtree): Subtree {
    const isIn = ({ first, count }: Subtree) => index !== null && index >= first && index < first + count;
    if (isIn(left)) proof.push(right.hash.toString("hex"));
    if (isIn(right)) proof.push(left.hash.toString("hex"));
    return { hash: nodeHash(left.hash, right.hash), first: left.first, count: left.count + right.count };
  }

  return {
    add(data, { prove = false } = {}) {
      if (prove && index !== null) throw new Error(`expected one leaf to prove, got ${index} and ${size}`);
      if (prove) index = size;
      let grown: Subtree = { hash: leafHash(data), first: size, count: 1 };
      while (full.at(-1)?.count === grown.count) grown = join(full.pop()!, grown);
      full.push(grown);
      size += 1;
    },
    finish() {
      const whole = full.reduceRight<Subtree | null>((right, left) => (right ? join(left, right) : left), null);
      return {
        root: (whole?.hash ?? sha256()).toString("hex"),
        size,
        proved: index === null ? null : { index, proof },
      };
    },
  };
}

/**
 * Whether the proof leads from the leaf at that index to the root: all a stranger has to write himself.
 *
 * @example
 * verifyInclusion({ leaf: new Uint8Array(), index: 0, size: 1, proof: [] }, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"); // => true
 */
export function verifyInclusion({ leaf, index, size, proof }: Inclusion, root: string): boolean {
  if (!Number.isSafeInteger(size) || !Number.isInteger(index) || index < 0 || index >= size) return false;
  if (!proof.every((hash) => HASH.test(hash))) return false;
  let hash = leafHash(leaf);
  let used = 0;
  for (let at = index, count = size; count > 1; at = Math.floor(at / 2), count = Math.ceil(count / 2)) {
    const isLeft = at % 2 === 0;
    // the last of an odd number has no sibling and rises as it is
    if (isLeft && at === count - 1) continue;
    const sibling = Buffer.from(proof[used++] ?? "", "hex");
    hash = isLeft ? nodeHash(hash, sibling) : nodeHash(sibling, hash);
  }
  return used === proof.length && hash.toString("hex") === root;
}

function leafHash(data: Uint8Array): Buffer {
  return sha256(Buffer.of(0), data);
}

function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return sha256(Buffer.of(1), left, right);
}

function sha256(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}
