import type { Express, Request } from "express";
import { z } from "zod";
import { askSession, recordOrEnd, REVOKED, SIGNED_OUT } from "../../accounts/identity/ask-session.ts";
import { askCode, WRONG_CODE } from "../../accounts/identity/code.ts";
import { findEmail } from "../../accounts/identity/code-store.ts";
import { noteWrongCode } from "../../accounts/identity/guessed-code.ts";
import { type IdentityResponse, needsCode } from "../../accounts/identity/identity.ts";
import { mailNewDevice } from "../../accounts/identity/new-device.ts";
import { noteFailure, takeTry, tooMany } from "../../accounts/identity/tries.ts";
import { reasonOf } from "../../errors.ts";
import { type Responder, localPath } from "../responder.ts";
import { passCookies, requesterOf } from "../requester.ts";
import type { PageReply } from "../view.ts";
import type { SignInParts } from "./guard.ts";
import {
  addPublicForm,
  formOf,
  type PublicForm,
  queryOf,
  returnPath,
  toQuery,
  typedEmail,
  typedPassword,
} from "./public-forms.ts";

const WRONG = "the e-mail or the password is not right";

const signInForm = z.object({ email: typedEmail, password: typedPassword, to: returnPath });
const codeForm = z.object({ code: z.string().max(100).default(""), to: returnPath });
const begun = z.object({ user: z.object({ id: z.string() }) });

/** What happened at a sign-in page, and to whom: refused attempts have an address that may be unknown. */
export interface SignInEvent {
  action: "session.begin" | "session.refused" | "session.end";
  who: { id: string } | { email: string };
  reason: string | null;
}

/** What differs between the sign-in pages of console and ops. */
export interface SignInPages {
  title: string;
  /** The template below the form, relative to `src`, and its data. */
  below: string;
  data?: object;
  /** Records an event in the audit log, if the surface keeps one of sign-ins. */
  record?: (request: Request, reply: PageReply, event: SignInEvent) => Promise<void>;
}

interface Context {
  responder: Responder;
  parts: SignInParts;
  /** The path of the surface, such as `/ops`. */
  base: string;
  record: NonNullable<SignInPages["record"]>;
}

/** Shows the sign-in page, with a problem and what was typed. */
export type ShowSignIn = (
  request: Request,
  reply: PageReply,
  shown: { problem?: string; email?: string; to: string },
  status?: number,
) => void;

/** Adds signing in, its second step, and signing out. Returns the function that shows the sign-in page. */
export function addSignIn(app: Express, responder: Responder, parts: SignInParts, pages: SignInPages): ShowSignIn {
  const { base } = responder.surface;
  const context = { responder, parts, base, record: pages.record ?? (() => Promise.resolve()) };
  const showSignIn: ShowSignIn = (request, reply, shown, status = 200) => {
    const data = { problem: "", email: "", base, below: `/${pages.below}`, ...pages.data, ...shown };
    const { title } = pages;
    responder.show(request, reply, { template: "frame/sign-in/sign-in", width: "reading", title, data }, status);
  };
  addPublicForm(app, `${base}/sign-in`, passwordForm(context, showSignIn));
  addPublicForm(app, `${base}/sign-in/code`, codePage(context, showSignIn));
  app.post(`${base}/sign-out`, (request, response) => signOut(context, request, response as PageReply));
  return showSignIn;
}

function passwordForm(context: Context, show: ShowSignIn): PublicForm {
  const { responder, parts, base, record } = context;
  const { surface, identity, buckets, log, devices } = parts;

  return {
    show: (request, reply) => show(request, reply, queryOf(request, toQuery)),
    async take(request, reply) {
      const { email, password, to } = await formOf(request, signInForm);
      const requester = requesterOf(request);
      const { address, cookie } = requester;
      const attempt = { what: surface, address, who: email, device: devices.find(cookie, email) };
      const wait = await takeTry(buckets, attempt);
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return show(request, reply, { problem: tooMany(wait), email, to }, 429);
      }
      const ask = async () => passed(await identity.ask("/sign-in/email", { email, password }, requester));
      const response = await askSession(parts, { email }, requester, ask);
      if (response.isRevoked) {
        await noteRevoked(context, request, reply, { email });
        return show(request, reply, { problem: SIGNED_OUT, email, to }, 401);
      }
      if (response.status !== 200) {
        await noteFailure(buckets, attempt);
        log.warn({ request_id: reply.locals.requestId }, `a sign-in at ${base} was refused`);
        show(request, reply, { problem: WRONG, email, to }, 401);
        // after the response: only known addresses are recorded, and the response time would reveal which are
        const event = { action: "session.refused", who: { email }, reason: "wrong password, or disabled" } as const;
        return record(request, reply, event).catch((error: unknown) =>
          log.error(`a refused sign-in is not in the audit log: ${reasonOf(error)}`),
        );
      }
      if (!needsCode(response)) {
        const { id } = begun.parse(response.body).user;
        return begin(context, request, reply, { response, id, email, reason: null, to });
      }
      await endFormer(context, request, reply); // the response takes the cookie off, so the code step finds no session
      passCookies(reply, response.cookies);
      responder.redirect(reply, `${base}/sign-in/code${to === "" ? "" : `?to=${encodeURIComponent(to)}`}`, "");
    },
  };
}

function codePage(context: Context, showSignIn: ShowSignIn): PublicForm {
  const { responder, parts, base, record } = context;
  const { surface, sql, identity, buckets, log, devices } = parts;

  function show(request: Request, reply: PageReply, shown: { problem: string; to: string }, status = 200) {
    const [data, title] = [{ base, ...shown }, "Two-factor authentication"];
    responder.show(request, reply, { template: "frame/sign-in/code", width: "reading", title, data }, status);
  }

  return {
    show: (request, reply) => show(request, reply, { problem: "", ...queryOf(request, toQuery) }),
    async take(request, reply) {
      const { code, to } = await formOf(request, codeForm);
      const requester = requesterOf(request);
      const id = await identity.findChallenged(requester.cookie);
      const email = id === null ? null : await findEmail(sql, id);
      const device = email === null ? null : devices.find(requester.cookie, email);
      const attempt = { what: surface, isCode: true, address: requester.address, who: id ?? requester.address, device };
      const wait = await takeTry(buckets, attempt);
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return show(request, reply, { problem: tooMany(wait), to }, 429);
      }
      if (id === null || email === null)
        return show(request, reply, { problem: "No sign-in is waiting for a code. Start over.", to }, 401);
      const ask = async () => passed(await askCode(parts, requester, id, code));
      const response = await askSession(parts, { userId: id }, requester, ask);
      if (response.isRevoked) {
        await noteRevoked(context, request, reply, { id });
        return showSignIn(request, reply, { problem: SIGNED_OUT, email, to }, 401);
      }
      if (response.status === 200) {
        return begin(context, request, reply, { response, id, email, reason: "with a second factor", to });
      }
      passCookies(reply, response.cookies);
      await noteFailure(buckets, attempt);
      await noteWrongCode(parts, { userId: id, email });
      log.warn({ request_id: reply.locals.requestId, user: id }, `a code at ${base} was refused`);
      await record(request, reply, { action: "session.refused", who: { id }, reason: WRONG_CODE });
      show(request, reply, { problem: `${WRONG_CODE}; wait for the next one, or start over`, to }, 401);
    },
  };
}

/** Records a sign-in that `isRevoked`. It counts as no failure: what was sent was right. */
async function noteRevoked(
  { parts, base, record }: Context,
  request: Request,
  reply: PageReply,
  who: SignInEvent["who"],
): Promise<void> {
  parts.log.warn({ request_id: reply.locals.requestId }, `a sign-in at ${base} was refused: ${REVOKED}`);
  await record(request, reply, { action: "session.refused", who, reason: REVOKED });
}

/**
 * Logs each sign-in, so that the use of a stolen password leaves a trace, and mails its holder if the browser is new. Only then
 * the browser gets the session.
 */
async function begin(
  context: Context,
  request: Request,
  reply: PageReply,
  {
    response,
    id,
    email,
    reason,
    to,
  }: { response: IdentityResponse; id: string; email: string; reason: string | null; to: string },
): Promise<void> {
  const { responder, parts, base, record } = context;
  const requester = requesterOf(request);
  const { cookie, address, userAgent } = requester;
  const isNewDevice = parts.devices.find(cookie, email) === null;
  parts.log.info({ request_id: reply.locals.requestId, user: id }, `a sign-in at ${base} began`);
  await recordOrEnd(parts, requester, response, async () => {
    await record(request, reply, { action: "session.begin", who: { id }, reason });
    if (isNewDevice) await mailNewDevice(parts, { userId: id, email, address, userAgent });
  });
  await endFormer(context, request, reply);
  passCookies(reply, [...response.cookies, parts.devices.remember(cookie, email)]);
  responder.redirect(reply, localPath(base, to), "");
}

/** Ends the session whose cookie the response replaces: its holder could not sign it out in this browser any more. */
export async function endFormer(
  { parts, record }: { parts: SignInParts; record?: SignInPages["record"] },
  request: Request,
  reply: PageReply,
): Promise<void> {
  const requester = requesterOf(request);
  const former = await parts.identity.findSession(requester.cookie);
  if (former === null) return;
  await parts.identity.ask("/sign-out", {}, requester);
  const reason = "another sign-in began in the same browser";
  await record?.(request, reply, { action: "session.end", who: { id: former.userId }, reason });
}

async function signOut({ responder, parts, base, record }: Context, request: Request, reply: PageReply): Promise<void> {
  const requester = requesterOf(request);
  const session = await parts.identity.findSession(requester.cookie);
  const { cookies } = await parts.identity.ask("/sign-out", {}, requester);
  passCookies(reply, cookies);
  if (session !== null) {
    await record(request, reply, { action: "session.end", who: { id: session.userId }, reason: "signed out" });
  }
  responder.redirect(reply, `${base}/sign-in`, "You are signed out.");
}

/** @throws Error if the library failed. */
function passed(response: IdentityResponse): IdentityResponse {
  if (response.status >= 500) throw new Error(`better-auth returned ${response.status} for a sign-in`);
  return response;
}
