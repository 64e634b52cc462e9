/**
 * Makes a cache: values are kept by name for `forMs` milliseconds, at most `most` of them. The oldest is evicted first,
 * so that requests for many names cannot fill the memory.
 */
export function timedCache<Value>({ forMs, most }: { forMs: number; most: number }) {
  const kept = new Map<string, { value: Value; at: number }>();
  return {
    /** Returns the value of a name; undefined if there is none, or it has expired. */
    find(name: string): Value | undefined {
      const found = kept.get(name);
      return found !== undefined && performance.now() - found.at < forMs ? found.value : undefined;
    },
    keep(name: string, value: Value): Value {
      kept.delete(name);
      kept.set(name, { value, at: performance.now() });
      if (kept.size > most) for (const oldest of kept.keys().take(1)) kept.delete(oldest);
      return value;
    },
    forget(name: string, value: Value): void {
      if (kept.get(name)?.value === value) kept.delete(name);
    },
  };
}
