import type { Request } from "express";
import type { SitePage } from "./send-page.ts";

/** Below this path unknown paths get JSON, whatever the Accept header. */
const FOR_PROGRAMS = /^\/+api(?:\/|$)/i;

/**
 * Whether a request for an unknown path comes from a browser: its Accept header includes HTML. Only `/api` is
 * distinguished by path, so that an unreleased path responds like any other unknown one.
 */
export function isForPeople({ method, headers }: Pick<Request, "method" | "headers">, path: string): boolean {
  const isLooking = method === "GET" || method === "HEAD";
  return isLooking && !FOR_PROGRAMS.test(path) && /\btext\/html\b/i.test(headers.accept ?? "");
}

/** The page for unknown paths; it repeats nothing from the request. */
export function notFoundPage(requestId: string): SitePage {
  return {
    path: null,
    template: "missing/missing",
    title: "Page not found",
    description: "This address does not exist.",
    data: { requestId },
    status: 404,
  };
}
