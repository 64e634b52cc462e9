/**
 * What a promise gives, if it does so in time.
 *
 * An answer that has come while this process was busy counts as in time: when the time is up, what the sockets hold is
 * read once more.
 * @throws Error after `ms` milliseconds, naming what was waited for; the promise itself goes on unheard.
 */
export async function within<Value>(ms: number, what: string, promise: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new Error(`${what} did not answer within ${ms} ms`));
    // timers come before sockets in a turn of the event loop, and immediates after them
    timer = setTimeout(() => setImmediate(giveUp), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
