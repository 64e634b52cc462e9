import type { IncomingMessage } from "node:http";

/** Methods that change nothing. */
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Whether a request may change something as far as its origin goes: a page of another site must not send our forms.
 *
 * The rule is Go's `http.CrossOriginProtection`: a browser says by `Sec-Fetch-Site` where a request comes from; an older
 * one by `Origin`, whose host must be the one that was asked, or the one of our public address (a proxy may ask under
 * another name). What says neither is no browser, and so has no cookies that somebody else could use.
 */
export function isFromHere(request: Pick<IncomingMessage, "method" | "headers">, site: string): boolean {
  const { method = "", headers } = request;
  if (SAFE_METHODS.has(method)) return true;
  const fetchSite = headers["sec-fetch-site"];
  if (fetchSite !== undefined) return fetchSite === "same-origin" || fetchSite === "none";
  const { origin } = headers;
  if (origin === undefined) return true;
  if (!URL.canParse(origin)) return false; // "null" of a sandboxed frame, too
  const { host } = new URL(origin);
  return host === headers.host || (URL.canParse(site) && host === new URL(site).host);
}
