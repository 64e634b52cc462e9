import type { NextFunction, Request } from "express";
import { z } from "zod";
import { ClientGoneError } from "../http/client-gone.ts";
import { isResponding } from "../db/facts.ts";
import { isConnectionError, isLockError } from "../db/errors.ts";
import { TooManyPasswordsError } from "../accounts/identity/password.ts";
import { TooManyReadsError } from "../db/reads.ts";
import type { Sql } from "../db/client.ts";
import type { Log } from "../log.ts";
import type { Responder } from "./responder.ts";
import { escape } from "./text/escape.ts";
import { fieldLabel } from "./text/field-label.ts";
import { isMultipart, type Typed } from "./body.ts";
import { PageError } from "./errors.ts";
import type { PageReply } from "./view.ts";

const TITLES: Record<number, string> = {
  400: "The request is not valid",
  401: "Sign in first",
  403: "You may not do this",
  404: "Page not found",
  405: "This method is not supported",
  409: "Not done",
  422: "Not done",
  429: "Too many attempts",
  500: "Something failed",
  503: "Not available right now",
  504: "This took too long",
};
const TOO_MUCH =
  "PostgreSQL did not finish this in time. Select less (one table, a shorter time), or try again when the load is lower.";
const LOCKED =
  "Other work, such as an import or a repair of a table, keeps a row locked that this needs. Nothing was changed; try again.";
const TOO_MANY_SIGN_INS = "Too many passwords are being checked. Try again in a few seconds.";
const TOO_MANY = "Too many pages are being read from the database. Try again in a few seconds.";

/** Fields whose values are never shown again. */
const SECRET_NAME = /password|secret|code|token|^(?:current|next|again)$/i;

/** The typed values, shown next to the problem. */
export interface Attempt {
  method: "get" | "post";
  action: string;
  typed: Typed;
  /** Of the form; its fields with a choice of values are shown with that choice. */
  schema?: z.ZodType;
}

/** Shows a problem with the typed values, so that nothing has to be typed again. */
export function showProblem(
  responder: Responder,
  request: Request,
  response: PageReply,
  {
    status,
    message,
    attempt,
    next = null,
  }: { status: number; message: string; attempt: Attempt | null; next?: { label: string; href: string } | null },
): void {
  const data = {
    message,
    isFailure: attempt !== null || ![401, 403, 404, 405].includes(status),
    next,
    method: attempt?.method ?? "get",
    action: attempt?.action ?? "",
    isMultipart: isMultipart(request),
    fields: attempt === null ? [] : fieldsOf(attempt.typed, choicesOf(attempt.schema)),
    back: backOf(responder.surface.base, request),
    requestId: response.locals.requestId,
  };
  responder.show(request, response, { template: "frame/problem-page", title: TITLES[status] ?? "Error", data }, status);
}

/** Handles thrown errors: a PageError with its page, an unavailable database with 503, anything else with 500. */
export function handleErrors(responder: Responder, sql: Sql, log: Log) {
  // Express recognizes an error handler by its four parameters
  return async (thrown: unknown, request: Request, response: PageReply, next: NextFunction) => {
    if (thrown instanceof ClientGoneError) return;
    const { requestId } = response.locals;
    const error = await asPageError(thrown, sql, responder.surface.away);
    if (error.status === 500) {
      const stack = thrown instanceof Error ? thrown.stack : String(thrown);
      log.error({ request_id: requestId, stack }, `a request at ${responder.surface.base} failed unexpectedly`);
    }
    if (error.status === 504)
      log.warn({ request_id: requestId }, `PostgreSQL cancelled a statement of a request at ${responder.surface.base}`);
    if (response.headersSent) return next(thrown);
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    try {
      showProblem(responder, request, response, { status: error.status, message: error.message, attempt: null });
    } catch (fault) {
      log.error({ request_id: requestId, stack: String(fault) }, "the error page itself failed");
      response
        .status(500)
        .type("html")
        .end(`<!doctype html><title>Error</title><p>${escape(error.message)}</p>`);
    }
  };
}

async function asPageError(thrown: unknown, sql: Sql, away: string): Promise<PageError> {
  if (thrown instanceof PageError) return thrown;
  if (thrown instanceof TooManyReadsError) return new PageError(503, TOO_MANY, { "Retry-After": "5" });
  if (thrown instanceof TooManyPasswordsError) return new PageError(503, TOO_MANY_SIGN_INS, { "Retry-After": "5" });
  if (thrown instanceof URIError) return new PageError(400, "the address holds a part that is not UTF-8");
  if (thrown instanceof Error && "code" in thrown && thrown.code === "57014") return new PageError(504, TOO_MUCH);
  if (isLockError(thrown)) return new PageError(503, LOCKED, { "Retry-After": "5" });
  const isAway = isConnectionError(thrown) || !(await isResponding(sql).catch(() => false));
  if (isAway) return new PageError(503, away, { "Retry-After": "5" });
  return new PageError(
    500,
    "Something failed that should not. It is in the log of the service under this request's id.",
  );
}

/** A form field with a typed value; `choices` are the values that it may have, if they are few. */
interface TypedField {
  name: string;
  label: string | null;
  value: string;
  isSecret: boolean;
  choices: readonly string[] | null;
}

/** Form fields of the typed values. */
export function fieldsOf(typed: Typed, choices: ReadonlyMap<string, readonly string[]> = new Map()): TypedField[] {
  return Object.entries(typed)
    .filter(([name]) => !name.startsWith("_"))
    .flatMap(([name, values]) =>
      (Array.isArray(values) ? values : [values]).map((value) => {
        const own = choices.get(name) ?? null;
        return { name, label: fieldLabel(name), value, isSecret: SECRET_NAME.test(name), choices: own };
      }),
    );
}

/** The values that fields of a form may have, by name, of those that have a choice. */
function choicesOf(schema: z.ZodType | undefined): Map<string, readonly string[]> {
  const { properties = {} } =
    schema === undefined ? {} : z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return new Map(
    Object.entries(properties).flatMap(([name, field]): [string, string[]][] =>
      typeof field === "object" && Array.isArray(field.enum) ? [[name, field.enum.map(String)]] : [],
    ),
  );
}

/** The page of the surface that sent the request, for a link back. */
export function backOf(base: string, request: Request): string {
  const referer = request.headers.referer ?? "";
  if (!URL.canParse(referer)) return base;
  const { pathname, search, host } = new URL(referer);
  return host === request.headers.host && pathname.startsWith(base) ? pathname + search : base;
}
