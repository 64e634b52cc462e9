import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { codeOf } from "../../src/errors.ts";
import type { Fed, FeedData } from "./feed-thread.ts";
import { mutate, randomOf } from "./mutate.ts";
import type { Target } from "./targets.ts";

/** How a target is fed. */
export interface Feeding {
  /** URL of the module that exports TARGETS with it. */
  module: string;
  seed: number;
  forMs: number;
  /** A text that is not read within this time does not return: a parser in linear time takes some milliseconds for 64 kB. */
  deadlineMs: number;
}

/** The number of texts that were read; or the fault, and the file that has its text. */
export type Outcome = { texts: number } | { fault: string; file: string };

const HEAP_MB = 512;

/**
 * Feeds a target in a thread for a while, until the first text that it throws on, that does not return in time, or that
 * takes too much memory. The thread is terminated then, and the text is kept in a file.
 */
export async function feed({ name, seeds }: Pick<Target, "name" | "seeds">, feeding: Feeding): Promise<Outcome> {
  const { module, seed, forMs, deadlineMs } = feeding;
  const shown = new BigInt64Array(new SharedArrayBuffer(8)).fill(-1n);
  const workerData: FeedData = { module, name, seed, forMs, current: shown.buffer };
  const worker = new Worker(new URL("feed-thread.ts", import.meta.url), {
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
  const stuck = new AbortController();
  const stop = watch(shown, deadlineMs, () => stuck.abort());
  try {
    const [fed] = (await once(worker, "message", { signal: stuck.signal })) as [Fed];
    return "texts" in fed ? fed : keep(name, seeds, fed);
  } catch (error) {
    const at = Number(Atomics.load(shown, 0));
    if (at < 0) throw error; // the module could not be loaded
    if (stuck.signal.aborted) return keep(name, seeds, { seed: at, fault: `did not return within ${deadlineMs} ms` });
    if (codeOf(error) !== "ERR_WORKER_OUT_OF_MEMORY") throw error;
    return keep(name, seeds, { seed: at, fault: `needs more than ${HEAP_MB} MB` });
  } finally {
    stop();
    await worker.terminate();
  }
}

/** Calls `isStuck` once the same text is read for longer than the deadline. Returns what ends the watch. */
function watch(shown: BigInt64Array, deadlineMs: number, isStuck: () => void): () => void {
  let last = -1n;
  let since = performance.now();
  const look = setInterval(() => {
    const now = Atomics.load(shown, 0);
    if (now !== last) [last, since] = [now, performance.now()];
    else if (now >= 0n && performance.now() - since > deadlineMs) isStuck();
  }, deadlineMs / 10);
  return () => clearInterval(look);
}

/** Writes the text of a seed to a file in a new folder. */
function keep(name: string, seeds: readonly string[], { seed, fault }: { seed: number; fault: string }): Outcome {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "fuzz-")), `${name.replaceAll(/\W+/g, "-")}-${seed}.txt`);
  writeFileSync(file, mutate(seeds, randomOf(seed)));
  return { fault: `${name}, seed ${seed}: ${fault}`, file };
}
