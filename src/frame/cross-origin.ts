import type { IncomingMessage } from "node:http";

/** Methods that change nothing. */
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Whether the origin of a request allows it to change something: a page of another site must not send our forms.
 *
 * The rule is Go's `http.CrossOriginProtection`: browsers send `Sec-Fetch-Site`; older ones `Origin`, whose host must
 * be the requested one or that of our public address (a proxy may use another name). A request with neither is not from
 * a browser, and so has no cookies that another site could abuse.
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
