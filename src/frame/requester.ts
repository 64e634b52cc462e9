import type { Request } from "express";
import type { Requester } from "../accounts/identity/identity.ts";
import type { PageReply } from "./view.ts";

/** Returns the requester, in the form that the authentication library needs. */
export function requesterOf(request: Request): Requester {
  const { cookie = "" } = request.headers;
  return { cookie, userAgent: userAgentOf(request), address: addressOf(request) };
}

/** The client address of a request. */
export function addressOf(request: Request): string {
  return request.ip ?? "unknown";
}

/** The User-Agent of a request, cut to the length that is stored. */
export function userAgentOf(request: Request): string {
  return (request.headers["user-agent"] ?? "").slice(0, 300);
}

/** Whether a script of a page sent the request, not its reader: it takes no message, and is no use of a session. */
export function isRefresh(request: Request): boolean {
  return request.headers["x-refresh"] !== undefined;
}

/** Forwards the cookies that the library set. */
export function passCookies(reply: PageReply, cookies: readonly string[]): void {
  for (const cookie of cookies) reply.append("Set-Cookie", cookie);
}

/** Returns a cookie of a request; empty if there is none. */
export function cookieOf(request: Request, name: string): string {
  for (const part of (request.headers.cookie ?? "").split(";")) {
    const [key = "", ...value] = part.trim().split("=");
    if (key === name) return value.join("=");
  }
  return "";
}
