import { IncomingMessage, ServerResponse, type RequestListener } from "node:http";
import { Socket } from "node:net";
import type { Express } from "express";
import helmet from "helmet";
import type { Log } from "../log.ts";
import type { Answering } from "./operations.ts";
import { answerErrors, asked, beginRequest, refuseUnfit, type Reply } from "./request.ts";

/** What the front hands requests to. */
interface FrontParts {
  /** Answers everything that is not an operation, and what is unusual about one that is. */
  app: Express;
  /** What answers a GET or HEAD of each path of an operation. */
  operations: ReadonlyMap<string, Answering>;
  site: () => string;
  log: Log;
}

/**
 * What every request meets first: its id, the headers that every answer has, and its line in the log.
 *
 * Whoever reads an operation is answered here, past the app, by the same function that the app has for the path: its
 * router and middleware took 13 % of the processor time of a counted call before anything of ours began.
 */
export function openFront({ app, operations, site, log }: FrontParts): RequestListener {
  const begin = beginRequest(log);
  const refuse = answerErrors(site, log);
  const protection = protectingHeaders();
  return (request, response) => {
    const reply = Object.assign(response, { locals: { requestId: "" } });
    begin(request, reply, () => {
      response.setHeaders(protection);
      const answer =
        request.method === "GET" || request.method === "HEAD" ? operations.get(asked(request).path) : undefined;
      if (answer === undefined) app(request, response);
      else {
        const cut = () => reply.destroy();
        void answerRead(answer, request, reply).catch((thrown: unknown) => refuse(thrown, request, reply, cut));
      }
    });
  };
}

async function answerRead(answer: Answering, request: IncomingMessage, reply: Reply): Promise<void> {
  refuseUnfit(request, reply, () => undefined);
  await answer(request, reply);
}

/** What helmet sets, asked once, since it is the same for every answer. */
function protectingHeaders(): Map<string, string> {
  const shown = new ServerResponse(new IncomingMessage(new Socket()));
  helmet({ contentSecurityPolicy: { useDefaults: false, directives: CONTENT_POLICY } })(
    shown.req,
    shown,
    () => undefined,
  );
  return new Map(shown.getHeaderNames().map((name) => [name, String(shown.getHeader(name))]));
}

/** Pages are made here: nothing is loaded from elsewhere, no script runs, nobody may put them in a frame. */
const CONTENT_POLICY = {
  defaultSrc: ["'none'"],
  styleSrc: ["'self'"],
  imgSrc: ["'self'"],
  baseUri: ["'none'"],
  formAction: ["'none'"],
  frameAncestors: ["'none'"],
};
