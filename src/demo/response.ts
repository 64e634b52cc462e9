import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";

/** One response of the demo house, before the request's method and conditions are applied. */
export interface DemoResponse {
  status: number;
  contentType: string;
  body: string;
  headers?: Record<string, string>;
}

/** A JSON response. */
export function json(value: unknown, status = 200, headers: Record<string, string> = {}): DemoResponse {
  return { status, contentType: "application/json; charset=utf-8", body: JSON.stringify(value), headers };
}

/**
 * Sends a response. To a GET or HEAD a 200 has a strong ETag, and is a 304 without a body if If-None-Match names
 * it; the parameters of a POST are in its body, so its responses have none.
 */
export function send(request: IncomingMessage, response: ServerResponse, content: DemoResponse): void {
  for (const [name, value] of Object.entries(content.headers ?? {})) response.setHeader(name, value);
  response.setHeader("cache-control", "no-cache");
  if (content.status === 200 && request.method !== "POST") {
    const etag = `"${createHash("sha256").update(content.body).digest("base64url")}"`;
    response.setHeader("etag", etag);
    if (names(request.headers["if-none-match"], etag)) {
      response.writeHead(304).end();
      return;
    }
  }
  response.setHeader("content-type", content.contentType);
  response.setHeader("content-length", Buffer.byteLength(content.body));
  response.writeHead(content.status).end(request.method === "HEAD" ? undefined : content.body);
}

function names(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(",").some((tag) => ["*", etag].includes(tag.trim().replace(/^W\//, "")));
}
