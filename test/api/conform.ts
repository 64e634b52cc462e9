import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { z } from "zod";
import { openApiDocument } from "../../src/api/openapi/document.ts";

/** On any response of any HTTP server, or set by helmet: these need no description. */
const COMMON = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "content-security-policy",
  "content-type",
  "cross-origin-opener-policy",
  "cross-origin-resource-policy",
  "date",
  "keep-alive",
  "origin-agent-cluster",
  "referrer-policy",
  "strict-transport-security",
  "transfer-encoding",
  "x-content-type-options",
  "x-dns-prefetch-control",
  "x-download-options",
  "x-frame-options",
  "x-permitted-cross-domain-policies",
  "x-xss-protection",
]);

const reference = z.object({ $ref: z.string() });
const described = z.object({
  headers: z.record(z.string(), reference).default({}),
  content: z.object({ "application/json": z.object({ schema: z.record(z.string(), z.unknown()) }) }).optional(),
});
const shape = z.object({
  paths: z.record(z.string(), z.object({ get: z.object({ responses: z.record(z.string(), z.unknown()) }) })),
  components: z.object({
    headers: z.record(z.string(), z.object({ required: z.boolean().default(false) })),
    responses: z.record(z.string(), described),
    schemas: z.record(z.string(), z.unknown()),
  }),
});

const raw = openApiDocument({ site: "http://127.0.0.1", version: "1.2.3" });
const document = shape.parse(raw);
const { components } = document;
const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: true });
formats.default(ajv);
for (const [name, schema] of Object.entries(components.schemas)) {
  ajv.addSchema(Object(exact(schema)), `#/components/schemas/${name}`);
}
const validators = new Map<string, ValidateFunction>();

/** The paths of the document. */
export const documentedPaths: readonly string[] = Object.keys(document.paths);

/**
 * Checks a response against the document; `response` is read to its end.
 * @throws Error that lists everything that departs from it.
 */
export async function conform(method: string, path: string, response: Response): Promise<void> {
  const { status, headers } = response;
  const found = departures({ method, path, status, headers, body: await response.text() });
  if (found.length > 0) throw new Error(`${method} ${path} departs from the document: ${found.join("; ")}`);
}

/** A response as a test got it. */
interface Got {
  method: string;
  path: string;
  status: number;
  headers: Headers;
  body: string;
}

/**
 * All differences between a response and the document; empty if it is as documented.
 * Stricter than the document in one thing: fields that it does not list are not allowed.
 */
function departures({ method, path, status, headers, body }: Got): string[] {
  const [name = ""] = path.split(/[?#]/, 1);
  const documented = document.paths[name]?.get.responses;
  if (documented === undefined || !["GET", "HEAD"].includes(method)) {
    return status < 400 || headers.get("content-type")?.startsWith("text/") === true ? [] : departuresOfError(body);
  }
  const found = documented[String(status)];
  if (found === undefined) return [`${status} is not documented for ${name}`];
  const own = resolve(found);
  return [
    ...headerDepartures(own.headers, headers),
    ...(method === "HEAD" ? [] : bodyDepartures(`${name} ${status}`, own, body)),
  ];
}

function resolve(found: unknown): z.infer<typeof described> {
  const { data } = reference.safeParse(found);
  if (data === undefined) return described.parse(found);
  const named = components.responses[lastPart(data.$ref)];
  if (named === undefined) throw new Error(`expected the document to have ${data.$ref}`);
  return named;
}

function headerDepartures(documented: Record<string, { $ref: string }>, headers: Headers): string[] {
  const names = new Set(Object.keys(documented).map((name) => name.toLowerCase()));
  const unknown = [...headers.keys()].filter((name) => !COMMON.has(name) && !names.has(name));
  const missing = Object.entries(documented)
    .filter(([, { $ref }]) => components.headers[lastPart($ref)]?.required === true)
    .filter(([name]) => !headers.has(name));
  return [
    ...unknown.map((name) => `the header ${name} is not documented`),
    ...missing.map(([name]) => `the header ${name} is missing`),
  ];
}

function bodyDepartures(name: string, { content }: z.infer<typeof described>, body: string): string[] {
  if (content === undefined) return body === "" ? [] : ["there is a body, and none is documented"];
  let validate = validators.get(name);
  if (validate === undefined) {
    validate = ajv.compile(Object(exact(content["application/json"].schema)));
    validators.set(name, validate);
  }
  return validate(JSON.parse(body)) ? [] : (validate.errors ?? []).map((error) => ajv.errorsText([error]));
}

/** The response to a path or a method that the document does not have. */
const anyError = ajv.compile({
  type: "object",
  required: ["ok", "error", "request_id"],
  additionalProperties: false,
  properties: {
    ok: { const: false },
    error: {
      type: "object",
      required: ["code", "message", "docs_url"],
      additionalProperties: false,
      properties: {
        code: { type: "string" },
        message: { type: "string" },
        docs_url: { type: "string" },
        details: { type: "object" },
      },
    },
    request_id: { type: "string", pattern: "^req_[0-9a-f]{32}$" },
  },
});

function departuresOfError(body: string): string[] {
  if (body === "") return []; // of HEAD
  return anyError(JSON.parse(body)) ? [] : (anyError.errors ?? []).map((error) => ajv.errorsText([error]));
}

/** The schema with no other fields than those it lists. */
function exact(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(exact);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, exact(value)]));
  return "properties" in copy && !("additionalProperties" in copy) ? { ...copy, additionalProperties: false } : copy;
}

function lastPart(way: string): string {
  return way.slice(way.lastIndexOf("/") + 1);
}
