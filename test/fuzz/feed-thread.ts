/** Feeds one parser with changed texts, in a thread that the watchdog of feed.ts can end. */
import { parentPort, workerData } from "node:worker_threads";
import { mutate, randomOf } from "./mutate.ts";
import type { Target } from "./targets.ts";

/** What a thread feeds: a target of a module, for a while. */
export interface FeedData {
  module: string;
  name: string;
  seed: number;
  forMs: number;
  /** The seed of the text that is read now, for the watchdog. */
  current: SharedArrayBuffer;
}

/** The end of a thread: the number of texts that were read, or the first fault. */
export type Fed = { texts: number } | { seed: number; fault: string };

const { module, name, seed, forMs, current } = workerData as FeedData;
const { TARGETS } = (await import(module)) as { TARGETS: readonly Target[] };
const target = TARGETS.find((one) => one.name === name);
if (target === undefined) throw new Error(`there is no target ${name}`);
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window, it has no origin
parentPort?.postMessage(await feed(target, new BigInt64Array(current)));

async function feed({ seeds, run }: Target, shown: BigInt64Array): Promise<Fed> {
  const until = performance.now() + forMs;
  let texts = 0;
  for (; performance.now() < until || texts === 0; texts += 1) {
    const at = seed + texts;
    const text = mutate(seeds, randomOf(at));
    Atomics.store(shown, 0, BigInt(at));
    try {
      await run(text);
    } catch (error) {
      return { seed: at, fault: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
  }
  return { texts };
}
