import type { Request } from "express";
import type { Asker } from "../accounts/identity.ts";
import type { PageReply } from "./shown.ts";

/** Who asks, as the library that knows people wants to know it. */
export function askerOf(request: Request): Asker {
  const { cookie = "" } = request.headers;
  return { cookie, userAgent: userAgentOf(request), address: addressOf(request) };
}

/** The address from which a request comes. */
export function addressOf(request: Request): string {
  return request.ip ?? "unknown";
}

/** What a browser calls itself, cut to what is kept of it. */
export function userAgentOf(request: Request): string {
  return (request.headers["user-agent"] ?? "").slice(0, 300);
}

/** Hands on the cookies that the library gave. */
export function passCookies(reply: PageReply, cookies: readonly string[]): void {
  for (const cookie of cookies) reply.append("Set-Cookie", cookie);
}
