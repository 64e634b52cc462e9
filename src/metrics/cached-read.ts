import { within } from "../within.ts";

/** A result is reused this long. */
const BELIEVED_MS = 5_000;
/** A failure is reused no longer than a server takes to restart. */
const DOUBTED_MS = 1_000;
const PATIENCE_MS = 800;

/**
 * Reads something that may be slow or unavailable, for a caller that must respond soon: returns what was read in the
 * last five seconds, or null if nothing was and no result arrives within 0.8 s. At most one read is running: later
 * callers wait for it and start no second one.
 * @param failed is notified of each read that fails
 */
export function readCached<Seen>(
  what: string,
  look: () => Promise<Seen>,
  failed: (error: unknown) => void,
): () => Promise<Seen | null> {
  let latest: { seen: Seen | null; at: number } | null = null;
  let underWay: Promise<Seen | null> | null = null;

  async function begin(): Promise<Seen | null> {
    let seen: Seen | null = null;
    try {
      seen = await look();
    } catch (error) {
      failed(error);
    }
    latest = { seen, at: performance.now() };
    underWay = null;
    return seen;
  }

  return async () => {
    const age = latest === null ? Infinity : performance.now() - latest.at;
    if (latest !== null && age < (latest.seen === null ? DOUBTED_MS : BELIEVED_MS)) return latest.seen;
    underWay ??= begin();
    try {
      return await within(PATIENCE_MS, what, underWay);
    } catch (error) {
      failed(error);
      return null;
    }
  };
}
