import type { Express, Request, RequestHandler } from "express";
import type { z } from "zod";
import type { Read } from "../db/reads.ts";
import type { Responder } from "./responder.ts";
import { type FileInput, readForm, typed, type Typed } from "./body.ts";
import { PageError } from "./errors.ts";
import { parseForm } from "./form-problem.ts";
import { sendParts } from "./send-parts.ts";
import type { FileInParts, PageReply, Shown } from "./view.ts";
import { type Attempt, backOf, showProblem } from "./problem-page.ts";

/**
 * The result of an action: a redirect, a page that is shown only once, or a problem. With `didNothing` nothing was
 * changed, such as by a repeated form, so nothing is recorded.
 */
export type Done =
  | { ok: true; message: string; location: string; once?: Shown; didNothing?: true }
  | { ok: false; problem: string; next?: NextStep }
  | { ok: false; missing: true };

/** What has to be done first, if sending the same form again would fail again. */
export interface NextStep {
  label: string;
  href: string;
}

/** A submitted form: its fields and, separately, the proof of its sender's identity. */
export interface SentForm {
  fields: Typed;
  proof: { password: string; code: string };
  /** The version of the accepted terms; empty for none. */
  agreedTo: string;
  attempt: Attempt;
}

/** Parameters of a path by name. */
export type Params = Readonly<Record<string, string>>;

/**
 * Adds pages and actions below a surface. A path without the requested method responds with 405 and an Allow header.
 */
export function addRoutes<Page extends { path: string }, Action extends { path: string }>(
  app: Express,
  base: string,
  { pages, actions }: { pages: readonly Page[]; actions: readonly Action[] },
  made: { showing(page: Page): RequestHandler; acting(action: Action): RequestHandler },
): void {
  const paths = [...new Set([...pages, ...actions].map(({ path }) => path))].toSorted(byCertainty);
  for (const path of paths) {
    const page = only(base, pages, path);
    const action = only(base, actions, path);
    const route = app.route(path === "/" ? base : base + path);
    const allow = [...(page === undefined ? [] : ["GET", "HEAD"]), ...(action === undefined ? [] : ["POST"])].join(
      ", ",
    );
    if (page !== undefined) route.get(made.showing(page));
    if (action !== undefined) route.post(made.acting(action));
    route.all(() => {
      throw new PageError(405, `this path takes ${allow}`, { Allow: allow });
    });
  }
}

/** Concurrent page reads of one surface: more would only wait for its six connections. */
export const PAGE_READS = { atOnce: 6, waiting: 60 } as const;

/** Shows a page, if its query is valid and its subject exists. */
export async function showPage<Query>(
  responder: Responder,
  request: Request,
  reply: PageReply,
  page: {
    query: z.ZodType<Query>;
    show(asked: { params: Params; query: Query }): Promise<Shown | FileInParts | null>;
    /** Runs the queries of a file in parts. */
    read: Read;
  },
): Promise<void> {
  const asked = typed(new URL(request.originalUrl, "http://here").searchParams);
  const query = parseForm(page.query, asked);
  if (!query.ok) {
    const attempt = { method: "get", action: request.path, typed: asked, schema: page.query } as const;
    return showProblem(responder, request, reply, { status: 400, message: query.problem, attempt });
  }
  const shown = await page.show({ params: paramsOf(request), query: query.form });
  if (shown === null) throw new PageError(404, "what this page was about is not here, or no longer");
  if ("parts" in shown) return sendParts(request, reply, shown, page.read);
  responder.show(request, reply, shown);
}

/** Performs the action of a form and redirects; a problem is shown with the values that were typed. */
export async function takeForm<Form>(
  responder: Responder,
  request: Request,
  reply: PageReply,
  action: {
    form: z.ZodType<Form>;
    file?: FileInput | undefined;
    /** Whether the action may be performed now. False, with a response sent, if another step comes first. */
    mayGoOn(sent: SentForm): Promise<boolean>;
    run(sent: { params: Params; form: Form }): Promise<Done>;
    /** Called after the action and before the response; not if nothing was changed. */
    wasDone(): Promise<void> | void;
  },
): Promise<void> {
  const { file = null } = action;
  const { _password, _code, _terms, ...fields } = await readForm(request, file);
  const attempt = { method: "post", action: request.originalUrl, typed: fields, schema: action.form } as const;
  // a form with a file is not shown again: no page can fill in a file input
  const shown = file !== null && `${file.field}_file` in fields ? null : attempt;
  const proof = { password: textOf(_password), code: textOf(_code) };
  if (!(await action.mayGoOn({ fields, proof, agreedTo: textOf(_terms), attempt }))) return;
  const form = parseForm(action.form, fields);
  if (!form.ok) {
    return showProblem(responder, request, reply, { status: 400, message: form.problem, attempt: shown });
  }
  const done = await action.run({ params: paramsOf(request), form: form.form });
  if (!done.ok) {
    if ("missing" in done) throw new PageError(404, "there is nothing under this address");
    const again =
      done.next === undefined ? { attempt: shown } : { attempt: null, next: withReturn(done.next, responder, request) };
    return showProblem(responder, request, reply, { status: 422, message: done.problem, ...again });
  }
  if (done.didNothing !== true) await action.wasDone();
  if (done.once === undefined) responder.redirect(reply, done.location, done.message);
  else responder.show(request, reply, done.once);
}

/** The next step, whose page returns to the one that sent the form. */
function withReturn({ label, href }: NextStep, responder: Responder, request: Request): NextStep {
  const to = encodeURIComponent(backOf(responder.surface.base, request));
  const [path = "", anchor] = href.split("#");
  return { label, href: `${path}?to=${to}${anchor === undefined ? "" : `#${anchor}`}` };
}

function only<Item extends { path: string }>(base: string, items: readonly Item[], path: string): Item | undefined {
  const found = items.filter((item) => item.path === path);
  if (found.length > 1) throw new Error(`two things at ${base} have the path ${path}; give one of them another`);
  return found[0];
}

/** Sorts literal paths before those with parameters, so that `/queues/failed` is not read as the queue `failed`. */
export function byCertainty(a: string, b: string): number {
  const unknowns = (path: string) => path.split("/").filter((part) => part.startsWith(":")).length;
  return unknowns(a) - unknowns(b) || a.localeCompare(b);
}

/** @throws PageError if a parameter contains a zero byte. */
function paramsOf(request: Request): Record<string, string> {
  const params = Object.entries(request.params).map(([name, value]) => [name, String(value)] as const);
  if (params.some(([, value]) => value.includes("\0"))) throw new PageError(404, "there is nothing under this address");
  return Object.fromEntries(params);
}

function textOf(value: string | string[] | undefined): string {
  return typeof value === "string" ? value : "";
}
