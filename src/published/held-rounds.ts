/** One round: its order in its table, and its JSON. */
export interface RoundText {
  /** Its number if ids are consecutive, else its time in microseconds since 1970. */
  order: bigint;
  seq: number;
  json: string;
}

/**
 * Immutable rounds of one table, newest first, in one byte array outside of the heap. 200 rounds of 150 characters take
 * 34 KB and cost the garbage collector nothing; as strings and objects they take 59 KB, and every collection visits two
 * million of them.
 */
export interface HeldRounds {
  readonly length: number;
  readonly orders: BigInt64Array;
  readonly seqs: Float64Array;
  /** The end of each text, including its comma. */
  readonly ends: Uint32Array;
  readonly bytes: Buffer;
}

/** No rounds. */
export const NO_ROUNDS: HeldRounds = room(0, 0);

/** Makes held rounds from rounds in any order. */
export function holdRounds(rounds: readonly RoundText[]): HeldRounds {
  const sorted = rounds.toSorted((a, b) => (a.order === b.order ? b.seq - a.seq : a.order < b.order ? 1 : -1));
  const text = sorted.map(({ json }) => `${json},`).join("");
  const held = room(sorted.length, Buffer.byteLength(text));
  held.bytes.write(text);
  let end = 0;
  for (const [at, { order, seq, json }] of sorted.entries()) {
    held.orders[at] = order;
    held.seqs[at] = seq;
    held.ends[at] = end += Buffer.byteLength(json) + 1;
  }
  return held;
}

/** Merges two sets of rounds, and keeps the newest `most`. */
export function mergeRounds(one: HeldRounds, other: HeldRounds, most: number): HeldRounds {
  if (one.length === 0 && other.length <= most) return other;
  const chosen: { from: HeldRounds; at: number }[] = [];
  for (let a = 0, b = 0; chosen.length < most && (a < one.length || b < other.length);) {
    chosen.push(isNewer(one, a, other, b) ? { from: one, at: a++ } : { from: other, at: b++ });
  }
  const merged = room(
    chosen.length,
    chosen.reduce((sum, { from, at }) => sum + endOf(from, at) - endOf(from, at - 1), 0),
  );
  let end = 0;
  for (const [place, { from, at }] of chosen.entries()) {
    const [begin, until] = [endOf(from, at - 1), endOf(from, at)];
    from.bytes.copy(merged.bytes, end, begin, until);
    merged.orders[place] = from.orders[at] ?? 0n;
    merged.seqs[place] = from.seqs[at] ?? 0;
    merged.ends[place] = end += until - begin;
  }
  return merged;
}

/** Returns the JSON texts of the newest `most` rounds, separated by commas. */
export function newestRounds({ bytes, ends, length }: HeldRounds, most: number): string {
  const end = ends[Math.min(most, length) - 1];
  return end === undefined ? "" : bytes.toString("utf8", 0, end - 1);
}

/** Yields the JSON texts of the rounds one by one, newest first, after the `skipped` newest. */
export function* roundsAfter(held: HeldRounds, skipped: number): Generator<string> {
  for (let at = skipped; at < held.length; at += 1) {
    yield held.bytes.toString("utf8", endOf(held, at - 1), endOf(held, at) - 1);
  }
}

/** An index beyond the end is older than any round. */
function isNewer(one: HeldRounds, a: number, other: HeldRounds, b: number): boolean {
  const [order, otherOrder] = [one.orders[a], other.orders[b]];
  if (order === undefined) return false;
  if (otherOrder === undefined) return true;
  return order === otherOrder ? (one.seqs[a] ?? 0) > (other.seqs[b] ?? 0) : order > otherOrder;
}

function endOf({ ends }: HeldRounds, at: number): number {
  return ends[at] ?? 0;
}

function room(length: number, bytes: number): HeldRounds {
  const all = new ArrayBuffer(length * 20 + bytes);
  return {
    length,
    orders: new BigInt64Array(all, 0, length),
    seqs: new Float64Array(all, length * 8, length),
    ends: new Uint32Array(all, length * 16, length),
    bytes: Buffer.from(all, length * 20, bytes),
  };
}
