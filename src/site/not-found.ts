import type { Request } from "express";
import type { SitePage } from "./answer.ts";

/** Where programs ask: whatever is not there is told to them in JSON, whatever they accept. */
const FOR_PROGRAMS = /^\/+api(?:\/|$)/i;

/**
 * Whether whoever asks for what is not there is a person with a browser: it says that it takes HTML. By the path nothing
 * is told apart but what is below `/api`, so that what is only announced is like anything else that is not there.
 */
export function isForPeople({ method, headers }: Pick<Request, "method" | "headers">, path: string): boolean {
  const isLooking = method === "GET" || method === "HEAD";
  return isLooking && !FOR_PROGRAMS.test(path) && /\btext\/html\b/i.test(headers.accept ?? "");
}

/** What a person gets where there is nothing; it repeats nothing of what was asked. */
export function notFoundPage(requestId: string): SitePage {
  return {
    path: null,
    template: "missing/missing",
    title: "There is no such page",
    description: "There is nothing at this address.",
    data: { requestId },
    status: 404,
  };
}
