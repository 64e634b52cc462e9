const LONGEST_LOGGED_PATH = 200;
const KEY_NAME = /^(?:x[-_])?api[-_]?key$/i;
const KEY_TEXT = /rh_live_[0-9A-Za-z]{4,}/;
const MOST_KEPT = 1_000;
const LONGEST_KEPT = 200;

/** The URL of a request, without scheme and host. */
export interface RequestUrl {
  /** Without its parameters. */
  path: string;
  /** The parameters after the question mark; do not change them. */
  query: URLSearchParams;
  /** Whether it contains a key, or a parameter that is named like one. */
  carriesKey: boolean;
  /** The path for logs: without a key if it contains one. */
  loggedPath: string;
}

const kept = new Map<string, RequestUrl>(); // saves some 20 µs per 304: parameters are parsed and tables selected once

/** Parses a URL. Repeated URLs return the same object, so that results can be cached by it. */
export function readUrl(url: string): RequestUrl {
  const found = kept.get(url);
  if (found !== undefined) return found;
  const mark = url.indexOf("?");
  const path = mark === -1 ? url : url.slice(0, mark);
  const query = new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1));
  const parsed = {
    path,
    query,
    carriesKey: [...query.keys()].some((name) => KEY_NAME.test(name)) || KEY_TEXT.test(decoded(url)),
    loggedPath: KEY_TEXT.test(decoded(path)) ? "(a path with a key in it)" : path.slice(0, LONGEST_LOGGED_PATH),
  };
  if (url.length > LONGEST_KEPT || parsed.carriesKey) return parsed;
  kept.set(url, parsed);
  if (kept.size > MOST_KEPT) for (const oldest of kept.keys().take(1)) kept.delete(oldest);
  return parsed;
}

/** Like decodeURIComponent for ASCII, and never throws. */
function decoded(url: string): string {
  return url.replaceAll(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
