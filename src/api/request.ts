import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Caller } from "../callers/caller-store.ts";
import type { Log } from "../log.ts";
import { ClientGoneError } from "./client-gone.ts";
import { ApiError, errorBody, FAILURES, type ErrorCode } from "./errors.ts";
import { limitHeaders, type Limits } from "./limit-headers.ts";
import { EVERY_ANSWER, setPairs } from "./protection.ts";
import { readUrl, type Asked } from "./url.ts";

const LONGEST_URL = 4_096;
const LARGEST_BODY = 16_384;
/** What people and load balancers ask all the time: kept out of the log unless somebody looks closer. */
const QUIET_PATHS = new Set(["/healthz", "/readyz", "/metrics", "/frame.css", "/icon.svg"]);

/** What is known of a request beside its bytes. */
export interface Facts {
  requestId: string;
  caller?: Caller;
  /** Once the burst was asked: shown with whatever the answer is. */
  limits?: Limits;
}

/** A response that carries the facts of its request. */
export type Reply = ServerResponse & { locals: Facts };

type Next = (thrown?: unknown) => void;

/** A new request id. */
export function newRequestId(): string {
  return `req_${randomUUID().replaceAll("-", "")}`;
}

/** Is told of a request that is over: its path, its status, and the milliseconds it took. */
export type Note = (path: string, status: number, ms: number) => void;

/** Gives a request its id and its answer the headers that every answer has. */
export function beginRequest(log: Log, note?: Note) {
  const watch = watchRequest(log, note);
  return (request: IncomingMessage, response: Reply, next: Next) => {
    watch(request, response);
    beginAnswer(response);
    next();
  };
}

/** Sets what every answer has, for those whose headers are not written all at once. */
export function beginAnswer(response: Reply): void {
  response.setHeader("X-Request-Id", response.locals.requestId);
  setPairs(response, EVERY_ANSWER);
}

/**
 * Gives a request its id; when it is over, logs one line and tells `note`. The bytes of the line are those that went out
 * on the connection meanwhile, headers and all.
 */
export function watchRequest(log: Log, note: Note = () => undefined) {
  return (request: IncomingMessage, response: Reply) => {
    const startedAt = performance.now();
    const { socket } = request;
    const writtenBefore = socket.bytesWritten;
    const requestId = newRequestId();
    response.locals = { requestId };
    response.once("close", () => {
      const ms = performance.now() - startedAt;
      const { path, loggedPath } = asked(request);
      note(path, response.statusCode, ms);
      const level = QUIET_PATHS.has(loggedPath) ? "debug" : "info";
      if (!log.isLevelEnabled(level)) return;
      const { caller } = response.locals;
      log[level](
        {
          request_id: requestId,
          method: request.method,
          path: loggedPath,
          status: response.statusCode,
          ms: Math.round(ms),
          bytes: socket.bytesWritten - writtenBefore,
          ...(caller === undefined
            ? {}
            : { account: String(caller.accountId), key: String(caller.keyId), last4: caller.last4 }),
          ...(response.writableFinished ? {} : { aborted: true }),
        },
        "request",
      );
    });
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
export function answerErrors(site: () => string, log: Log, refused: (code: ErrorCode) => void = () => undefined) {
  // four arguments, since it is by their number that Express knows who takes what was thrown
  return (thrown: unknown, _: IncomingMessage, response: Reply, next: Next) => {
    if (thrown instanceof ClientGoneError) return;
    const { requestId, limits } = response.locals;
    if (!(thrown instanceof ApiError)) {
      const stack = thrown instanceof Error ? thrown.stack : String(thrown);
      log.error({ request_id: requestId, stack }, "a request failed by a fault of ours");
    }
    if (response.headersSent) return next(thrown); // too late for words: Express cuts the connection
    const error = thrown instanceof ApiError ? thrown : new ApiError("internal_error");
    const { status } = FAILURES[error.code];
    refused(error.code);
    if (status === 401) response.setHeader("WWW-Authenticate", 'ApiKey realm="api"');
    if (limits !== undefined) setPairs(response, limitHeaders(limits));
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    sendJson(response, status, errorBody(error, { site: site(), requestId }));
  };
}

/** What every JSON text is sent as. */
export const JSON_TYPE = "application/json; charset=utf-8";

/** Sends a JSON text. */
export function sendJson(response: ServerResponse, status: number, json: string): void {
  const body = Buffer.from(json);
  response.statusCode = status;
  response.setHeader("Content-Type", JSON_TYPE);
  response.setHeader("Content-Length", body.length);
  response.end(body);
}

/** What the URL of a request says. */
export function asked({ url }: IncomingMessage): Asked {
  if (url === undefined) throw new Error("expected a request to have a URL");
  return readUrl(url);
}
