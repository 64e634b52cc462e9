import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import helmet from "helmet";

/** Nothing is loaded from other sites, no script runs, framing is forbidden. */
const CONTENT_POLICY = {
  defaultSrc: ["'none'"],
  styleSrc: ["'self'"],
  imgSrc: ["'self'"],
  baseUri: ["'none'"],
  formAction: ["'none'"],
  frameAncestors: ["'none'"],
};

/** The headers of every response except its request id: names and values in turn. */
export const COMMON_HEADERS: readonly string[] = [
  "Cache-Control",
  "private, no-cache",
  "Vary",
  "X-Api-Key, Accept-Encoding",
  ...protectingHeaders(),
];

/** Helmet's headers, computed once, because they are the same for every response. */
function protectingHeaders(): string[] {
  const shown = new ServerResponse(new IncomingMessage(new Socket()));
  helmet({ contentSecurityPolicy: { useDefaults: false, directives: CONTENT_POLICY } })(
    shown.req,
    shown,
    () => undefined,
  );
  return shown.getHeaderNames().flatMap((name) => [name, String(shown.getHeader(name))]);
}

/** Sets headers that are given as names and values in turn. */
export function setPairs(response: ServerResponse, pairs: readonly string[]): void {
  for (let at = 0; at + 1 < pairs.length; at += 2) response.setHeader(pairs[at]!, pairs[at + 1]!);
}
