/** Names in one log line; a run after an outage may be about thousands. */
const NAMES_PER_LINE = 100;

/** Which answers of houses a run is about. */
export interface Traces {
  /** Notes ids of payloads; null is passed over, and the same again changes nothing. */
  follow: (payloads: Iterable<bigint | null>) => void;
  /** What was noted as `payload-812`, in lists short enough for a line each; none where nothing was. */
  lines: () => string[][];
}

/**
 * The thread through the logs. A round's way begins with the answer that brought it, whose id it keeps for good
 * (`rounds.payload_id`); each run of a job names the answers it is about. So one id finds the poll that saved the answer,
 * the run that read it, the one that issued the forecasts after its rounds, and those that scored with them. It is told
 * by what was stored and travels in no message: many messages about a house become one run.
 */
export function createTraces(): Traces {
  const names = new Set<string>();
  return {
    follow(payloads) {
      for (const id of payloads) if (id !== null) names.add(`payload-${id}`);
    },
    lines() {
      const all = [...names];
      return Array.from({ length: Math.ceil(all.length / NAMES_PER_LINE) }, (_, line) =>
        all.slice(line * NAMES_PER_LINE, (line + 1) * NAMES_PER_LINE),
      );
    },
  };
}
