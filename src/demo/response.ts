import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";

/** One answer of the demo house, before it meets a request's method and conditions. */
export interface Answer {
  status: number;
  contentType: string;
  body: string;
  headers?: Record<string, string>;
}

/** A JSON answer. */
export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  return { status, contentType: "application/json; charset=utf-8", body: JSON.stringify(value), headers };
}

/**
 * Sends an answer. To a GET or HEAD a 200 carries a strong ETag, and is a 304 without a body where If-None-Match names
 * it; what a POST asked for is in its body, so that its answers carry none.
 */
export function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  response.setHeader("cache-control", "no-cache");
  if (answer.status === 200 && request.method !== "POST") {
    const etag = `"${createHash("sha256").update(answer.body).digest("base64url")}"`;
    response.setHeader("etag", etag);
    if (names(request.headers["if-none-match"], etag)) {
      response.writeHead(304).end();
      return;
    }
  }
  response.setHeader("content-type", answer.contentType);
  response.setHeader("content-length", Buffer.byteLength(answer.body));
  response.writeHead(answer.status).end(request.method === "HEAD" ? undefined : answer.body);
}

function names(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(",").some((tag) => ["*", etag].includes(tag.trim().replace(/^W\//, "")));
}
