/** A look is believed this long. */
const BELIEVED_MS = 5_000;
/** A failure is not held against a server for longer than it takes to come back. */
const DOUBTED_MS = 1_000;
const PATIENCE_MS = 800;

/**
 * Looks at something that may be slow or away, for those who must answer soon: gives what was seen in the last five
 * seconds, or null if nothing was and nothing comes within 0.8 s. Never more than one look is under way: one that
 * hangs is waited for again by the next who ask, and not repeated next to it.
 * @param failed is notified of each look that fails
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
    return soon(underWay, () => failed(new Error(`${what} did not answer within ${PATIENCE_MS} ms`)));
  };
}

async function soon<Seen>(promise: Promise<Seen | null>, late: () => void): Promise<Seen | null> {
  let timer: NodeJS.Timeout | undefined;
  const givenUp = new Promise<null>((resolve) => {
    timer = setTimeout(() => {
      late();
      resolve(null);
    }, PATIENCE_MS);
  });
  try {
    return await Promise.race([promise, givenUp]);
  } finally {
    clearTimeout(timer);
  }
}
