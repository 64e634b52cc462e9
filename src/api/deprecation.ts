/** The end of an operation, as it is announced; all times are in milliseconds since 1970. */
export interface Deprecation {
  /** From when on nobody should begin to use it. */
  sinceMs: number;
  /** From when on it may be gone; left out while that is not decided. */
  sunsetMs?: number;
  /** The page that says what to do instead. */
  page: string;
  /** The path that takes its place, where there is one. */
  successor?: string;
}

/**
 * The headers of an operation that is going away: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to the page
 * about it and to what takes its place. An operation that has a `deprecated` sends them with every answer of its path.
 *
 * @example
 * deprecationHeaders({ sinceMs: Date.UTC(2027, 0, 1), page: "/docs/changes" }).Deprecation; // => "@1798761600"
 * deprecationHeaders({ sinceMs: 0, sunsetMs: Date.UTC(2027, 6, 1), page: "/docs/changes" }).Sunset; // => "Thu, 01 Jul 2027 00:00:00 GMT"
 */
export function deprecationHeaders({ sinceMs, sunsetMs, page, successor }: Deprecation): Record<string, string> {
  const links = [`<${page}>; rel="deprecation"; type="text/html"`];
  if (successor !== undefined) links.push(`<${successor}>; rel="successor-version"`);
  return {
    Deprecation: `@${Math.floor(sinceMs / 1_000)}`,
    ...(sunsetMs === undefined ? {} : { Sunset: new Date(sunsetMs).toUTCString() }),
    Link: links.join(", "),
  };
}
