import type { Express, Request } from "express";
import { z } from "zod";
import { readForm, typed } from "../body.ts";
import { PageError } from "../errors.ts";
import { parseForm } from "../form-problem.ts";
import type { PageReply } from "../view.ts";

/** The page to return to; empty for the first one. */
export const returnPath = z.string().max(2_000).catch("");
/** The query of a page that returns to another one. */
export const toQuery = z.object({ to: returnPath });
/** A typed e-mail address, in lower case as it is stored. */
export const typedEmail = z.string().trim().max(254).toLowerCase().default("");
export const typedPassword = z.string().max(1_000).default("");
export const typedToken = z.string().max(200).default("");
/** A checkbox: sent only if it is ticked. */
export const box = z
  .enum(["on"])
  .optional()
  .transform((value) => value === "on");

/** A page with a form that needs no sign-in. */
export interface PublicForm {
  show(request: Request, reply: PageReply): Promise<void> | void;
  take(request: Request, reply: PageReply): Promise<void>;
}

/** Adds a page with a form that needs no sign-in, at the full path. */
export function addPublicForm(app: Express, path: string, form: PublicForm): void {
  const route = app.route(path);
  route.get((request, response) => form.show(request, response as PageReply));
  route.post((request, response) => form.take(request, response as PageReply));
  route.all(() => {
    throw new PageError(405, "this path takes GET, HEAD, POST", { Allow: "GET, HEAD, POST" });
  });
}

/** Parses a form. @throws PageError 400 if it does not match the schema. */
export async function formOf<Form>(request: Request, schema: z.ZodType<Form>): Promise<Form> {
  return parse(schema, await readForm(request));
}

/** Parses the query of a page. @throws PageError 400 if it does not match the schema. */
export function queryOf<Query>(request: Request, schema: z.ZodType<Query>): Query {
  return parse(schema, typed(new URL(request.originalUrl, "http://here").searchParams));
}

function parse<Given>(schema: z.ZodType<Given>, given: unknown): Given {
  const read = parseForm(schema, given);
  if (!read.ok) throw new PageError(400, read.problem);
  return read.form;
}
