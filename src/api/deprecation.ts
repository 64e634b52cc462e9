/** The announced end of an operation; times in milliseconds since 1970. */
export interface Deprecation {
  /** From this time on, new code should not use it. */
  sinceMs: number;
  /** From this time on, it may be removed; absent while undecided. */
  sunsetMs?: number;
  /** The page with the alternatives. */
  page: string;
  /** The path that replaces it, if there is one. */
  successor?: string;
}

/**
 * Returns the headers of a deprecated operation: `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and `Link` to its page
 * and its successor. An operation with `deprecated` sends them with every response.
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
