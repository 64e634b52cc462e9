import { isConnectionError } from "./errors.ts";

/**
 * What a batch says of an item that it would have to wait for, such as one whose lock somebody else holds: it has another
 * try in later batches, and then is done by itself beside them, so that nobody waits with it.
 */
export const APART = Symbol("apart");

/** Batches that an item is in before it is done by itself, and the pause before each: mostly it is held for a moment. */
const TRIES_TOGETHER = 5;
const PAUSE_MS = 50;
/** Items done by themselves at once: each holds a connection for as long as it waits. */
const APART_AT_ONCE = 2;

interface Waiting<Item, Result> {
  item: Item;
  signal: AbortSignal | undefined;
  tries: number;
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
 * Has an item done. Where `signal` is aborted it is not begun any more, and that is told at once; what is on its way comes
 * to its end.
 */
type Together<Item, Result> = (item: Item, signal?: AbortSignal) => Promise<Result>;

/**
 * Group commit: what comes while a batch is on its way goes together in the next one. Who is alone waits for nothing,
 * and the busier the process is, the larger its batches get: a thousand houses cost a few transactions and not a thousand.
 *
 * `work` does a batch and gives a result for each item, or throws and has done nothing that may not be done again. Where a
 * batch fails its halves are done, and so on, so that one bad item never sinks the others; not so where the database is
 * out of reach.
 */
export function together<Item, Result>(
  work: (items: readonly Item[]) => Promise<readonly (Result | typeof APART)[]>,
  options: Options<Item, Result>,
): Together<Item, Result> {
  let waiting: Waiting<Item, Result>[] = [];
  let isWorking = false;
  /** Those that have another try in a moment, and those that are to be done by themselves. */
  const resting = new Set<Waiting<Item, Result>>();
  let apart: Waiting<Item, Result>[] = [];
  let apartNow = 0;

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
    let results: readonly (Result | typeof APART)[];
    try {
      results = await work(batch.map(({ item }) => item));
    } catch (error) {
      if (batch.length === 1 || isConnectionError(error)) {
        for (const { reject } of batch) reject(error);
        return;
      }
      const half = Math.ceil(batch.length / 2);
      await settle(batch.slice(0, half));
      await settle(batch.slice(half));
      return;
    }
    for (const [at, one] of batch.entries()) {
      const result = results[at];
      if (result === APART) tryLater(one);
      else if (at < results.length) one.resolve(result!);
      else one.reject(new Error(`expected ${batch.length} results of a batch, got ${results.length}`));
    }
  }

  function tryLater(one: Waiting<Item, Result>): void {
    if (one.signal?.aborted === true) return one.reject(one.signal.reason);
    one.tries += 1;
    if (one.tries < TRIES_TOGETHER) {
      resting.add(one);
      setTimeout(() => {
        if (resting.delete(one)) enter(one);
      }, PAUSE_MS);
      return;
    }
    apart.push(one);
    void workApart();
  }

  function enter(one: Waiting<Item, Result>): void {
    waiting.push(one);
    if (!isWorking) void flush();
  }

  async function workApart(): Promise<void> {
    if (apartNow >= APART_AT_ONCE) return;
    apartNow += 1;
    for (let one = apart.shift(); one !== undefined; one = apart.shift()) {
      try {
        if (options.apart === undefined) throw new Error("a batch set an item apart, and nothing does it by itself");
        one.resolve(await options.apart(one.item));
      } catch (error) {
        one.reject(error);
      }
    }
    apartNow -= 1;
  }

  /** Takes an item out that still waits when its run gives up. */
  function heed(one: Waiting<Item, Result>, signal: AbortSignal): void {
    const onAbort = () => {
      const isWaiting = waiting.includes(one) || resting.delete(one) || apart.includes(one);
      if (!isWaiting) return; // it is on its way
      waiting = waiting.filter((other) => other !== one);
      apart = apart.filter((other) => other !== one);
      one.reject(signal.reason);
    };
    const { resolve, reject } = one;
    const over = () => signal.removeEventListener("abort", onAbort);
    one.resolve = (result) => (over(), resolve(result));
    one.reject = (error) => (over(), reject(error));
    signal.addEventListener("abort", onAbort, { once: true });
  }

  return async (item, signal) => {
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const one = { item, signal, tries: 0, resolve, reject };
      if (signal !== undefined) heed(one, signal);
      enter(one);
    });
  };
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
): (pool: Pool, item: Item, signal?: AbortSignal) => Promise<Result> {
  const kept = new WeakMap<Pool, Together<Item, Result>>();
  const { apart, ...limits } = options;
  return (pool, item, signal) => {
    const found =
      kept.get(pool) ??
      together((items: readonly Item[]) => work(pool, items), {
        ...limits,
        ...(apart !== undefined && { apart: (one: Item) => apart(pool, one) }),
      });
    kept.set(pool, found);
    return found(item, signal);
  };
}

/** Of items with the same key the first, by key, in the order in which they came. */
export function firstOfEach<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item> {
  const first = new Map<Key, Item>();
  for (const item of items) if (!first.has(keyOf(item))) first.set(keyOf(item), item);
  return first;
}
