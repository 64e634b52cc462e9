import { createHash, createPublicKey, verify } from "node:crypto";
import { ConnectionError, InconsistentLogError } from "./errors.ts";

/** A state of the public log: how many entries it has, and the root of the Merkle tree over them, in Base64. */
export interface Checkpoint {
  size: number;
  root: string;
  /** When it was seen for the first time. A checkpoint without it counts as seen when the client gets it. */
  seenAtMs?: number;
  /** The name of the log, if the checkpoint was read from `/log/checkpoint`. */
  origin?: string;
}

/** A tile of the log's tree: its level from 0, and its number in that level. */
export interface Tile {
  level: number;
  n: number;
}

/** Reads a tile of the newer log. */
export type ReadLog = (tile: Tile) => Promise<Buffer>;

const HASH_BYTES = 32;
const KEY_BYTES = 32;
const TILE_HEIGHT = 8;
const TILE_WIDTH = 2 ** TILE_HEIGHT;
/** DER of an Ed25519 public key, before its 32 bytes. */
const ED25519_PREFIX = Buffer.from("302a300506032b6570032100", "hex");

/** The checkpoint in the header `X-Log-Checkpoint`; null without one. */
export function checkpointIn(header: string | null): Checkpoint | null {
  const [, size, root = ""] = /^(\d{1,15}) ([\w+/]{43}=)$/.exec(header ?? "") ?? [];
  return size === undefined ? null : { size: Number(size), root };
}

/**
 * The checkpoint in a signed note (C2SP tlog-checkpoint).
 * @param logKey the log's verifier key; without it the signature is not checked
 * @throws ConnectionError if it is none, such as a proxy's page; InconsistentLogError if the key did not sign it;
 * TypeError if the key is none
 */
export function openNote(note: string, logKey?: string): Checkpoint {
  const [text = "", signatures = ""] = note.split("\n\n");
  const [origin = "", size = "", root = ""] = text.split("\n");
  const checkpoint = checkpointIn(`${size} ${root}`);
  if (checkpoint === null)
    throw new ConnectionError("expected a signed checkpoint at /log/checkpoint, got something else");
  if (logKey !== undefined && !isSigned(`${text}\n`, signatures, logKey))
    throw new InconsistentLogError(`expected a checkpoint that ${logKey} signed; its signature is missing or wrong`);
  return { ...checkpoint, origin };
}

function isSigned(text: string, signatures: string, logKey: string): boolean {
  const [name = "", id = "", ...key] = logKey.trim().split("+"); // Base64 may contain a plus
  const bytes = Buffer.from(key.join("+"), "base64").subarray(1);
  if (bytes.length !== KEY_BYTES)
    throw new TypeError(`expected the text of /log/key as logKey, got ${JSON.stringify(logKey.slice(0, 100))}`);
  const der = Buffer.concat([ED25519_PREFIX, bytes]);
  const publicKey = createPublicKey({ key: der, format: "der", type: "spki" });
  return signatures.split("\n").some((line) => {
    const [, signer, data = ""] = line.split(" ");
    const signature = Buffer.from(data, "base64");
    const isOfKey = signer === name && signature.subarray(0, 4).toString("hex") === id;
    return isOfKey && verify(null, Buffer.from(text), publicKey, signature.subarray(4));
  });
}

/**
 * Checks that the log at `newer` begins with everything that it had at `older`. The hashes come from
 * the log's tiles (C2SP tlog-tiles) and are not trusted: they must lead to both roots (RFC 9162, section 2.1.4.2).
 * @throws InconsistentLogError if the log was changed
 */
export async function checkExtends(older: Checkpoint, newer: Checkpoint, read: ReadLog): Promise<void> {
  const refuse = (reason: string) =>
    new InconsistentLogError(
      `${reason}: checkpoint ${older.size} ${older.root} was shown before, ${newer.size} ${newer.root} is shown now`,
    );
  if (older.size === 0) return;
  if (older.size > newer.size) throw refuse("the public log is shorter");
  if (older.size === newer.size) {
    if (older.root !== newer.root) throw refuse("the public log has two roots for one size");
    return;
  }
  const proof = await proofOf(older.size, newer.size, tileReader(newer.size, read));
  if (!leadsToBoth(proof, older, newer)) throw refuse("the public log was changed");
}

type ReadHashes = (level: number, first: number, count: number) => Promise<Buffer[]>;

/** Reads hashes of one tile of a log with `size` entries. */
function tileReader(size: number, read: ReadLog): ReadHashes {
  return async (level, first, count) => {
    const n = Math.floor(first / TILE_WIDTH);
    const width = widthOf({ level, n }, size);
    const bytes = await read({ level, n });
    if (bytes.length !== width * HASH_BYTES)
      throw new ConnectionError(`expected ${width} hashes in tile ${level}/${n} of the public log, got something else`);
    const start = (first % TILE_WIDTH) * HASH_BYTES;
    const part = bytes.subarray(start, start + count * HASH_BYTES);
    return Array.from({ length: count }, (_, at) => part.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES));
  };
}

/** How many hashes of a tile a log of this size has; 0 or less if it has none. */
function widthOf({ level, n }: Tile, size: number): number {
  return Math.min(TILE_WIDTH, Math.floor(size / TILE_WIDTH ** level) - n * TILE_WIDTH);
}

/**
 * The path below `/log/` of a tile in a log of this size: it ends in `x001/234` for tile 1,234, with `.p/5` if only 5 of
 * its hashes exist. Null if none do.
 */
export function tilePath(tile: Tile, size: number): string | null {
  const width = widthOf(tile, size);
  if (width <= 0) return null;
  const digits = String(tile.n);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, "0").match(/\d{3}/g) ?? [];
  const path = groups.map((group, at) => (at === groups.length - 1 ? group : `x${group}`)).join("/");
  return `tile/${tile.level}/${path}${width === TILE_WIDTH ? "" : `.p/${width}`}`;
}

/** The hashes of a consistency proof (RFC 9162, section 2.1.4.1). */
async function proofOf(oldSize: number, size: number, read: ReadHashes): Promise<Buffer[]> {
  const path = async (start: number, end: number, isWhole: boolean): Promise<Buffer[]> => {
    if (oldSize === end) return isWhole ? [] : [await rangeHash(start, end, read)];
    const middle = start + largestPowerBelow(end - start);
    return oldSize <= middle
      ? [...(await path(start, middle, isWhole)), await rangeHash(middle, end, read)]
      : [...(await path(middle, end, false)), await rangeHash(start, middle, read)];
  };
  return path(0, size, true);
}

async function rangeHash(start: number, end: number, read: ReadHashes): Promise<Buffer> {
  const count = end - start;
  const left = largestPowerBelow(count);
  if (count > 1 && left * 2 !== count)
    return nodeHash(await rangeHash(start, start + left, read), await rangeHash(start + left, end, read));
  const level = Math.floor(Math.log2(count) / TILE_HEIGHT);
  const entries = TILE_WIDTH ** level;
  let row = await read(level, start / entries, count / entries);
  while (row.length > 1)
    row = Array.from({ length: row.length / 2 }, (_, at) => nodeHash(row[2 * at], row[2 * at + 1]));
  return row[0] ?? Buffer.alloc(0);
}

/** The largest power of two below a count of two or more; 1 for 1. */
function largestPowerBelow(count: number): number {
  let power = 1;
  while (power * 2 < count) power *= 2;
  return power;
}

function leadsToBoth(proof: readonly Buffer[], older: Checkpoint, newer: Checkpoint): boolean {
  const [oldRoot, root] = [Buffer.from(older.root, "base64"), Buffer.from(newer.root, "base64")];
  let [node, last] = [older.size - 1, newer.size - 1];
  while (node % 2 === 1) [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
  const [first = Buffer.alloc(0), ...rest] = node === 0 ? [oldRoot, ...proof] : proof;
  let [old, grown] = [first, first];
  for (const hash of rest) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      [old, grown] = [nodeHash(hash, old), nodeHash(hash, grown)];
      while (node % 2 === 0 && node !== 0) [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
    } else grown = nodeHash(grown, hash);
    [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
  }
  return last === 0 && old.equals(oldRoot) && grown.equals(root);
}

function nodeHash(left: Buffer = Buffer.alloc(0), right: Buffer = Buffer.alloc(0)): Buffer {
  return createHash("sha256").update(Buffer.of(1)).update(left).update(right).digest();
}
