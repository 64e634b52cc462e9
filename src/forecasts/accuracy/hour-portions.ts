/** A span of whole hours, from one to another. */
export interface HourSpan {
  start: string;
  end: string;
}

const HOUR_MS = 3_600_000;

/**
 * Cuts spans into portions of at most so many hours: short spans share one, a long one takes several. Whoever reads a
 * portion at once holds no more than that, however long and however many the spans are.
 *
 * @example
 * const day = { start: "2026-11-21T00:00:00Z", end: "2026-11-22T00:00:00Z" };
 * const hour = { start: "2026-11-21T00:00:00Z", end: "2026-11-21T01:00:00Z" };
 * [...portionsOf([hour, day, hour], 24)].map((portion) => portion.length); // => [2, 2]
 */
export function* portionsOf<S extends HourSpan>(
  spans: readonly S[],
  hours: number,
): Generator<({ span: S } & HourSpan)[]> {
  let portion: ({ span: S } & HourSpan)[] = [];
  let left = hours;
  for (const span of spans) {
    const end = Date.parse(span.end);
    for (let from = Date.parse(span.start); from < end;) {
      const upTo = Math.min(end, from + left * HOUR_MS);
      portion.push({ span, start: timeOf(from), end: timeOf(upTo) });
      left -= Math.ceil((upTo - from) / HOUR_MS);
      from = upTo;
      if (left > 0) continue;
      yield portion;
      [portion, left] = [[], hours];
    }
  }
  if (portion.length > 0) yield portion;
}

/** How many hours a span has room for. */
export function hoursOf({ start, end }: HourSpan): number {
  return Math.ceil((Date.parse(end) - Date.parse(start)) / HOUR_MS);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
