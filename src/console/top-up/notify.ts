import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Settings } from "../../config/environment.ts";
import type { Sql } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { acceptNotice, type NoticeResponse } from "../../topups/binance-pay/notice.ts";
import { binancePayOf } from "../../config/binance-pay.ts";

const PATH = "/topups/binance-pay/notify";
/** A notification is about 1 kB. */
const LARGEST_NOTICE = 64 << 10;

/**
 * Receives notifications of payment apps: `POST /topups/binance-pay/notify`. The body is read as raw bytes, because the
 * signature covers them. It only marks the order for a query; a worker queries it. Responds 404 to everything if no
 * payment app is configured.
 */
export function notifySurface({ sql, settings, log }: { sql: Sql; settings: Settings; log: Log }): {
  base: "/topups";
  listener: () => RequestListener;
} {
  const isConfigured = binancePayOf(settings) !== null;

  async function respond(request: IncomingMessage): Promise<NoticeResponse> {
    const [path] = (request.url ?? "").split("?");
    if (!isConfigured || path !== PATH) return fail(404, "there is nothing under this address");
    if (request.method !== "POST") return fail(405, "expected POST");
    const body = await readBody(request);
    if (body === null) return fail(413, "expected at most 64 KiB");
    return acceptNotice(sql, log, { headers: request.headers, body });
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let result: NoticeResponse;
    try {
      result = await respond(request);
    } catch (error) {
      if (request.destroyed && !request.complete) return; // the client disconnected
      log.error(
        { reason: reasonOf(error) },
        "a notification of Binance Pay was not stored; the app sends it again, or a worker queries its order",
      );
      result = fail(503, "try again later");
    }
    const headers = {
      "Content-Type": "application/json",
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
    };
    // an unread rest of the body would be parsed as the next request
    response.writeHead(result.status, request.complete ? headers : { ...headers, Connection: "close" });
    response.end(JSON.stringify(result.body));
  }

  return { base: "/topups", listener: () => (request, response) => void serve(request, response) };
}

async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LARGEST_NOTICE) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function fail(status: number, returnMessage: string): NoticeResponse {
  return { status, body: { returnCode: "FAIL", returnMessage } };
}
