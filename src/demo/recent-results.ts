/**
 * Remembers the `limit` most recently used results of `make`, so that a server which can compute anything again keeps
 * a bounded memory. A promise that was rejected is not remembered.
 */
export function rememberRecent<K, V>(limit: number, make: (key: K) => V): (key: K) => V {
  const known = new Map<K, { value: V }>();
  return (key) => {
    const entry = known.get(key) ?? { value: make(key) };
    if (!known.has(key) && entry.value instanceof Promise) entry.value.catch(() => known.delete(key));
    known.delete(key);
    known.set(key, entry);
    for (const oldest of known.keys()) {
      if (known.size <= limit) break;
      known.delete(oldest);
    }
    return entry.value;
  };
}
