import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import helmet from "helmet";

/** Pages are made here: nothing is loaded from elsewhere, no script runs, nobody may put them in a frame. */
const CONTENT_POLICY = {
  defaultSrc: ["'none'"],
  styleSrc: ["'self'"],
  imgSrc: ["'self'"],
  baseUri: ["'none'"],
  formAction: ["'none'"],
  frameAncestors: ["'none'"],
};

/** The headers of every answer beside its request id, whatever it is and whoever asked: names and values in turn. */
export const EVERY_ANSWER: readonly string[] = [
  "Cache-Control",
  "private, no-cache",
  "Vary",
  "X-Api-Key, Accept-Encoding",
  ...protectingHeaders(),
];

/** What helmet sets, asked once, since it is the same for every answer. */
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
