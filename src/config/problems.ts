import type { z } from "zod";
import type { Problem } from "../errors.ts";

/** Converts a problem of zod, with its path as people write it. */
export function toProblem(issue: z.core.$ZodIssue): Problem {
  const message = issue.code === "invalid_key" ? issue.issues[0]?.message : issue.message;
  return { path: pathText(issue.path) || "the file", message: message ?? issue.message };
}

/** Formats a path such as `houses[1].tables[0]`. */
export function pathText(path: PropertyKey[]): string {
  return path
    .map((part, at) => (typeof part === "number" ? `[${part}]` : `${at > 0 ? "." : ""}${String(part)}`))
    .join("");
}
