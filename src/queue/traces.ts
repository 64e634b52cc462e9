/** Names per log line; a run after an outage can have thousands. */
const NAMES_PER_LINE = 100;

/** The responses of houses that a run is about. */
export interface Traces {
  /** Adds payloads by the time they were received; null and repeated ones change nothing. */
  follow: (receivedAt: Iterable<string | null>) => void;
  /** The payloads, in lists that fit into one line each. */
  lines: () => string[][];
}

/**
 * Connects the log with the data. A round has the time when its response was received (`rounds.received_at`), and each run
 * logs that time for the payloads that it is about. So one time finds the poll that saved a payload and, if it was read
 * later, the run that read it.
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
