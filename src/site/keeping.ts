/**
 * Keeps what was made, by its name, for some milliseconds: whoever asks again meanwhile gets the same. At most `most` are
 * kept, the oldest go first, so that nobody fills the memory by asking for ever other things.
 */
export function keeping<Value>({ forMs, most }: { forMs: number; most: number }) {
  const kept = new Map<string, { value: Value; at: number }>();
  return {
    /** What is kept under a name; undefined where nothing is, or nothing any more. */
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
