import { asError } from "./errors.ts";

/** Waits at least so many milliseconds; false if a signal was aborted before. Signals end it without an error. */
export async function sleep(ms: number, signals: readonly AbortSignal[]): Promise<boolean> {
  if (signals.some(({ aborted }) => aborted)) return false;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const until = performance.now() + ms;
  let timer: NodeJS.Timeout | undefined;
  const wait = () => {
    const left = until - performance.now(); // a timer may be up to two milliseconds early
    if (left <= 0) resolve(true);
    else timer = setTimeout(wait, left);
  };
  wait();
  const stop = () => resolve(false);
  for (const signal of signals) signal.addEventListener("abort", stop);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    for (const signal of signals) signal.removeEventListener("abort", stop);
  }
}

/**
 * Returns a promise's value, unless a signal is aborted before. The promise itself continues, and its later failure is
 * ignored.
 * @throws the signal's reason, or what `failure` returns, as soon as the signal is aborted
 */
export async function unlessAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal,
  failure = () => asError(signal.reason),
): Promise<Value> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(failure());
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** A limit of time for work that may be aborted earlier. */
export interface Deadline {
  /** Aborted when the source is, after the time, or by `abort`. */
  signal: AbortSignal;
  abort(reason: unknown): void;
  isLate(): boolean;
  /** To be called when the work is over. */
  end(): void;
}

/**
 * Starts a deadline for work that `source` aborts too. Sockets and threads are read once more before it is reached, since
 * what arrived while this process was busy was in time. `AbortSignal.any` and `AbortSignal.timeout` do the same by weak
 * references, which take eight times as long (16 µs for the signals of a poll).
 */
export function startDeadline(source: AbortSignal, ms: number): Deadline {
  const controller = new AbortController();
  let isLate = false;
  let last: NodeJS.Immediate | undefined;
  const giveUp = () => {
    isLate = true;
    controller.abort(new Error(`took longer than ${ms} ms`));
  };
  // timers run before sockets in an event loop tick, and immediates after them
  const timer = setTimeout(() => void (last = setImmediate(giveUp)), ms);
  const follow = () => controller.abort(source.reason);
  if (source.aborted) follow();
  else source.addEventListener("abort", follow, { once: true });
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    isLate: () => isLate,
    end() {
      clearTimeout(timer);
      clearImmediate(last);
      source.removeEventListener("abort", follow);
    },
  };
}
