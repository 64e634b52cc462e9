import type { RequestHandler } from "express";
import type { Queues } from "../../queue/inspect.ts";
import type { OpsMount } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";

const PATH = "/queues/board";

/**
 * A policy for bull-board alone: it writes styles into its page, which no other page of ours may. Scripts are its own
 * files and nothing else, and what its page would load from elsewhere (a font) is refused.
 */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** bull-board, for looking deeper: everybody who is signed in sees it, and nobody changes anything there. */
export const bullMount: OpsMount = {
  path: PATH,
  open({ queues }) {
    let opened: Promise<RequestHandler> | undefined;
    return async (request, response, next) => {
      if (queues === null)
        throw new PageError(503, "this process was given no Redis (REDIS_URL), so it knows no queues");
      response.setHeader("Content-Security-Policy", CONTENT_POLICY);
      // it is large, and most processes are never asked for it
      opened ??= openBoard(queues);
      const board = await opened;
      await board(request, response, next);
    };
  },
};

async function openBoard(queues: Queues): Promise<RequestHandler> {
  const [{ createBullBoard }, { BullMQAdapter }, { ExpressAdapter }] = await Promise.all([
    import("@bull-board/api"),
    import("@bull-board/api/bullMQAdapter"),
    import("@bull-board/express"),
  ]);
  const serverAdapter = new ExpressAdapter();
  serverAdapter.setBasePath(`/ops${PATH}`);
  createBullBoard({
    queues: queues.jobs.map(
      ({ name }) => new BullMQAdapter(queues.get(name), { readOnlyMode: true, allowRetries: false }),
    ),
    serverAdapter,
    options: { uiConfig: { boardTitle: "Roundhouse" } },
  });
  return serverAdapter.getRouter() as RequestHandler;
}
