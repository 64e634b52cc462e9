/** Waits before the next attempt. It may end early when `signal` is aborted. */
export type Wait = (seconds: number, signal: AbortSignal) => Promise<void>;

/** Waits by a timer, which ends when `signal` is aborted. */
export function waitSeconds(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, seconds * 1_000);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** `wait` that rejects with the signal's reason as soon as it is aborted, whether or not `wait` ends then. */
export function abortable(wait: Wait): Wait {
  return (seconds, signal) =>
    new Promise((resolve, reject) => {
      const abort = () => reject(signal.reason as Error);
      if (signal.aborted) return abort();
      signal.addEventListener("abort", abort, { once: true });
      void wait(seconds, signal)
        .then(resolve, reject)
        .finally(() => signal.removeEventListener("abort", abort));
    });
}
