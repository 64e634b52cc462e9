import { z } from "zod";
import { accuracyDescription } from "./accuracy.ts";
import type { Description } from "./description.ts";
import { ACCOUNT, allFailures, failuresOf, TABLES } from "./failures.ts";
import { at } from "./fields.ts";
import { forecastsDescription } from "./forecasts.ts";
import { gamesDescription } from "./games.ts";
import { allHeaders, ALWAYS, headersOf, LIMITS } from "./headers.ts";
import { mayGrow, plainSchema } from "./json-schema.ts";
import { parametersOf } from "./parameters.ts";
import { readingsDescription } from "./readings.ts";
import { roundsDescription } from "./rounds.ts";
import { healthSchema, readinessSchema, servicePaths } from "./service.ts";
import { usageDescription } from "./usage.ts";

/** Every path that needs a key, in reading order. */
export const DESCRIPTIONS: readonly Description[] = [
  gamesDescription,
  roundsDescription,
  forecastsDescription,
  readingsDescription,
  accuracyDescription,
  usageDescription,
];

const ABOUT = `Live rounds of crash games, forecasts that are fixed before their round can be known, and how accurate they have been.

Send your key in the header \`X-Api-Key\`. Paths take GET and HEAD; OPTIONS lists them, and any other method is 405 \`method_not_allowed\`. An unknown path is 404 \`not_found\`. Fields may be added to responses at any time: ignore unknown ones.

Only a 200 counts against the quota. Information only; no outcome is guaranteed; for adults of 18 or older.`;

/**
 * Makes the OpenAPI 3.1 document of the API: parameters from the schemas that parse them, errors from their table,
 * responses from schemas that the tests validate every response with.
 * @param site the public address without a trailing slash
 */
export function openApiDocument({ site, version }: { site: string; version: string }) {
  return {
    openapi: "3.1.0",
    info: {
      title: "Roundhouse",
      version,
      summary: "Verified rounds, pre-registered forecasts, and their measured accuracy",
      description: ABOUT,
      contact: { name: "The operator of this instance", url: `${site}/docs` },
      license: { name: "All rights reserved", identifier: "LicenseRef-Roundhouse" },
    },
    servers: [{ url: site, description: "This instance" }],
    tags: [
      { name: "Tables", description: "The tables of your plan: rounds, forecasts, readings and accuracy" },
      { name: "Account", description: "Your usage" },
      { name: "Service", description: "The service itself; no key needed" },
    ],
    security: [{ key: [] }],
    paths: {
      ...Object.fromEntries(
        DESCRIPTIONS.map((description) => [description.operation.path, { get: operationOf(description) }]),
      ),
      ...servicePaths(),
    },
    components: {
      securitySchemes: {
        key: {
          type: "apiKey",
          in: "header",
          name: "X-Api-Key",
          description: "`rh_live_` and 38 characters. Never in a URL: that is refused, and the key should be replaced.",
        },
      },
      headers: allHeaders(),
      responses: allFailures(site),
      schemas: schemas(),
    },
  };
}

function operationOf(description: Description): object {
  const { name, operation, summary, isCounted, example } = description;
  const kind = isCounted ? TABLES : ACCOUNT;
  const known = isCounted ? (["ETag", "X-Data-Age", "X-Log-Checkpoint"] as const) : [];
  return {
    operationId: `get${name}`,
    tags: [kind.name],
    summary,
    description: description.description,
    ...(operation.deprecated === undefined ? {} : { deprecated: true }),
    parameters: parametersOf(description),
    responses: {
      "200": {
        description: isCounted ? "The response; it counts as one call." : "The response; it is free.",
        headers: headersOf([...ALWAYS, ...known, ...LIMITS]),
        content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` }, example } },
      },
      ...(isCounted
        ? {
            "304": {
              description: "Not changed since your copy; free. Once the quota is used up, the response is a 429.",
              headers: headersOf([...ALWAYS, ...known, ...LIMITS]),
            },
          }
        : {}),
      ...failuresOf(kind),
    },
  };
}

/** The schemas as JSON Schema, with references between them. Unlisted fields may be added at any time. */
function schemas(): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  const add = (id: string, schema: z.ZodType) => void registry.add(schema, { id });
  add("Timestamp", at);
  add("Health", healthSchema);
  add("Readiness", readinessSchema);
  for (const { name, response } of DESCRIPTIONS) add(name, response);
  const uri = (id: string) => `#/components/schemas/${id}`;
  const made = z.toJSONSchema(registry, { io: "output", uri, override: mayGrow });
  return Object.fromEntries(Object.entries(made.schemas).map(([id, schema]) => [id, plainSchema(schema)]));
}
