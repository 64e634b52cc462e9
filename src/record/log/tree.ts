/**
 * The Merkle tree of RFC 6962 §2.1 over a log's entries, stored as tiles of up to 256 hashes (C2SP tlog-tiles).
 *
 * A leaf is SHA-256 of 0x00 and the entry, a node of 0x01 and both children. Tile `n` of level 0 holds leaves 256·n to
 * 256·n + 255; one of level L the roots of full tiles of level L − 1. Hashes are 32 bytes, sizes and indexes count entries.
 */
import { createHash } from "node:crypto";

/** Hashes of a tile when it is full. */
export const TILE_WIDTH = 256;
const TILE_HEIGHT = 8;
const HASH_BYTES = 32;

/** A tile with its hashes, one after the other; fewer than 256 while it grows. */
export interface Tile {
  level: number;
  n: number;
  hashes: Buffer;
}

/**
 * Reads the hashes of a tile.
 *
 * @throws Error if there is none
 */
export type ReadTile = (level: number, n: number) => Promise<Buffer>;

/** The leaf hash of an entry. */
export function leafHash(entry: Uint8Array): Buffer {
  return sha256(Buffer.of(0), entry);
}

function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return sha256(Buffer.of(1), left, right);
}

function sha256(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/**
 * Appends leaves to a tree.
 *
 * @param edge the last tile of each level that has any, as stored
 * @returns the tiles that are new or longer, by level and place
 */
export function growTiles(edge: readonly Tile[], leaves: readonly Buffer[]): Tile[] {
  const changed: Tile[] = [];
  let level = 0;
  for (let hashes = leaves; hashes.length > 0; level++) {
    const full: Buffer[] = [];
    const last = edge.find((tile) => tile.level === level);
    const isLastFull = last !== undefined && last.hashes.length === TILE_WIDTH * HASH_BYTES;
    let n = last === undefined ? 0 : last.n + Number(isLastFull);
    let own = last === undefined || isLastFull ? Buffer.alloc(0) : last.hashes;
    for (let at = 0; at < hashes.length; n++) {
      const room = TILE_WIDTH - own.length / HASH_BYTES;
      own = Buffer.concat([own, ...hashes.slice(at, at + room)]);
      at += room;
      changed.push({ level, n, hashes: own });
      if (own.length === TILE_WIDTH * HASH_BYTES) full.push(perfectRoot(own));
      own = Buffer.alloc(0);
    }
    hashes = full;
  }
  return changed;
}

/** The root over hashes of equal subtrees, whose number is a power of two. */
function perfectRoot(hashes: Buffer): Buffer {
  let row = hashes;
  while (row.length > HASH_BYTES) {
    const above: Buffer[] = [];
    for (let at = 0; at < row.length; at += 2 * HASH_BYTES) above.push(sha256(Buffer.of(1), row.subarray(at, at + 64)));
    row = Buffer.concat(above);
  }
  return row;
}

/** The root of the first `size` entries; that of the empty tree is the SHA-256 of nothing. */
export async function rootOf(readTile: ReadTile, size: number): Promise<Buffer> {
  return size === 0 ? sha256() : rangeRoot(readTile, 0, size);
}

/** The hash over entries `start` to `end − 1`, a subtree of RFC 6962. */
async function rangeRoot(readTile: ReadTile, start: number, end: number): Promise<Buffer> {
  const count = end - start;
  const left = largestPowerBelow(count);
  if (count === 1 || left * 2 === count) return subtreeRoot(readTile, start, count);
  return nodeHash(await rangeRoot(readTile, start, start + left), await rangeRoot(readTile, start + left, end));
}

/** The hash over `count` entries, a power of two that divides `start`. */
async function subtreeRoot(readTile: ReadTile, start: number, count: number): Promise<Buffer> {
  const level = Math.floor(Math.log2(count) / TILE_HEIGHT);
  const entriesPerHash = TILE_WIDTH ** level;
  const [first, width] = [start / entriesPerHash, count / entriesPerHash];
  const hashes = await readTile(level, Math.floor(first / TILE_WIDTH));
  const from = (first % TILE_WIDTH) * HASH_BYTES;
  const part = hashes.subarray(from, from + width * HASH_BYTES);
  if (part.length < width * HASH_BYTES)
    throw new Error(`expected hashes up to entry ${start + count} in tile ${level}/${Math.floor(first / TILE_WIDTH)}`);
  return perfectRoot(part);
}

/** The largest power of two below a count of two or more; 1 for 1. */
function largestPowerBelow(count: number): number {
  let power = 1;
  while (power * 2 < count) power *= 2;
  return power;
}

/** Sibling hashes from the leaf up that prove an entry in the tree of `size` entries (RFC 6962 §2.1.1). */
export async function proveInclusion(readTile: ReadTile, index: number, size: number): Promise<Buffer[]> {
  if (index < 0 || index >= size) throw new RangeError(`expected an index below ${size}, found ${index}`);
  const path = async (start: number, end: number): Promise<Buffer[]> => {
    if (end - start === 1) return [];
    const middle = start + largestPowerBelow(end - start);
    return index < middle
      ? [...(await path(start, middle)), await rangeRoot(readTile, middle, end)]
      : [...(await path(middle, end)), await rangeRoot(readTile, start, middle)];
  };
  return path(0, size);
}

/** Hashes that prove the tree of `oldSize` entries to be the beginning of that of `size` (RFC 6962 §2.1.2). */
export async function proveConsistency(readTile: ReadTile, oldSize: number, size: number): Promise<Buffer[]> {
  if (oldSize < 0 || oldSize > size) throw new RangeError(`expected a size up to ${size}, found ${oldSize}`);
  if (oldSize === 0 || oldSize === size) return [];
  const path = async (start: number, end: number, isWhole: boolean): Promise<Buffer[]> => {
    if (oldSize === end) return isWhole ? [] : [await rangeRoot(readTile, start, end)];
    const middle = start + largestPowerBelow(end - start);
    return oldSize <= middle
      ? [...(await path(start, middle, isWhole)), await rangeRoot(readTile, middle, end)]
      : [...(await path(middle, end, false)), await rangeRoot(readTile, start, middle)];
  };
  return path(0, size, true);
}

/** Whether a proof leads from an entry's leaf hash at `index` to the root of a tree of `size` entries. */
export function verifyInclusion(
  { leaf, index, size, proof }: { leaf: Buffer; index: number; size: number; proof: readonly Buffer[] },
  root: Buffer,
): boolean {
  if (!Number.isSafeInteger(size) || !Number.isInteger(index) || index < 0 || index >= size) return false;
  let hash = leaf;
  let used = 0;
  for (let at = index, count = size; count > 1; at = Math.floor(at / 2), count = Math.ceil(count / 2)) {
    const isLeft = at % 2 === 0;
    if (isLeft && at === count - 1) continue; // the last of an odd number has no sibling
    const sibling = proof[used++];
    if (sibling === undefined) return false;
    hash = isLeft ? nodeHash(hash, sibling) : nodeHash(sibling, hash);
  }
  return used === proof.length && hash.equals(root);
}

/** Whether a proof shows that a tree with `oldRoot` is the beginning of one with `root` (RFC 9162 §2.1.4.2). */
export function verifyConsistency(
  { oldSize, size, proof }: { oldSize: number; size: number; proof: readonly Buffer[] },
  oldRoot: Buffer,
  root: Buffer,
): boolean {
  if (![oldSize, size].every((count) => Number.isSafeInteger(count) && count >= 0) || oldSize > size) return false;
  if (oldSize === 0) return proof.length === 0;
  if (oldSize === size) return proof.length === 0 && oldRoot.equals(root);
  let [node, last] = [oldSize - 1, size - 1];
  while (node % 2 === 1) [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
  const hashes = node === 0 ? [oldRoot, ...proof] : [...proof];
  const first = hashes.shift();
  if (first === undefined) return false;
  let [old, grown] = [first, first];
  for (const hash of hashes) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      old = nodeHash(hash, old);
      grown = nodeHash(hash, grown);
      while (node % 2 === 0 && node !== 0) [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
    } else grown = nodeHash(grown, hash);
    [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
  }
  return last === 0 && old.equals(oldRoot) && grown.equals(root);
}
