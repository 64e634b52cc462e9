import { STATUS_CODES } from "node:http";
import { z } from "zod";
import { ApiError, errorBody, FAILURES, type ErrorCode } from "../../http/errors.ts";
import { mayGrow, plainSchema } from "./json-schema.ts";
import { ALWAYS, headersOf, LIMITS, type HeaderName } from "./headers.ts";

const EXAMPLE_ID = "req_0f8fad5bd9cb469fa16570867728950e";
/** Errors of paths and methods that the document does not contain. */
const ELSEWHERE: readonly ErrorCode[] = ["not_found", "method_not_allowed"];
/** Errors about tables that a filter names. */
const OF_TABLES: readonly ErrorCode[] = ["table_not_found", "table_not_in_plan"];
/** Errors about a used-up quota. */
const OF_QUOTAS: readonly ErrorCode[] = ["day_quota_exceeded", "month_quota_exceeded", "service_ceiling_reached"];
/** Errors about parameters, which only paths with a key have. */
const OF_PARAMETERS: readonly ErrorCode[] = ["invalid_parameter", "unknown_parameter"];
/** Statuses of key, plan and rate, which only paths with a key have. */
const STATUSES_OF_KEYS: readonly number[] = [401, 402, 403, 429];

/** The errors of a path follow from its kind; the name is its tag's. */
export interface Kind {
  name: "Tables" | "Account" | "Service";
  needsKey: boolean;
  /** It counts against the quota, and returns tables of the plan. */
  isCounted: boolean;
}

/** Paths that return tables of the plan and count against the quota. */
export const TABLES: Kind = { name: "Tables", needsKey: true, isCounted: true };
/** Paths about the account, free of charge. */
export const ACCOUNT: Kind = { name: "Account", needsKey: true, isCounted: false };
/** Paths that return the same to every client. */
export const SERVICE: Kind = { name: "Service", needsKey: false, isCounted: false };

const CODES = Object.keys(FAILURES).filter((code): code is ErrorCode => Object.hasOwn(FAILURES, code));

/** The error responses of a kind of path, by status: references to {@link allFailures}. */
export function failuresOf(kind: Kind): Record<string, object> {
  return Object.fromEntries(
    statusesOf(kind).map(([status]) => [
      String(status),
      { $ref: `#/components/responses/${responseName(kind, status)}` },
    ]),
  );
}

/** Every error response, for the components of the document: its codes, and an example of each. */
export function allFailures(site: string): Record<string, object> {
  return Object.fromEntries(
    [TABLES, ACCOUNT, SERVICE].flatMap((kind) =>
      statusesOf(kind).map(([status, codes]) => {
        const response = {
          description: `${STATUS_CODES[status] ?? "Error"}: ${codes.map((code) => `\`${code}\``).join(", ")}`,
          headers: headersOf(headersWith(status, kind)),
          content: {
            "application/json": {
              schema: errorSchema(codes),
              examples: Object.fromEntries(codes.map((code) => [code, exampleOf(code, site)])),
            },
          },
        };
        return [responseName(kind, status), response];
      }),
    ),
  );
}

function responseName({ name }: Kind, status: number): string {
  return `${name}${status}`;
}

/** The error statuses of a kind of path, each with its codes. */
function statusesOf({ needsKey, isCounted }: Kind): [status: number, codes: ErrorCode[]][] {
  const codes = CODES.filter((code) => {
    if (ELSEWHERE.includes(code)) return false;
    if (OF_TABLES.includes(code) || OF_QUOTAS.includes(code)) return isCounted;
    if (OF_PARAMETERS.includes(code)) return needsKey;
    return needsKey || ![...STATUSES_OF_KEYS, 503].includes(FAILURES[code].status);
  });
  return [...Map.groupBy(codes, (code) => FAILURES[code].status)];
}

/** The error envelope with these codes, as JSON Schema. */
function errorSchema(codes: readonly ErrorCode[]): object {
  const envelope = z.object({
    ok: z.literal(false).meta({ description: "Always false here." }),
    error: z.object({
      code: z.enum(codes).meta({ description: "The stable name of the error, for programs." }),
      message: z.string().meta({ description: "For people; it may change." }),
      docs_url: z.string().meta({ description: "The page that explains the code." }),
      details: z.record(z.string(), z.unknown()).optional().meta({
        description: "Details, if there are any: the parameter, or the names that are allowed.",
      }),
    }),
    request_id: z
      .string()
      .regex(/^req_[0-9a-f]{32}$/)
      .meta({ description: "The same as in the header X-Request-Id." }),
  });
  return plainSchema(z.toJSONSchema(envelope, { override: mayGrow }));
}

function headersWith(status: number, { needsKey }: Kind): HeaderName[] {
  const own: HeaderName[] =
    status === 401 ? ["WWW-Authenticate"] : status === 429 || status === 503 ? ["Retry-After"] : [];
  return [...ALWAYS, ...own, ...(needsKey ? LIMITS : [])];
}

function exampleOf(code: ErrorCode, site: string): object {
  const value: unknown = JSON.parse(errorBody(new ApiError(code), { site, requestId: EXAMPLE_ID }));
  return { summary: FAILURES[code].means.replaceAll("`", ""), value };
}
