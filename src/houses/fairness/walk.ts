import { hash as digest } from "node:crypto";
import { setImmediate as eventLoop } from "node:timers/promises";

/**
 * How the hash of a round gives that of the round before: SHA-256 over its 64 hexadecimal characters, or over its 32
 * bytes. The wrong choice gives plausible wrong numbers.
 */
export type ChainStep = "sha256_hex" | "sha256_raw";

/** 10,000 steps take 3 to 5 ms, a delay that is not noticeable in the process. */
export const STEPS_PER_SLICE = 10_000;

let lastTurn: Promise<unknown> = Promise.resolve();

/**
 * Waits for an event-loop tick without another walk's slice. However many walks run concurrently, each tick runs one slice
 * of one walk, so nothing else in the process waits longer.
 */
export function nextTick(): Promise<unknown> {
  lastTurn = lastTurn.then(() => eventLoop());
  return lastTurn;
}

/** Receives each hash on the way back; `step` is 1 for the round just before the first one. */
type Visit = (hash: string, step: number) => void;
/** Like Visit; the walk stops when it returns true. */
type Watch = (hash: string, step: number) => unknown;

/** @throws RangeError if it is not 64 lower case hexadecimal digits. */
export function assertHash(hash: string): void {
  if (!/^[0-9a-f]{64}$/.test(hash)) {
    throw new RangeError(`expected a hash of 64 lower case hexadecimal digits, got ${JSON.stringify(hash)}`);
  }
}

/**
 * The hash of the round before.
 * @throws RangeError if it is not a hash.
 */
export function previousHash(hash: string, step: ChainStep = "sha256_hex"): string {
  assertHash(hash);
  return walk(step, hash, 0, 1, undefined);
}

/**
 * The hash `steps` rounds earlier; 0 steps return the hash itself. A third of a microsecond per step, without a pause: for
 * more than some 10,000 steps use {@link walkBackSliced}.
 * @throws RangeError if it is not a hash, or `steps` is not a count.
 */
export function walkBack(hash: string, steps: number, visit?: Visit, step: ChainStep = "sha256_hex"): string {
  assertHash(hash);
  assertSteps(steps);
  return walk(step, hash, 0, steps, watchOf(visit));
}

/**
 * Like {@link walkBack}, but yields to the event loop every 10,000 steps.
 * @throws the signal's reason once it is aborted; RangeError as walkBack does.
 */
export async function walkBackSliced(
  hash: string,
  steps: number,
  options: { step?: ChainStep; signal?: AbortSignal | undefined; visit?: Visit | undefined } = {},
): Promise<string> {
  const { step = "sha256_hex", signal, visit } = options;
  assertHash(hash);
  assertSteps(steps);
  const watch = watchOf(visit);
  let current = hash;
  for (let done = 0; done < steps; done += STEPS_PER_SLICE) {
    signal?.throwIfAborted();
    current = walk(step, current, done, Math.min(done + STEPS_PER_SLICE, steps), watch);
    await nextTick();
  }
  signal?.throwIfAborted();
  return current;
}

/**
 * Walks back until a hash is one of `stops`, at most this many steps, yielding to the event loop in between. Returns the
 * last hash and the number of steps; `met` is true if that hash is a stop. The first hash is not tested.
 * @throws as walkBackSliced.
 */
export async function walkUntil(
  hash: string,
  most: number,
  stops: { has(hash: string): boolean },
  { step, signal }: { step: ChainStep; signal?: AbortSignal | undefined },
): Promise<{ hash: string; steps: number; met: boolean }> {
  assertHash(hash);
  assertSteps(most);
  let metAt = 0;
  const watch = (passed: string, at: number) => {
    if (!stops.has(passed)) return false;
    metAt = at;
    return true;
  };
  let current = hash;
  for (let done = 0; done < most && metAt === 0; done += STEPS_PER_SLICE) {
    // the many walks of a few steps do not pause
    if (done > 0) await nextTick();
    signal?.throwIfAborted();
    current = walk(step, current, done, Math.min(done + STEPS_PER_SLICE, most), watch);
  }
  return metAt > 0 ? { hash: current, steps: metAt, met: true } : { hash: current, steps: most, met: false };
}

function walk(step: ChainStep, hash: string, from: number, to: number, watch: Watch | undefined): string {
  return step === "sha256_hex" ? walkText(hash, from, to, watch) : walkBytes(hash, from, to, watch);
}

/** The one-shot digest of a string is the fastest Node has: half the time of createHash, a quarter of one to a buffer. */
function walkText(hash: string, from: number, to: number, watch: Watch | undefined): string {
  let current = hash;
  for (let step = from + 1; step <= to; step += 1) {
    current = digest("sha256", current);
    if (watch?.(current, step) === true) break;
  }
  return current;
}

/** A digest as a string of bytes, written into one buffer, takes half the time of a new buffer for each step. */
function walkBytes(hash: string, from: number, to: number, watch: Watch | undefined): string {
  const bytes = Buffer.from(hash, "hex");
  for (let step = from + 1; step <= to; step += 1) {
    bytes.write(digest("sha256", bytes, "binary"), "binary");
    if (watch?.(bytes.toString("hex"), step) === true) break;
  }
  return bytes.toString("hex");
}

/** A visitor's return value is ignored: `Set.delete` returns true too. */
function watchOf(visit: Visit | undefined): Watch | undefined {
  if (visit === undefined) return undefined;
  return (hash, step) => {
    visit(hash, step);
  };
}

function assertSteps(steps: number): void {
  if (!Number.isSafeInteger(steps) || steps < 0) throw new RangeError(`expected a count of steps, got ${steps}`);
}
