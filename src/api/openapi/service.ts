import { z } from "zod";
import { failuresOf, SERVICE } from "./failures.ts";
import { ALWAYS, headersOf } from "./headers.ts";

/** The body of `/healthz`. */
export const healthSchema = z.object({
  ok: z.literal(true).meta({ description: "This process serves." }),
  version: z.string().meta({ description: "What runs." }),
});

/** The body of `/readyz`. */
export const readinessSchema = z.object({
  ok: z.boolean().meta({ description: "Whether this process can accept work." }),
  checks: z
    .object({
      postgres: z.boolean().meta({ description: "PostgreSQL responds." }),
      redis: z.boolean().meta({ description: "Redis responds." }),
      migrations: z.boolean().meta({ description: "The schema is the one that this version needs." }),
      polling: z.boolean().meta({ description: "No house's next poll is late." }),
    })
    .meta({ description: "The result of each check." }),
  problems: z
    .record(z.string(), z.string())
    .optional()
    .meta({ description: "The details of each failed check, by its name." }),
});

const READY = { ok: true, checks: { postgres: true, redis: true, migrations: true, polling: true } };
const NOT_READY = { ok: false, checks: { postgres: false, redis: true, migrations: true, polling: true } };

/** The paths that need no key and return the same to every client. */
export function servicePaths(): Record<string, object> {
  const failures = failuresOf(SERVICE);
  const free = { tags: ["Service"], security: [] };
  return {
    "/healthz": {
      get: {
        ...free,
        operationId: "getHealth",
        summary: "Whether this process serves",
        description: "For liveness probes. It queries neither PostgreSQL nor Redis; `/readyz` does.",
        responses: { "200": responseOf("It does.", "Health", { ok: true, version: "1.0.0" }), ...failures },
      },
    },
    "/readyz": {
      get: {
        ...free,
        operationId: "getReadiness",
        summary: "Whether this process can accept work",
        description: "For load balancers. A 503 names each failed check in `problems`.",
        responses: {
          "200": responseOf("It may.", "Readiness", READY),
          ...failures,
          "503": responseOf("It cannot accept work, or it is stopping.", "Readiness", NOT_READY),
        },
      },
    },
    "/openapi.json": {
      get: {
        ...free,
        operationId: "getDocument",
        summary: "This document",
        description: "OpenAPI 3.1. It changes only with the version. Send its ETag in `If-None-Match` to get a 304.",
        responses: {
          "200": {
            description: "This document.",
            headers: headersOf([...ALWAYS, "ETag", "Access-Control-Allow-Origin"]),
            content: { "application/json": { schema: { type: "object", additionalProperties: true } } },
          },
          "304": {
            description: "Not changed since your copy.",
            headers: headersOf([...ALWAYS, "ETag", "Access-Control-Allow-Origin"]),
          },
          ...failures,
        },
      },
    },
  };
}

function responseOf(description: string, name: string, example: object): object {
  return {
    description,
    headers: headersOf(ALWAYS),
    content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` }, example } },
  };
}
