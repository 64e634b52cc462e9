import { randomUUID } from "node:crypto";
import type { NextFunction, Request, Response } from "express";
import type { Caller } from "../callers/caller-store.ts";
import type { Log } from "../log.ts";
import { ApiError, errorBody, FAILURES } from "./errors.ts";

const LONGEST_URL = 4_096;
const LARGEST_BODY = 16_384;
const LONGEST_LOGGED_PATH = 200;
const KEY_NAME = /^(?:x[-_])?api[-_]?key$/i;
const KEY_TEXT = /rh_live_[0-9A-Za-z]{4,}/;
/** What people and load balancers ask all the time: kept out of the log unless somebody looks closer. */
const QUIET_PATHS = new Set(["/healthz", "/readyz", "/site.css", "/icon.svg"]);

/** What is known of a request beside its bytes. */
export interface Facts {
  requestId: string;
  caller?: Caller;
}

/** A response that carries the facts of its request. */
export type Reply = Response<unknown, Facts & Record<string, unknown>>;

/** A new request id. */
export function newRequestId(): string {
  return `req_${randomUUID().replaceAll("-", "")}`;
}

/** Gives a request its id and every answer the headers it has in any case, and logs one line when it is over. */
export function beginRequest(log: Log) {
  return (request: Request, response: Reply, next: NextFunction) => {
    const startedAt = performance.now();
    const requestId = newRequestId();
    response.locals.requestId = requestId;
    response.setHeader("X-Request-Id", requestId);
    response.setHeader("Cache-Control", "private, no-cache");
    response.setHeader("Vary", "X-Api-Key, Accept-Encoding");
    response.once("close", () => {
      const { caller } = response.locals;
      const path = loggedPath(request.url);
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
export function refuseUnfit(request: Request, response: Reply, next: NextFunction): void {
  if (carriesKey(request.url)) throw new ApiError("key_in_url");
  if (request.url.length > LONGEST_URL) throw new ApiError("url_too_long");
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
  return (thrown: unknown, _: Request, response: Reply, next: NextFunction) => {
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
export function sendJson(response: Response, status: number, json: string): void {
  const body = Buffer.from(json);
  response.statusCode = status;
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", body.length);
  response.end(body);
}

/** The parameters after the question mark. */
export function queryOf(url: string): URLSearchParams {
  const mark = url.indexOf("?");
  return new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1));
}

/** Whether a URL holds something that is, or is named as, a key. */
function carriesKey(url: string): boolean {
  return [...queryOf(url).keys()].some((name) => KEY_NAME.test(name)) || KEY_TEXT.test(decoded(url));
}

/** The path without its parameters, and without a key where one is part of it. */
function loggedPath(url: string): string {
  const [path = ""] = url.split("?", 1);
  return KEY_TEXT.test(decoded(path)) ? "(a path with a key in it)" : path.slice(0, LONGEST_LOGGED_PATH);
}

/** Like decodeURIComponent for ASCII, and never throws. */
function decoded(url: string): string {
  return url.replaceAll(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
