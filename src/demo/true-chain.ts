import { LRUCache } from "lru-cache";
import { crashHundredths } from "../houses/fairness/bustabit.ts";
import { walkBack, walkBackSliced } from "../houses/fairness/walk.ts";
import { ANCHORS, LAST_GAME, SALT } from "./bustabit-v2.ts";

const BLOCK = 1_000;
/** 16 blocks of 1,000 games and the milestones of 4 descents are about 3 MB. */
const BLOCKS_KEPT = 16;
const DESCENTS_KEPT = 4;

/** A game of the true chain; its multiplier in integer hundredths. */
export interface TrueGame {
  id: number;
  hash: string;
  hundredths: number;
}

/** How far one walk down from an anchor has come, with the hash of every thousandth game it passed. */
interface Descent {
  lowestId: number;
  lowestHash: string;
  milestones: Map<number, string>;
  /** Walks down one descent follow each other, so that no step is taken twice. */
  walking: Promise<void>;
}

/**
 * Gives the games `newest` down to `oldest` of the true chain, newest first; none where newest is below oldest.
 *
 * A hash is only found by walking down from a later one: from the anchor above, at most 250,000 steps or 0.2 s, once;
 * every thousandth hash passed is kept, so that any game near it is then 1,000 steps away. Walks yield to the event
 * loop and end when `signal` is aborted.
 */
export function createTrueChain(
  signal: AbortSignal,
): (page: { newest: number; oldest: number }) => Promise<TrueGame[]> {
  const descents = new LRUCache<number, Descent>({
    max: DESCENTS_KEPT,
    memoMethod: (anchorId) => {
      const { hash } = anchorAbove(anchorId);
      return {
        lowestId: anchorId,
        lowestHash: hash,
        milestones: new Map([[anchorId, hash]]),
        walking: Promise.resolve(),
      };
    },
  });

  async function hashOf(id: number): Promise<string> {
    const descent = descents.memo(anchorAbove(id).id);
    descent.walking = descent.walking.then(() => descendTo(descent, id, signal));
    await descent.walking;
    const hash = descent.milestones.get(id);
    if (hash === undefined) throw new Error(`no milestone was kept at game ${id}`);
    return hash;
  }

  const blocks = new LRUCache<number, Promise<TrueGame[]>>({ max: BLOCKS_KEPT, memoMethod: readBlock });

  async function readBlock(block: number): Promise<TrueGame[]> {
    const newest = Math.min((block + 1) * BLOCK, LAST_GAME);
    const newestHash = await hashOf(newest);
    const games = [{ id: newest, hash: newestHash, hundredths: crashHundredths(newestHash, SALT) }];
    walkBack(newestHash, newest - block * BLOCK - 1, (hash, step) =>
      games.push({ id: newest - step, hash, hundredths: crashHundredths(hash, SALT) }),
    );
    return games;
  }

  return async ({ newest, oldest }) => {
    const games: TrueGame[] = [];
    if (newest < oldest) return games;
    const lowestBlock = blockOf(oldest);
    for (let block = blockOf(newest); block >= lowestBlock; block -= 1) {
      games.push(...(await blocks.memo(block)).filter(({ id }) => id <= newest && id >= oldest));
    }
    return games;
  };
}

function blockOf(id: number): number {
  return Math.floor((id - 1) / BLOCK);
}

function anchorAbove(id: number): { id: number; hash: string } {
  const anchor = ANCHORS.findLast((one) => one.id >= id);
  if (anchor === undefined) throw new Error(`game ${id} is after ${LAST_GAME}, the last one whose hash is known`);
  return anchor;
}

async function descendTo(descent: Descent, id: number, signal: AbortSignal): Promise<void> {
  if (id >= descent.lowestId) return;
  const from = descent.lowestId;
  const hash = await walkBackSliced(descent.lowestHash, from - id, {
    signal,
    visit: (passed, step) => {
      if ((from - step) % BLOCK === 0) descent.milestones.set(from - step, passed);
    },
  });
  descent.lowestId = id;
  descent.lowestHash = hash;
}
