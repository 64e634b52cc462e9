import type { Express, Request, RequestHandler } from "express";
import type { z } from "zod";
import type { Answers } from "./answer.ts";
import { readForm, typed, type Typed } from "./body.ts";
import { PageError } from "./errors.ts";
import type { PageReply, Shown } from "./shown.ts";
import { type Attempt, backOf, fieldsOf, showProblem } from "./trouble.ts";

/**
 * What an action came to: where to go on, what to show at once and never again, or what was wrong. `didNothing` is said
 * where nothing was changed, such as by a form that comes a second time: there is then nothing to write down.
 */
export type Done =
  | { ok: true; message: string; location: string; once?: Shown; didNothing?: true }
  | { ok: false; problem: string; next?: NextStep }
  | { ok: false; missing: true };

/** What has to be done first, where sending the same form again would fail again. */
export interface NextStep {
  label: string;
  href: string;
}

/** A form as it was sent: its fields, and apart from them what its sender proves to be still the same person with. */
export interface SentForm {
  fields: Typed;
  proof: { password: string; code: string };
  /** The version of the terms whose box was ticked beside it; empty for none. */
  agreedTo: string;
  attempt: Attempt;
}

/** Parameters of a path by name. */
export type Params = Readonly<Record<string, string>>;

/** Adds pages and actions below a surface. Where a path has only the other, the answer is 405 and says what it has. */
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

/** Reads of the pages of one surface: more at once would only wait for its six connections. */
export const PAGE_READS = { atOnce: 6, waiting: 60 } as const;

/** Shows a page, where its query can be used and it is about something that is there. */
export async function showPage<Query>(
  answers: Answers,
  request: Request,
  reply: PageReply,
  page: { query: z.ZodType<Query>; show(asked: { params: Params; query: Query }): Promise<Shown | null> },
): Promise<void> {
  const asked = typed(new URL(request.originalUrl, "http://here").searchParams);
  const query = page.query.safeParse(asked);
  if (!query.success) {
    const attempt = { method: "get", action: request.path, typed: asked } as const;
    return showProblem(answers, request, reply, { status: 400, message: problemOf(query.error), attempt });
  }
  const shown = await page.show({ params: paramsOf(request), query: query.data });
  if (shown === null) throw new PageError(404, "what this page was about is not here, or no longer");
  answers.show(request, reply, shown);
}

/** Does what a form was sent for, and goes on from there; what is wrong with it is shown with what was typed. */
export async function takeForm<Form>(
  answers: Answers,
  request: Request,
  reply: PageReply,
  action: {
    form: z.ZodType<Form>;
    /** Whether it may be done now; false, and answered, where something has to be first. */
    mayGoOn(sent: SentForm): Promise<boolean>;
    run(sent: { params: Params; form: Form }): Promise<Done>;
    /** Is told that it was done, before it is answered; not where nothing was. */
    wasDone(): Promise<void> | void;
  },
): Promise<void> {
  const { _password, _code, _terms, ...fields } = await readForm(request);
  const attempt = { method: "post", action: request.originalUrl, typed: fields } as const;
  const proof = { password: textOf(_password), code: textOf(_code) };
  if (!(await action.mayGoOn({ fields, proof, agreedTo: textOf(_terms), attempt }))) return;
  const form = action.form.safeParse(fields);
  if (!form.success) {
    return showProblem(answers, request, reply, { status: 400, message: problemOf(form.error), attempt });
  }
  const done = await action.run({ params: paramsOf(request), form: form.data });
  if (!done.ok) {
    if ("missing" in done) throw new PageError(404, "there is nothing under this address");
    const again = done.next === undefined ? { attempt } : { attempt: null, next: done.next };
    return showProblem(answers, request, reply, { status: 422, message: done.problem, ...again });
  }
  if (done.didNothing !== true) await action.wasDone();
  if (done.once === undefined) answers.goOn(reply, done.location, done.message);
  else answers.show(request, reply, done.once);
}

/** Somebody who has to show that it is still them. */
interface Doubted {
  /** Whether it was shown a moment ago. */
  isFresh: boolean;
  /** Checks what came with the form; null where it is right, else what to say. */
  confirm: () => Promise<string | null>;
  /** Asks for it, where it was not given or is not right. */
  ask: (problem: string | null) => void;
}

/** Whether it is known to be still them; where not, they have been asked. What is given is checked, needed or not. */
export async function isStillThem({ proof }: SentForm, { isFresh, confirm, ask }: Doubted): Promise<boolean> {
  let problem: string | null = null;
  if (proof.password !== "" || proof.code !== "") {
    problem = await confirm();
    if (problem === null) return true;
  } else if (isFresh) return true;
  ask(problem);
  return false;
}

/** Asks for the password (and the code) again; what was sent goes with it, so that the same form then goes through. */
export function askForProof(
  answers: Answers,
  request: Request,
  reply: PageReply,
  asked: { email: string; hasTwoFactor: boolean; name: string; fields: Typed; problem: string | null },
): void {
  const { fields, ...told } = asked;
  const data = {
    ...told,
    action: request.originalUrl,
    fields: fieldsOf(fields),
    back: backOf(answers.surface.base, request),
  };
  answers.show(request, reply, { template: "frame/confirm", title: "Confirm that it is you", data }, 403);
}

/** What is wrong with what was typed, one field after another. */
export function problemOf(error: z.core.$ZodError): string {
  return error.issues.map(({ path, message }) => `${path.map(String).join(".") || "the form"}: ${message}`).join("; ");
}

function only<Item extends { path: string }>(base: string, items: readonly Item[], path: string): Item | undefined {
  const found = items.filter((item) => item.path === path);
  if (found.length > 1) throw new Error(`two things at ${base} have the path ${path}; give one of them another`);
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
