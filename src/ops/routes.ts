import type { Express, Request, RequestHandler } from "express";
import type { z } from "zod";
import { hasAudit } from "../audit/store.ts";
import type { Answers } from "../frame/answer.ts";
import { readForm, typed, type Typed } from "../frame/body.ts";
import type { OpsAction, OpsPage, OpsParts, Role } from "./contract.ts";
import { PageError } from "../frame/errors.ts";
import { backOf, fieldsOf, showProblem } from "../frame/trouble.ts";
import type { PageReply } from "../frame/shown.ts";
import { type Doorkeeper, signedIn, type SignedIn } from "./who.ts";

/** What routes are made of. */
export interface RouteParts {
  parts: OpsParts;
  answers: Answers;
  doorkeeper: Doorkeeper;
}

/** Adds pages and actions below `/ops`. Where a path has only the other, the answer is 405 and says what it has. */
export function addRoutes(
  app: Express,
  { pages, actions }: { pages: readonly OpsPage[]; actions: readonly OpsAction[] },
  made: RouteParts,
): void {
  const paths = [...new Set([...pages, ...actions].map(({ path }) => path))].toSorted(byCertainty);
  for (const path of paths) {
    const page = only(pages, path);
    const action = only(actions, path);
    const route = app.route(path === "/" ? "/ops" : `/ops${path}`);
    const allow = [...(page === undefined ? [] : ["GET", "HEAD"]), ...(action === undefined ? [] : ["POST"])].join(
      ", ",
    );
    if (page !== undefined) route.get(showing(page, made));
    if (action !== undefined) route.post(acting(action, made));
    route.all(() => {
      throw new PageError(405, `this path takes ${allow}`, { Allow: allow });
    });
  }
}

function showing<Query>(page: OpsPage<Query>, { parts, answers }: RouteParts): RequestHandler {
  return async (request, response) => {
    const reply = response as PageReply;
    const asked = typed(new URL(request.originalUrl, "http://here").searchParams);
    const query = page.query.safeParse(asked);
    if (!query.success) {
      const attempt = { method: "get", action: request.path, typed: asked } as const;
      return showProblem(answers, request, reply, { status: 400, message: problemOf(query.error), attempt });
    }
    const { visitor } = signedIn(response);
    const shown = await page.show(parts, { visitor, params: paramsOf(request), query: query.data });
    if (shown === null) throw new PageError(404, "what this page was about is not here, or no longer");
    answers.show(request, reply, shown);
  };
}

function acting<Form>(action: OpsAction<Form>, made: RouteParts): RequestHandler {
  const { parts, answers, doorkeeper } = made;
  return async (request, response) => {
    const reply = response as PageReply;
    const who = signedIn(response);
    const { visitor } = who;
    if (!mayDo(action, visitor.role)) {
      parts.log.warn({ request_id: visitor.requestId, actor: visitor.email, action: action.name }, "refused a role");
      throw new PageError(403, `${action.name} is for ${rolesOf(action).join(", ")}; you are ${visitor.role}`);
    }
    const { _password, _code, ...fields } = await readForm(request);
    const attempt = { method: "post", action: request.originalUrl, typed: fields } as const;
    const given = { password: textOf(_password), code: textOf(_code) };
    if (action.isDangerous && !(await isConfirmed(who, given))) return;
    const form = action.form.safeParse(fields);
    if (!form.success) {
      return showProblem(answers, request, reply, { status: 400, message: problemOf(form.error), attempt });
    }
    const done = await action.run(parts, { visitor, params: paramsOf(request), form: form.data });
    if (!done.ok) return showProblem(answers, request, reply, { status: 422, message: done.problem, attempt });
    if (!(await hasAudit(parts.sql, visitor.requestId))) {
      throw new Error(
        `${action.name} was done and left nothing in the audit log; it must add an entry in its transaction`,
      );
    }
    parts.log.info({ request_id: visitor.requestId, actor: visitor.email, action: action.name }, "operator acted");
    if (done.once === undefined) answers.goOn(reply, done.location, done.message);
    else answers.show(request, reply, done.once);

    /** True where it is known to be them; else they have been asked. */
    async function isConfirmed(person: SignedIn, proof: typeof given): Promise<boolean> {
      let problem: string | null = null;
      if (proof.password !== "" || proof.code !== "") {
        problem = await doorkeeper.confirm(person, { ...proof, request });
        if (problem === null) return true;
      } else if (person.isFresh) return true;
      askAgain(answers, request, reply, { who: person, name: action.name, fields, problem });
      return false;
    }
  };
}

/** Asks for the password (and the code) again; what was sent goes with it, so that the same form then goes through. */
export function askAgain(
  answers: Answers,
  request: Request,
  reply: PageReply,
  asked: { who: SignedIn; name: string; fields: Typed; problem: string | null },
): void {
  const { who, name, fields, problem } = asked;
  const data = {
    name,
    problem,
    action: request.originalUrl,
    fields: fieldsOf(fields),
    hasPassword: who.hasPassword,
    hasTwoFactor: who.hasTwoFactor,
    back: backOf("/ops", request),
  };
  answers.show(request, reply, { template: "frame/confirm", title: "Is it still you?", data }, 403);
}

/** Whether a role may do it. An admin may do everything. */
export function mayDo(action: Pick<OpsAction, "roles">, role: Role): boolean {
  return rolesOf(action).includes(role);
}

/** What is wrong with what was typed, one field after another. */
export function problemOf(error: z.core.$ZodError): string {
  return error.issues.map(({ path, message }) => `${path.map(String).join(".") || "the form"}: ${message}`).join("; ");
}

function rolesOf({ roles }: Pick<OpsAction, "roles">): Role[] {
  return [...roles, "admin"];
}

function only<Item extends { path: string }>(items: readonly Item[], path: string): Item | undefined {
  const found = items.filter((item) => item.path === path);
  if (found.length > 1) throw new Error(`two things at /ops have the path ${path}; give one of them another`);
  return found[0];
}

/** Paths of words before those of parameters, so that `/queues/failed` is not taken for the queue `failed`. */
function byCertainty(a: string, b: string): number {
  const unknowns = (path: string) => path.split("/").filter((part) => part.startsWith(":")).length;
  return unknowns(a) - unknowns(b) || a.localeCompare(b);
}

/** @throws PageError where one holds a zero byte, which nothing here has in its name. */
function paramsOf(request: Request): Record<string, string> {
  const params = Object.entries(request.params).map(([name, value]) => [name, String(value)] as const);
  if (params.some(([, value]) => value.includes("\0"))) throw new PageError(404, "there is nothing under this address");
  return Object.fromEntries(params);
}

function textOf(value: string | string[] | undefined): string {
  return typeof value === "string" ? value : "";
}
