/**
 * Returns a promise's value, if it settles in time.
 *
 * A value that arrived while this process was busy counts as in time: the sockets are read once more before the
 * timeout.
 *
 * @throws Error after `ms` milliseconds, with `what` in its message; the promise itself is not cancelled
 */
export async function within<Value>(ms: number, what: string, promise: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new Error(`${what} did not respond within ${ms} ms`));
    // timers run before sockets in an event loop tick, and immediates after them
    timer = setTimeout(() => setImmediate(giveUp), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
