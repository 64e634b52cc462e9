import type { Express, Request } from "express";
import { z } from "zod";
import { LOCAL_OPERATOR } from "../../accounts/local-operator.ts";
import { findOperator } from "../../accounts/operator-store.ts";
import { noteFailure, takeTry, tooMany } from "../../accounts/tries.ts";
import { audited } from "../../audit/store.ts";
import { findEmail } from "../../accounts/code-store.ts";
import { askCode, WRONG_CODE } from "../../accounts/code.ts";
import { noteWrongCode } from "../../accounts/guessed-code.ts";
import { wantsCode, withoutSession } from "../../accounts/identity.ts";
import { reasonOf } from "../../errors.ts";
import { localPath } from "../../frame/answer.ts";
import { addressOf, requesterOf, passCookies } from "../../frame/requester.ts";
import { readForm, typed } from "../../frame/body.ts";
import { PageError } from "../../frame/errors.ts";
import { problemOf } from "../../frame/routes.ts";
import type { RouteParts } from "../routes.ts";
import type { PageReply } from "../../frame/view.ts";
import type { SignInParts } from "./guard.ts";

const TITLE = "Sign in to operate";
const WRONG = "the e-mail or the password is not right";

const signInForm = z.object({
  email: z.string().trim().max(254).default(""),
  password: z.string().max(1_000).default(""),
  to: z.string().max(2_000).default(""),
});
const codeForm = z.object({ code: z.string().max(100).default(""), to: z.string().max(2_000).default("") });
const linkQuery = z.object({ token: z.string().max(200).default("") });

/** Prints a new one-time link where the service runs; null where it is not for this machine alone. */
export type PrintLink = (() => Promise<void>) | null;

/** Adds what is answered to people who are not signed in. Who may sign in is never told to those who may not. */
export function addPublicRoutes(
  app: Express,
  { answers, parts, guard }: RouteParts,
  doors: SignInParts & { printLink: PrintLink },
): void {
  const { sql, identity, buckets, devices, printLink } = doors;
  const { log } = parts;

  function showSignIn(
    request: Request,
    reply: PageReply,
    shown: { problem?: string; email?: string; to: string },
    status = 200,
  ) {
    const data = { problem: "", email: "", printsLinks: printLink !== null, ...shown };
    answers.show(request, reply, { template: "sign-in/sign-in", title: TITLE, data }, status);
  }

  function showCode(request: Request, reply: PageReply, shown: { problem: string; to: string }, status = 200) {
    answers.show(request, reply, { template: "sign-in/code", title: "The second step", data: shown }, status);
  }

  /** Writes down that a sign-in of an operator began, or was refused; of others nothing is known to write down. */
  async function note(
    who: { email: string } | { id: string },
    request: Request,
    reply: PageReply,
    action: string,
    reason: string | null,
  ) {
    await audited(sql, async (tx) => {
      const operator = await findOperator(tx, who);
      const entry = operator && {
        surface: "ops" as const,
        actor: operator.email,
        role: operator.role,
        action,
        target: `operator ${operator.email}`,
        before: null,
        after: null,
        reason,
        requestId: reply.locals.requestId,
        address: addressOf(request),
      };
      return { result: null, entry };
    });
  }

  async function noteLater(noted: Promise<void>) {
    await noted.catch((error: unknown) => log.error(`a refused sign-in is not in the audit log: ${reasonOf(error)}`));
  }

  const route = app.route("/ops/sign-in");
  route.get((request, response) => {
    const { to } = queryOf(request);
    showSignIn(request, response as PageReply, { to });
  });
  route.post(async (request, response) => {
    const reply = response as PageReply;
    const { email, password, to } = parse(signInForm, await readForm(request));
    const requester = requesterOf(request);
    const attempt = {
      what: "ops",
      address: requester.address,
      who: email,
      device: devices.find(requester.cookie, email),
    };
    const wait = await takeTry(buckets, attempt);
    if (wait > 0) {
      reply.setHeader("Retry-After", wait);
      return showSignIn(request, reply, { problem: tooMany(wait), email, to }, 429);
    }
    const answer = await identity.ask("/sign-in/email", { email, password }, requester);
    if (answer.status >= 500) throw new Error(`better-auth answered a sign-in with ${answer.status}`);
    if (answer.status !== 200) {
      await noteFailure(buckets, attempt);
      log.warn({ request_id: reply.locals.requestId }, "a sign-in at /ops was refused");
      showSignIn(request, reply, { problem: WRONG, email, to }, 401);
      // after the answer: only what is known of somebody is written down, and the time it takes would tell that it is
      return noteLater(note({ email }, request, reply, "session.refused", "wrong password, or disabled"));
    }
    passCookies(reply, answer.cookies);
    if (wantsCode(answer)) {
      reply.setHeader("Location", `/ops/sign-in/code${to === "" ? "" : `?to=${encodeURIComponent(to)}`}`);
      return void reply.status(303).end();
    }
    passCookies(reply, [devices.remember(requester.cookie, email)]);
    await note({ email }, request, reply, "session.begin", null);
    answers.goOn(reply, localPath("/ops", to), "");
  });
  route.all(onlyGetAndPost);

  const code = app.route("/ops/sign-in/code");
  code.get((request, response) => {
    const { to } = queryOf(request);
    showCode(request, response as PageReply, { problem: "", to });
  });
  code.post(async (request, response) => {
    const reply = response as PageReply;
    const { code: given, to } = parse(codeForm, await readForm(request));
    const requester = requesterOf(request);
    const challenged = { ...requester, cookie: withoutSession(requester.cookie) };
    const id = await identity.findChallenged(challenged.cookie);
    const email = id === null ? null : await findEmail(sql, id);
    const device = email === null ? null : devices.find(requester.cookie, email);
    const attempt = { what: "ops", isCode: true, address: requester.address, who: id ?? requester.address, device };
    const wait = await takeTry(buckets, attempt);
    if (wait > 0) {
      reply.setHeader("Retry-After", wait);
      return showCode(request, reply, { problem: tooMany(wait), to }, 429);
    }
    if (id === null || email === null)
      return showCode(request, reply, { problem: "nothing waits for a code; begin again", to }, 401);
    const answer = await askCode(doors, challenged, id, given);
    if (answer.status >= 500) throw new Error(`better-auth answered a code with ${answer.status}`);
    passCookies(reply, answer.cookies);
    if (answer.status !== 200) {
      log.warn({ request_id: reply.locals.requestId }, "a code at /ops was refused");
      await noteFailure(buckets, attempt);
      await noteWrongCode({ ...doors, surface: "ops" }, { userId: id, email });
      await note({ id }, request, reply, "session.refused", WRONG_CODE);
      const problem = `${WRONG_CODE}; wait for the next one, or begin again`;
      return showCode(request, reply, { problem, to }, 401);
    }
    passCookies(reply, [devices.remember(requester.cookie, email)]);
    await note({ id }, request, reply, "session.begin", "with a second factor");
    answers.goOn(reply, localPath("/ops", to), "");
  });
  code.all(onlyGetAndPost);

  const link = app.route("/ops/link");
  // whatever looks ahead with HEAD must not use the link up
  link.head(() => {
    throw new PageError(405, "this path takes GET", { Allow: "GET" });
  });
  link.get(async (request, response) => {
    const reply = response as PageReply;
    const { token } = parse(linkQuery, typed(new URL(request.originalUrl, "http://here").searchParams));
    const answer = await identity.ask("/sign-in/link", { token }, requesterOf(request));
    if (answer.status >= 500) throw new Error(`better-auth answered a link with ${answer.status}`);
    if (answer.status !== 200) {
      const problem = "this link was used already, or its time is over";
      return showSignIn(request, reply, { problem, to: "" }, 401);
    }
    passCookies(reply, answer.cookies);
    await note(
      { email: LOCAL_OPERATOR },
      request,
      reply,
      "session.begin",
      "with the link that was printed at the start",
    );
    answers.goOn(reply, "/ops", "");
  });
  link.all(() => {
    throw new PageError(405, "this path takes GET", { Allow: "GET" });
  });

  app.post("/ops/link/new", async (request, response) => {
    const reply = response as PageReply;
    if (printLink === null)
      throw new PageError(403, "links are printed only where Roundhouse serves this machine alone");
    const wait = await takeTry(buckets, { what: "ops", address: addressOf(request), who: LOCAL_OPERATOR });
    if (wait > 0) throw new PageError(429, tooMany(wait), { "Retry-After": String(wait) });
    await printLink();
    const text = "A new link was printed in the terminal where Roundhouse runs. It works once, for an hour.";
    answers.show(request, reply, { template: "sign-in/link-printed", title: "Look at the terminal", data: { text } });
  });

  app.post("/ops/sign-out", async (request, response) => {
    const reply = response as PageReply;
    const who = await guard.whoIs(request, reply.locals.requestId);
    const answer = await identity.ask("/sign-out", {}, requesterOf(request));
    passCookies(reply, answer.cookies);
    if (who !== null) await note({ id: who.visitor.operatorId }, request, reply, "session.end", "signed out");
    reply.setHeader("Location", "/ops/sign-in");
    reply.status(303).end();
  });
}

/** Reads a form or query of ours. @throws PageError where it is none of our own pages that sent it. */
function parse<Form>(schema: z.ZodType<Form>, given: unknown): Form {
  const form = schema.safeParse(given);
  if (!form.success) throw new PageError(400, problemOf(form.error));
  return form.data;
}

function queryOf(request: Request): { to: string } {
  const { to } = typed(new URL(request.originalUrl, "http://here").searchParams);
  return { to: typeof to === "string" ? to.slice(0, 2_000) : "" };
}

function onlyGetAndPost(): never {
  throw new PageError(405, "this path takes GET, HEAD, POST", { Allow: "GET, HEAD, POST" });
}
