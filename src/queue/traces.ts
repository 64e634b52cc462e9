/** Names in one log line; a run after an outage may be about thousands. */
const NAMES_PER_LINE = 100;

/** Which answers of houses a run is about. */
export interface Traces {
  /** Notes payloads by when they were received; null is passed over, and the same again changes nothing. */
  follow: (receivedAt: Iterable<string | null>) => void;
  /** What was noted, in lists short enough for a line each; none when nothing was. */
  lines: () => string[][];
}

/**
 * The thread through the logs. A round keeps when its response was received (`rounds.received_at`), and each run of a job
 * names the payloads that it is about in the same way. So one time finds the poll that saved a payload and, when it was not
 * read at once, the run that read it.
 */
export function createTraces(): Traces {
  const names = new Set<string>();
  return {
    follow(receivedAt) {
      for (const at of receivedAt) if (at !== null) names.add(at);
    },
    lines() {
      const all = [...names];
      return Array.from({ length: Math.ceil(all.length / NAMES_PER_LINE) }, (_, line) =>
        all.slice(line * NAMES_PER_LINE, (line + 1) * NAMES_PER_LINE),
      );
    },
  };
}
