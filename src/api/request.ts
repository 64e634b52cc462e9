import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Caller } from "../callers/caller-store.ts";
import type { Log } from "../log.ts";
import { ApiError, errorBody, FAILURES } from "./errors.ts";
import { readUrl, type Asked } from "./url.ts";

const LONGEST_URL = 4_096;
const LARGEST_BODY = 16_384;
/** What people and load balancers ask all the time: kept out of the log unless somebody looks closer. */
const QUIET_PATHS = new Set(["/healthz", "/readyz", "/site.css", "/icon.svg"]);

/** What is known of a request beside its bytes. */
export interface Facts {
  requestId: string;
  caller?: Caller;
}

/** A response that carries the facts of its request. */
export type Reply = ServerResponse & { locals: Facts };

type Next = (thrown?: unknown) => void;

/** A new request id. */
export function newRequestId(): string {
  return `req_${randomUUID().replaceAll("-", "")}`;
}

/** Gives a request its id and every answer the headers it has in any case, and logs one line when it is over. */
export function beginRequest(log: Log) {
  return (request: IncomingMessage, response: Reply, next: Next) => {
    const startedAt = performance.now();
    const requestId = newRequestId();
    response.locals = { requestId };
    response.setHeader("X-Request-Id", requestId);
    response.setHeader("Cache-Control", "private, no-cache");
    response.setHeader("Vary", "X-Api-Key, Accept-Encoding");
    response.once("close", () => {
      const { caller } = response.locals;
      const path = asked(request).loggedPath;
      log[QUIET_PATHS.has(path) ? "debug" : "info"](
        {
          request_id: requestId,
          method: request.method,
          path,
          status: response.statusCode,
          ms: Math.round(performance.now() - startedAt),
          ...(caller === undefined ? {} : { key: String(caller.keyId), last4: caller.last4 }),
          ...(response.writableFinished ? {} : { aborted: true }),
        },
        "request",
      );
    });
    next();
  };
}

/** Refuses what no path takes. A key in the URL comes first: the sooner its holder knows, the better. */
export function refuseUnfit(request: IncomingMessage, response: ServerResponse, next: Next): void {
  if (asked(request).carriesKey) throw new ApiError("key_in_url");
  if ((request.url ?? "").length > LONGEST_URL) throw new ApiError("url_too_long");
  if (request.httpVersion === "1.1" && request.headers.host === undefined) {
    throw new ApiError("malformed_request", { message: "expected a Host header, as HTTP/1.1 requires, got none" });
  }
  const bodyBytes = Number(request.headers["content-length"] ?? 0);
  if (bodyBytes > 0 || request.headers["transfer-encoding"] !== undefined) {
    response.setHeader("Connection", "close"); // nothing here reads a body: what remains of it goes with the connection
    if (bodyBytes > LARGEST_BODY) throw new ApiError("body_too_large");
  }
  next();
}

/** Answers with an error of the table; anything else that was thrown is a fault of ours and goes to the log. */
export function answerErrors(site: () => string, log: Log) {
  // four arguments, since it is by their number that Express knows who takes what was thrown
  return (thrown: unknown, _: IncomingMessage, response: Reply, next: Next) => {
    const { requestId } = response.locals;
    if (!(thrown instanceof ApiError)) {
      const stack = thrown instanceof Error ? thrown.stack : String(thrown);
      log.error({ request_id: requestId, stack }, "a request failed by a fault of ours");
    }
    if (response.headersSent) return next(thrown); // too late for words: Express cuts the connection
    const error = thrown instanceof ApiError ? thrown : new ApiError("internal_error");
    const { status } = FAILURES[error.code];
    if (status === 401) response.setHeader("WWW-Authenticate", 'ApiKey realm="api"');
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    sendJson(response, status, errorBody(error, { site: site(), requestId }));
  };
}

/** Sends a JSON text. */
export function sendJson(response: ServerResponse, status: number, json: string): void {
  sendBytes(response, status, Buffer.from(json));
}

/** Sends the bytes of a JSON text. */
export function sendBytes(response: ServerResponse, status: number, body: Buffer): void {
  response.statusCode = status;
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", body.length);
  response.end(body);
}

/** What the URL of a request says. */
export function asked({ url }: IncomingMessage): Asked {
  if (url === undefined) throw new Error("expected a request to have a URL");
  return readUrl(url);
}
