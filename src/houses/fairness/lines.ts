import { nextTick, STEPS_PER_SLICE, type ChainStep, type walkUntil } from "./walk.ts";

/** The fixed cost of a walk, in steps. */
const STEPS_TO_BEGIN = 4;

/** The position of a hash in its chain, as far as known: `number` counts from the chain's end. */
export interface Place {
  number: bigint | null;
  of: string | null;
}

/** A hash that is walked back from, until it meets another one. */
interface Node {
  /** Not null: it is proven. */
  place: Place | null;
  /** The current position of its walk. */
  tip: { hash: string; steps: number };
  /** The hash that it met, and how many rounds earlier that is. */
  next: { hash: string; steps: number } | null;
  /** It leads to a hash that is known to lead nowhere. */
  dead: boolean;
}

/**
 * Links hashes of one chain step, in unknown order, by walking back from each until it meets another. A hash that leads to
 * a proven one is proven, since no one can compute a preimage; so is a hash that a proven one leads to.
 */
export interface Lines {
  /** Walks back from each of these hashes that has met none yet, up to this many steps in total. */
  advance(hashes: Iterable<string>, most: number, signal: AbortSignal | undefined): Promise<void>;
  /** The position of a proven hash; null for any other one. */
  placeOf(hash: string): Place | null;
  /** Whether it leads to a hash that is known to lead nowhere. */
  isDead(hash: string): boolean;
  /** Steps walked from a hash that has met none. */
  stepsOf(hash: string): number;
  /** The last hash on the way back from this one. */
  rootOf(hash: string): string;
}

type Nodes = Map<string, Node>;
/** The hashes whose walks met a hash, and after how many steps. */
type MetBy = Map<string, { hash: string; steps: number }[]>;

/** Starts with proven hashes, such as a chain's end, hashes that are to be linked, and dead ones. */
export function createLines(
  step: ChainStep,
  proven: Iterable<readonly [hash: string, place: Place]>,
  claimed: Iterable<string>,
  dead: ReadonlySet<string>,
  walk: typeof walkUntil,
): Lines {
  const nodes: Nodes = new Map();
  const metBy: MetBy = new Map();
  const add = (hash: string, place: Place | null) =>
    nodes.set(hash, { place, tip: { hash, steps: 0 }, next: null, dead: dead.has(hash) });
  for (const [hash, place] of proven) if ((nodes.get(hash)?.place?.number ?? null) === null) add(hash, place);
  for (const hash of claimed) if (!nodes.has(hash)) add(hash, null);
  const stops = filtered([nodes, dead]);

  return {
    async advance(hashes, most, signal) {
      let walked = 0;
      for (const hash of hashes) {
        const node = nodes.get(hash);
        if (node === undefined || node.next !== null || node.dead || node.tip.steps >= most) continue;
        const reached = await walk(node.tip.hash, most - node.tip.steps, stops, { step, signal });
        // walks of fewer steps than a slice do not pause
        walked += reached.steps + STEPS_TO_BEGIN;
        if (walked >= STEPS_PER_SLICE) {
          walked = 0;
          await nextTick();
        }
        const steps = node.tip.steps + reached.steps;
        node.tip = { hash: reached.hash, steps };
        if (!reached.met) continue;
        if (!nodes.has(reached.hash)) add(reached.hash, null); // a dead one
        node.next = node.tip;
        const others = metBy.get(reached.hash) ?? [];
        metBy.set(reached.hash, others);
        others.push({ hash, steps });
      }
      spread(nodes, metBy);
    },
    placeOf: (hash) => nodes.get(hash)?.place ?? null,
    isDead: (hash) => nodes.get(hash)?.dead ?? dead.has(hash),
    stepsOf: (hash) => nodes.get(hash)?.tip.steps ?? 0,
    rootOf(hash) {
      let root = hash;
      for (let next = nodes.get(root)?.next; next; next = nodes.get(root)?.next) root = next.hash;
      return root;
    },
  };
}

/** Gives a position to every hash that is linked with a proven one, the best known first; marks what leads to dead ones dead. */
function spread(nodes: Nodes, metBy: MetBy): void {
  for (const worth of [3, 2, 1]) {
    follow(
      [...nodes].filter(([, { place }]) => worthOf(place) === worth).map(([hash]) => hash),
      nodes,
      metBy,
    );
  }
  const dying = [...nodes].filter(([, node]) => node.dead).map(([hash]) => hash);
  for (const hash of dying) {
    for (const other of metBy.get(hash) ?? []) {
      const node = nodes.get(other.hash);
      if (node === undefined || node.dead) continue;
      node.dead = true;
      dying.push(other.hash);
    }
  }
}

function follow(queue: string[], nodes: Nodes, metBy: MetBy): void {
  for (const hash of queue) {
    const node = nodes.get(hash);
    if (node?.place === undefined || node.place === null) continue;
    const { number, of } = node.place;
    const near = (metBy.get(hash) ?? []).map((other) => ({ hash: other.hash, offset: other.steps }));
    if (node.next !== null) near.push({ hash: node.next.hash, offset: -node.next.steps });
    for (const { hash: otherHash, offset } of near) {
      const other = nodes.get(otherHash);
      if (other === undefined || worthOf(other.place) >= worthOf(node.place)) continue;
      other.place = { number: number === null ? null : number + BigInt(offset), of: of ?? other.place?.of ?? null };
      queue.push(otherHash);
    }
  }
}

/** How much of a position is known: its number, at least its chain, or only that it has one. */
function worthOf(place: Place | null): 0 | 1 | 2 | 3 {
  if (place === null) return 0;
  if (place.number !== null) return 3;
  return place.of === null ? 1 : 2;
}

/**
 * Tests whether a hash is in one of these sets. A walk of millions tests each hash it passes, nearly always in vain: a bit for
 * its first 16 bits avoids hashing the text. Hashes that are added later must be in one of the sets already.
 */
function filtered(sets: readonly { keys(): Iterable<string>; has(hash: string): boolean }[]): {
  has(hash: string): boolean;
} {
  const beginnings = new Uint8Array(2 ** 16);
  for (const set of sets) for (const hash of set.keys()) beginnings[beginningOf(hash)] = 1;
  return { has: (hash) => beginnings[beginningOf(hash)] === 1 && sets.some((set) => set.has(hash)) };
}

function beginningOf(hash: string): number {
  return (digitAt(hash, 0) << 12) | (digitAt(hash, 1) << 8) | (digitAt(hash, 2) << 4) | digitAt(hash, 3);
}

/** The value of a hexadecimal digit: 0 to 9 start at 0x30, a to f at 0x61. */
function digitAt(hash: string, at: number): number {
  const code = hash.charCodeAt(at);
  return (code & 15) + (code >> 6) * 9;
}
