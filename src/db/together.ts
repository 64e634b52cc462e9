import { isConnectionTrouble } from "./trouble.ts";

/**
 * What a batch says of an item that it would have to wait for, such as one whose lock somebody else holds: it is done by
 * itself beside the batches, and nobody waits with it.
 */
export const APART = Symbol("apart");

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/** How batches are made. */
interface Options<Item, Result> {
  /** The most items in a batch. */
  items: number;
  /** The most that items may weigh together in one batch, though one item may be heavier by itself. */
  weight?: { most: number; of: (item: Item) => number };
  /** Does an item by itself, however long that takes; needed where a batch says {@link APART}. */
  apart?: (item: Item) => Promise<Result>;
}

/**
 * Group commit: what comes while a batch is on its way goes together in the next one. Who is alone waits for nothing,
 * and the busier the process is, the larger its batches get: a thousand houses cost a few transactions and not a thousand.
 *
 * `work` does a batch, all or nothing, and gives a result for each item. Where a batch fails each of its items is done
 * alone, so that one bad item never sinks the others; not so where the database is out of reach.
 */
export function together<Item, Result>(
  work: (items: readonly Item[]) => Promise<readonly (Result | typeof APART)[]>,
  options: Options<Item, Result>,
): (item: Item) => Promise<Result> {
  let waiting: Waiting<Item, Result>[] = [];
  let isWorking = false;

  async function flush(): Promise<void> {
    isWorking = true;
    // one turn of the event loop: what came in the same one goes together
    await new Promise((next) => setImmediate(next));
    while (waiting.length > 0) {
      const batch = waiting.slice(0, fitting(waiting, options));
      waiting = waiting.slice(batch.length);
      await settle(batch);
    }
    isWorking = false;
  }

  async function settle(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await work(batch.map(({ item }) => item));
      if (results.length !== batch.length)
        throw new Error(`expected ${batch.length} results of a batch, got ${results.length}`);
      batch.forEach((one, at) => {
        const result = results[at]!;
        if (result === APART) setApart(one);
        else one.resolve(result);
      });
    } catch (error) {
      if (batch.length === 1 || isConnectionTrouble(error)) {
        for (const { reject } of batch) reject(error);
        return;
      }
      for (const one of batch) await settle([one]);
    }
  }

  function setApart({ item, resolve, reject }: Waiting<Item, Result>): void {
    if (options.apart === undefined) reject(new Error("a batch set an item apart, and nothing does it by itself"));
    else options.apart(item).then(resolve, reject);
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!isWorking) void flush();
    });
}

/** How many of those that wait longest fit into a batch, at least one. */
function fitting<Item>(
  waiting: readonly { item: Item }[],
  { items, weight }: Pick<Options<Item, unknown>, "items" | "weight">,
): number {
  const first = waiting.slice(0, items);
  if (weight === undefined) return first.length;
  let left = weight.most;
  const tooMuch = first.findIndex(({ item }, at) => (left -= weight.of(item)) < 0 && at > 0);
  return tooMuch === -1 ? first.length : tooMuch;
}

/** One `together` for each pool of connections, made when first asked for and forgotten with the pool. */
export function togetherBy<Pool extends object, Item, Result>(
  work: (pool: Pool, items: readonly Item[]) => Promise<readonly (Result | typeof APART)[]>,
  options: Omit<Options<Item, Result>, "apart"> & { apart?: (pool: Pool, item: Item) => Promise<Result> },
): (pool: Pool, item: Item) => Promise<Result> {
  const kept = new WeakMap<Pool, (item: Item) => Promise<Result>>();
  const { apart, ...limits } = options;
  return (pool, item) => {
    const found =
      kept.get(pool) ??
      together((items: readonly Item[]) => work(pool, items), {
        ...limits,
        ...(apart !== undefined && { apart: (one: Item) => apart(pool, one) }),
      });
    kept.set(pool, found);
    return found(item);
  };
}
