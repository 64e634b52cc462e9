import type { Express, Request } from "express";
import { z } from "zod";
import { readForm, typed } from "../../frame/body.ts";
import { PageError } from "../../frame/errors.ts";
import { problemOf } from "../../frame/routes.ts";
import type { PageReply } from "../../frame/shown.ts";

/** Where somebody wanted to go before they were asked to sign in. */
export const goal = z.string().max(2_000).default("");
/** What is typed as an address. It is taken in small letters, as it is kept. */
export const typedEmail = z.string().trim().max(254).toLowerCase().default("");
export const typedPassword = z.string().max(1_000).default("");
export const typedToken = z.string().max(200).default("");
/** A box: sent only where it is ticked. */
export const box = z
  .enum(["on"])
  .optional()
  .transform((value) => value === "on");

/** What HTML takes as an address, in small letters and with a dot in its domain: nothing in it means something to a mail server. */
const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const EMAIL = new RegExp(`^[a-z0-9.!#$%&'*+/=?^_\`{|}~-]+@${LABEL}(?:\\.${LABEL})+$`);

/** What is wrong with a typed address; null where mail may reach it. */
export function emailProblem(email: string): string | null {
  return EMAIL.test(email) ? null : "expected an e-mail address such as ann@example.com";
}

/** Adds a page with a form that people who are not signed in may send. */
export function addDoor(
  app: Express,
  path: string,
  door: {
    show(request: Request, reply: PageReply): Promise<void> | void;
    take(request: Request, reply: PageReply): Promise<void>;
  },
): void {
  const route = app.route(`/console${path}`);
  route.get((request, response) => door.show(request, response as PageReply));
  route.post((request, response) => door.take(request, response as PageReply));
  route.all(() => {
    throw new PageError(405, "this path takes GET, HEAD, POST", { Allow: "GET, HEAD, POST" });
  });
}

/** Reads a form of ours. @throws PageError where it is none of our own pages that sent it. */
export async function formOf<Form>(request: Request, schema: z.ZodType<Form>): Promise<Form> {
  return parse(schema, await readForm(request));
}

/** Reads the query of a page of ours. @throws PageError where it is none that we wrote. */
export function queryOf<Query>(request: Request, schema: z.ZodType<Query>): Query {
  return parse(schema, typed(new URL(request.originalUrl, "http://here").searchParams));
}

function parse<Given>(schema: z.ZodType<Given>, given: unknown): Given {
  const read = schema.safeParse(given);
  if (!read.success) throw new PageError(400, problemOf(read.error));
  return read.data;
}
