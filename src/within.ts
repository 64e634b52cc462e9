/** What {@link valueOrLate} returns after the time. */
export const LATE = Symbol("late");

/**
 * Returns a promise's value, or `LATE` after `ms` milliseconds; the promise itself is not cancelled, and its later failure
 * is ignored.
 *
 * A value that arrived while this process was busy counts as in time: the sockets are read once more before the
 * timeout.
 */
export async function valueOrLate<Value>(ms: number, promise: PromiseLike<Value>): Promise<Value | typeof LATE> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    // timers run before sockets in an event loop tick, and immediates after them
    timer = setTimeout(() => setImmediate(resolve, LATE), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Returns a promise's value, if it settles in time, as {@link valueOrLate} does.
 *
 * @param late what did not respond, for the message; or the error to throw
 * @throws Error after `ms` milliseconds
 */
export async function within<Value>(
  ms: number,
  late: string | (() => Error),
  promise: PromiseLike<Value>,
): Promise<Value> {
  const value = await valueOrLate(ms, promise);
  if (value !== LATE) return value;
  throw typeof late === "string" ? new Error(`${late} did not respond within ${ms} ms`) : late();
}
