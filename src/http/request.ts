import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "../log.ts";
import type { Call } from "./call.ts";
import { ClientGoneError } from "./client-gone.ts";
import { ApiError, errorBody, FAILURES, type ErrorCode } from "./errors.ts";
import { limitHeaders } from "./limit-headers.ts";
import { COMMON_HEADERS, setPairs } from "./protection.ts";
import { readUrl, type RequestUrl } from "./url.ts";

const LONGEST_URL = 4_096;
const LARGEST_BODY = 16_384;
/** Paths that browsers and load balancers request all the time: logged at debug level only. */
const QUIET_PATHS = new Set(["/healthz", "/readyz", "/metrics", "/frame.css", "/icon.svg"]);

/** The facts about a request in `response.locals`: the part of Call that exists for any path. */
export type Facts = Pick<Call, "requestId" | "begunAt"> & Partial<Pick<Call, "caller" | "limits" | "refusal">>;

/** A response with the facts of its request. */
export type Reply = ServerResponse & { locals: Facts };

type Next = (thrown?: unknown) => void;

/** The ids of one process share a random part: an id by randomUUID took 2.5 µs, 3 % of a 304. */
const ID_PREFIX = `req_${randomBytes(8).toString("hex")}`;
let requests = 0;

/** Returns a new request id. */
export function newRequestId(): string {
  return ID_PREFIX + (++requests).toString(16).padStart(16, "0");
}

/** Called when a request is over: its path, status, duration in milliseconds, and its facts if a response was sent. */
export type Note = (path: string, status: number, ms: number, facts: Facts | null) => void;

/** Below LIMITS.stalledMs, so that the caller gets an error and not a closed connection. */
const RESPOND_WITHIN_MS = 25_000;
const RETRY_AFTER_SECONDS = 5;

/**
 * Gives a request its id and its deadline: a response that has not begun by then is a 503. When the request is over,
 * logs one line and calls `note`. `bytes` in the log includes the headers.
 */
export function beginRequest(log: Log, note: Note = () => undefined, respondWithinMs = RESPOND_WITHIN_MS) {
  return (request: IncomingMessage, response: Reply, next: Next): void => {
    const { socket } = request;
    const writtenBefore = socket.bytesWritten;
    const facts: Facts = { requestId: newRequestId(), begunAt: performance.now() };
    response.locals = facts;
    const deadline = setTimeout(() => {
      if (response.headersSent) return; // LIMITS.stalledMs limits the rest
      log.warn({ request_id: facts.requestId, path: urlOf(request).loggedPath }, "no response within the deadline");
      // the handler may still run and must not get the connection's next request
      const headers = { "Retry-After": `${RETRY_AFTER_SECONDS}`, Connection: "close" };
      next(new ApiError("temporarily_unavailable", { headers }));
    }, respondWithinMs);
    response.once("close", () => {
      clearTimeout(deadline);
      const ms = performance.now() - facts.begunAt;
      const { path, loggedPath } = urlOf(request);
      note(path, response.statusCode, ms, response.headersSent ? facts : null);
      const level = QUIET_PATHS.has(loggedPath) ? "debug" : "info";
      if (!log.isLevelEnabled(level)) return;
      const { caller } = facts;
      log[level](
        {
          request_id: facts.requestId,
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
    next();
  };
}

/** Sets the common headers, for responses whose headers are set one by one. */
export function setCommonHeaders(_: IncomingMessage, response: Reply, next: Next): void {
  response.setHeader("X-Request-Id", response.locals.requestId);
  setPairs(response, COMMON_HEADERS);
  next();
}

/**
 * Sends a complete response with `pairs` and the common headers in one call: setting them one by one took 5 µs more, 6
 * % of a 304.
 */
export function sendWhole(response: Reply, status: number, pairs: readonly string[], body?: Buffer): void {
  const headers = ["X-Request-Id", response.locals.requestId, ...COMMON_HEADERS, ...pairs];
  response.writeHead(status, headers).end(body);
}

/**
 * Refuses requests that no path accepts. A key in the URL is refused first: its holder must know as soon as possible.
 */
export function refuseUnfit(request: IncomingMessage, response: ServerResponse, next: Next): void {
  if (urlOf(request).carriesKey) throw new ApiError("key_in_url");
  if ((request.url ?? "").length > LONGEST_URL) throw new ApiError("url_too_long");
  if (request.httpVersion === "1.1" && request.headers.host === undefined) {
    throw new ApiError("malformed_request", { message: "expected a Host header, as HTTP/1.1 requires, got none" });
  }
  const bodyBytes = Number(request.headers["content-length"] ?? 0);
  if (bodyBytes > 0 || request.headers["transfer-encoding"] !== undefined) {
    response.setHeader("Connection", "close"); // nothing here reads a body; the rest of it is dropped with the connection
    if (bodyBytes > LARGEST_BODY) throw new ApiError("body_too_large");
  }
  next();
}

/**
 * Waits for the end of a request, so that an aborted one costs its caller nothing.
 * @throws ApiError body_too_large above 16 KB
 * @throws ClientGoneError if the client disconnects before the end, or sends a malformed request
 */
export function receiveWhole(request: IncomingMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new ClientGoneError("the client disconnected before its request was complete"));
    if (request.destroyed) return gone();
    if (request.complete) return resolve();
    let bytes = 0;
    request.on("data", (part: Buffer) => {
      bytes += part.length;
      if (bytes > LARGEST_BODY) reject(new ApiError("body_too_large"));
    });
    request.once("end", resolve);
    request.once("error", gone);
    request.once("close", gone);
  });
}

/** Responds with an error of the table; any other exception is a bug and is logged. */
export function sendErrors(site: () => string, log: Log, refused: (code: ErrorCode) => void = () => undefined) {
  // Express recognizes an error handler by its four parameters
  return (caught: unknown, request: IncomingMessage, response: Reply, next: Next) => {
    if (caught instanceof ClientGoneError) return;
    const thrown = isUndecodable(caught) ? new ApiError("not_found") : caught;
    const { requestId, limits } = response.locals;
    if (!(thrown instanceof ApiError)) {
      const stack = thrown instanceof Error ? thrown.stack : String(thrown);
      log.error({ request_id: requestId, stack }, "a request failed because of a bug");
    }
    if (response.headersSent) return next(thrown); // the headers are sent, so Express closes the connection
    const error = thrown instanceof ApiError ? thrown : new ApiError("internal_error");
    const { status } = FAILURES[error.code];
    refused(error.code);
    response.locals.refusal = error.code;
    if (!response.hasHeader("X-Request-Id")) setCommonHeaders(request, response, () => undefined);
    if (status === 401) response.setHeader("WWW-Authenticate", 'ApiKey realm="api"');
    if (limits !== undefined) setPairs(response, limitHeaders(limits));
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    sendJson(response, status, errorBody(error, { site: site(), requestId }));
  };
}

/** Whether the router could not decode a part of the path; it adds a status, which a URIError of ours does not have. */
function isUndecodable(thrown: unknown): boolean {
  return thrown instanceof URIError && "status" in thrown;
}

/** The content type of all JSON. */
export const JSON_TYPE = "application/json; charset=utf-8";

/** Sends JSON. */
export function sendJson(response: ServerResponse, status: number, json: string): void {
  const body = Buffer.from(json);
  response.statusCode = status;
  response.setHeader("Content-Type", JSON_TYPE);
  response.setHeader("Content-Length", body.length);
  response.end(body);
}

/** The parsed URL of a request. */
export function urlOf({ url }: Pick<IncomingMessage, "url">): RequestUrl {
  if (url === undefined) throw new Error("expected a request to have a URL");
  return readUrl(url);
}
