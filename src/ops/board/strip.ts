import type { StatusCell } from "./polls-store.ts";

/** Classes of responses, worst last: bars are stacked in this order. */
const CLASSES = ["good", "slow", "refused", "broken", "silent"] as const;
export type StatusClass = (typeof CLASSES)[number];

/** Words for the classes of status codes. */
export const CLASS_TEXT: Record<StatusClass, string> = {
  good: "2xx, 304 and not played yet",
  slow: "429",
  refused: "3xx and 4xx",
  broken: "5xx",
  silent: "no response",
};

/** One bar: parts from the bottom up, as shares of all requests of its cell. */
export interface Bar {
  at: Date;
  requests: number;
  parts: { kind: StatusClass; from: number; share: number }[];
}

/** Polls of a house by status over some hours. */
export interface Strip {
  bars: (Bar | null)[];
  /** Requests by status code over the whole span, most first; "0" and "absent" as in PollSummary. */
  codes: [code: string, n: number][];
  requests: number;
  bytes: number;
}

/**
 * Bars over a span of time, oldest first; null if there was no request.
 * @param span of the first bar's begin, in milliseconds since 1970
 */
export function statusStrip(
  cells: readonly StatusCell[],
  { startMs, cellMs, count }: { startMs: number; cellMs: number; count: number },
): Strip {
  const byPlace = new Map(cells.map((cell) => [Math.round((cell.at.getTime() - startMs) / cellMs), cell]));
  const codes = new Map<string, number>();
  for (const { statuses } of cells) {
    for (const [code, n] of Object.entries(statuses)) codes.set(code, (codes.get(code) ?? 0) + n);
  }
  return {
    bars: Array.from({ length: count }, (_, at) => {
      const cell = byPlace.get(at);
      return cell === undefined ? null : barOf(cell);
    }),
    codes: [...codes].toSorted((a, b) => b[1] - a[1]),
    requests: cells.reduce((sum, { requests }) => sum + requests, 0),
    bytes: cells.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

/**
 * The class of a status code, "0" being no response and "absent" the 404 of a round that was not played yet.
 *
 * @example
 * statusClass("304"); // => "good"
 * statusClass("absent"); // => "good"
 * statusClass("429"); // => "slow"
 * statusClass("503"); // => "broken"
 * statusClass("0"); // => "silent"
 */
export function statusClass(key: string): StatusClass {
  if (key === "absent") return "good";
  const code = Number(key);
  if (code === 0) return "silent";
  if (code === 304 || (code >= 200 && code < 300)) return "good";
  if (code === 429) return "slow";
  return code >= 500 ? "broken" : "refused";
}

/** A code in words. */
export function codeText(code: string): string {
  if (code === "absent") return "not played yet";
  return code === "0" ? "no response" : code;
}

function barOf({ at, statuses }: StatusCell): Bar {
  const sums = new Map<StatusClass, number>();
  let requests = 0;
  for (const [code, n] of Object.entries(statuses)) {
    const kind = statusClass(code);
    sums.set(kind, (sums.get(kind) ?? 0) + n);
    requests += n;
  }
  let from = 0;
  const parts = CLASSES.flatMap((kind) => {
    const share = (sums.get(kind) ?? 0) / Math.max(1, requests);
    if (share === 0) return [];
    const part = { kind, from, share };
    from += share;
    return [part];
  });
  return { at, requests, parts };
}
