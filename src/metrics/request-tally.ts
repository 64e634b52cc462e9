import { type Family, histogramSamples } from "./exposition.ts";

/** Upper bounds in seconds: an answer from memory takes a millisecond or two, one that is counted waits for a commit. */
const BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const CODES = 600;
/** Paths below these count together: what comes after is made up by whoever asks, and a series for each would never end. */
const GROUPS = ["/api", "/ops", "/console", "/docs"];
const ALWAYS = ["/", "/healthz", "/readyz", "/metrics"];
const OTHER = "other";

/** What requests came to, by endpoint. */
export interface RequestTally {
  /** Notes a request that is over: the path without its parameters, the status, and how long it took. */
  note: (path: string, status: number, ms: number) => void;
  families: () => Family[];
}

/**
 * Counts requests in plain arrays: a counter of a library joins the labels to a text at each call, which costs twenty
 * times as much (2 µs and not 0.1), and an answer from memory takes some 80 µs in all.
 * @param paths the endpoints that are counted by themselves
 */
export function tallyRequests(paths: readonly string[]): RequestTally {
  const slots = new Map([...ALWAYS, ...paths, ...GROUPS, OTHER].map((endpoint) => [endpoint, newSlot()]));
  const other = slots.get(OTHER) ?? newSlot();
  const groupOf = (path: string) => {
    const group = GROUPS.find((one) => path.startsWith(`${one}/`));
    return (group === undefined ? undefined : slots.get(group)) ?? other;
  };
  return {
    note(path, status, ms) {
      const slot = slots.get(path) ?? groupOf(path);
      const seconds = ms / 1_000;
      let bucket = 0;
      while (bucket < BOUNDS_SECONDS.length && seconds > BOUNDS_SECONDS[bucket]!) bucket++;
      slot.counts[bucket]!++;
      slot.sum += seconds;
      if (status >= 0 && status < CODES) slot.codes[status]!++;
    },
    families() {
      const used = [...slots].filter(([, { codes }]) => codes.some((n) => n > 0));
      return [
        {
          name: "roundhouse_http_requests_total",
          help: "Requests that are over, by endpoint (a path that is none of ours is other) and status code.",
          type: "counter",
          samples: used.flatMap(([endpoint, { codes }]) =>
            [...codes].flatMap((value, code) =>
              value === 0 ? [] : [{ labels: { endpoint, code: String(code) }, value }],
            ),
          ),
        },
        {
          name: "roundhouse_http_request_duration_seconds",
          help: "Time from a request's first line to the end of its answer, by endpoint.",
          type: "histogram",
          samples: used.flatMap(([endpoint, slot]) => histogramSamples({ endpoint }, BOUNDS_SECONDS, slot)),
        },
      ];
    },
  };
}

interface Slot {
  codes: Float64Array;
  counts: Float64Array;
  sum: number;
}

function newSlot(): Slot {
  return { codes: new Float64Array(CODES), counts: new Float64Array(BOUNDS_SECONDS.length + 1), sum: 0 };
}
