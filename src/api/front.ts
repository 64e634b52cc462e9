import type { IncomingMessage, RequestListener } from "node:http";
import type { Express } from "express";
import type { Log } from "../log.ts";
import { isBelow } from "../frame/paths.ts";
import type { Answering } from "./operations.ts";
import { answerErrors, asked, beginAnswer, refuseUnfit, watchRequest, type Note, type Reply } from "./request.ts";

/** What the front hands requests to. */
interface FrontParts {
  /** Answers everything that is not an operation, and what is unusual about one that is. */
  app: Express;
  /** What answers a GET or HEAD of each path of an operation. */
  operations: ReadonlyMap<string, Answering>;
  /** What answers everything at and below a path such as `/ops`. */
  surfaces: readonly { base: string; listener: RequestListener }[];
  site: () => string;
  log: Log;
  /** Is told of each request that is over, and of each error by its code. */
  measure?: { note: Note; refused: (code: string) => void };
}

/**
 * What every request meets first: its id, the headers that every answer has, and its line in the log.
 *
 * Whoever reads an operation is answered here, past the app, by the same function that the app has for the path: its
 * router and middleware took 13 % of the processor time of a counted call before anything of ours began.
 */
export function openFront({ app, operations, surfaces, site, log, measure }: FrontParts): RequestListener {
  const watch = watchRequest(log, measure?.note);
  const refuse = answerErrors(site, log, measure?.refused);
  return (request, response) => {
    const reply = Object.assign(response, { locals: { requestId: "" } });
    watch(request, reply);
    const answer =
      request.method === "GET" || request.method === "HEAD" ? operations.get(asked(request).path) : undefined;
    if (answer === undefined) {
      beginAnswer(reply);
      const { path } = asked(request);
      const surface = surfaces.find(({ base }) => isBelow(base, path));
      (surface?.listener ?? app)(request, response);
      return;
    }
    void answerRead(answer, request, reply).catch((thrown: unknown) => {
      if (!reply.headersSent) beginAnswer(reply);
      refuse(thrown, request, reply, () => reply.destroy());
    });
  };
}

async function answerRead(answer: Answering, request: IncomingMessage, reply: Reply): Promise<void> {
  refuseUnfit(request, reply, () => undefined);
  await answer(request, reply);
}
