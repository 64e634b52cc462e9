import type { Express, Request } from "express";
import { z } from "zod";
import { takeMail, takeMailFrom, takeMailTo } from "../../accounts/holders/mail-limits.ts";
import { passwordProblem } from "../../accounts/identity/password.ts";
import { confirmSignUp, isOfBrowser, resendSignUp, type Sent, signUp } from "../../accounts/holders/sign-up.ts";
import { findSignUp, findSignUpOfBrowser } from "../../accounts/holders/sign-up-store.ts";
import { takeTry, tooMany } from "../../accounts/identity/tries.ts";
import { emailProblem } from "../../config/mail.ts";
import { addressOf, requesterOf, passCookies, userAgentOf } from "../../frame/requester.ts";
import type { PageReply } from "../../frame/view.ts";
import type { RouteParts } from "../signed-in.ts";
import { browserToken, keepBrowserToken } from "./browser-token.ts";
import {
  addPublicForm,
  box,
  formOf,
  type PublicForm,
  queryOf,
  typedEmail,
  typedPassword,
  typedToken,
} from "../../frame/sign-in/public-forms.ts";
import type { SignInParts } from "../../frame/sign-in/guard.ts";
import { endFormer } from "../../frame/sign-in/sign-in.ts";

const signUpFields = z.object({ email: typedEmail, password: typedPassword, terms: box, adult: box });
const confirmFields = z.object({ token: typedToken, password: typedPassword });
const confirmQuery = z.object({ token: typedToken });
const resendFields = z.object({ email: typedEmail });
const GONE =
  "This link was used already, is more than a day old, or is incomplete. Sign up again and use the newest mail.";

interface ShownSignUp {
  problem?: string;
  email?: string;
  terms?: boolean;
  adult?: boolean;
}

interface Context extends RouteParts {
  signIn: SignInParts;
}

/** Adds signing up, and the page to which the link in its mail leads. */
export function addSignUp(app: Express, made: RouteParts, signIn: SignInParts): void {
  const context = { ...made, signIn };
  addPublicForm(app, "/console/sign-up", signUpPage(context));
  addPublicForm(app, "/console/sign-up/resend", resendForm(context));
  addPublicForm(app, "/console/confirm", confirmPage(context));
}

function signUpPage(context: Context): PublicForm {
  const { parts, signIn } = context;
  return {
    show: (request, reply) => showSignUp(context, request, reply, {}),
    async take(request, reply) {
      const { password, ...kept } = await formOf(request, signUpFields);
      const { email, terms, adult } = kept;
      const refuse = (problem: string) => showSignUp(context, request, reply, { problem, ...kept }, 422);
      const refuseFor = (wait: number) => {
        reply.setHeader("Retry-After", wait);
        showSignUp(context, request, reply, { problem: tooMany(wait), ...kept }, 429);
      };
      const problem =
        emailProblem(email) ??
        (terms ? null : "The terms are not accepted. Read them and tick their box.") ??
        (adult ? null : "You must be 18 or older to have an account. Tick the box if you are.");
      if (problem !== null) return refuse(problem);
      const address = addressOf(request);
      // before the password, whose estimate takes up to 90 ms of a thread that all share
      const tryWait = await takeTry(signIn.buckets, { what: "console-sign-up", address, who: email });
      if (tryWait > 0) return refuseFor(tryWait);
      const weak = await passwordProblem(password, email);
      if (weak !== null) return refuse(weak);
      const mailWait = await takeMail(signIn.buckets, address, { purpose: "sign-up", recipient: email });
      if (mailWait > 0) return refuseFor(mailWait);
      const origin = { address, userAgent: userAgentOf(request) };
      const mailing = { site: parts.site(), mailKey: parts.mailKey };
      const { browser, path } = await signUp(signIn.sql, { email, password, origin, ...mailing });
      keepBrowserToken(reply, browser, parts.settings);
      showSent(context, request, reply, { email, path });
    },
  };
}

/** The form that sends the mail again. Without a sign-up of the browser no mail is sent, and its network alone is counted. */
function resendForm(context: Context): PublicForm {
  const { responder, parts, signIn } = context;
  return {
    show: (_, reply) => responder.redirect(reply, "/console/sign-up", ""),
    async take(request, reply) {
      const { email } = await formOf(request, resendFields);
      const problem = emailProblem(email);
      if (problem !== null) return showSignUp(context, request, reply, { problem, email }, 422);
      const { sql, buckets } = signIn;
      const browser = browserToken(request, parts.settings);
      let wait = await takeMailFrom(buckets, addressOf(request));
      if (wait === 0 && (await findSignUpOfBrowser(sql, { email, browser })) !== null) {
        wait = await takeMailTo(buckets, { purpose: "sign-up", recipient: email });
      }
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return showSignUp(context, request, reply, { problem: tooMany(wait), email }, 429);
      }
      const mailing = { site: parts.site(), mailKey: parts.mailKey };
      const { path } = await resendSignUp(sql, { email, browser, ...mailing });
      showSent(context, request, reply, { email, path }, true);
    },
  };
}

/** The page of the mailed link. */
function confirmPage({ responder, parts, signIn }: Context): PublicForm {
  const { sql, identity, buckets, log, devices } = signIn;

  function show(
    request: Request,
    reply: PageReply,
    data: { problem: string; token: string; asksPassword: boolean },
    status = 200,
  ) {
    const title = "Confirm your address";
    responder.show(request, reply, { template: "sign-in/confirm", width: "reading", title, data }, status);
  }

  function showGone(request: Request, reply: PageReply) {
    const [data, title] = [{ problem: GONE, href: "/console/sign-up", label: "Sign up" }, "This link does not work"];
    responder.show(request, reply, { template: "sign-in/gone", width: "reading", title, data }, 410);
  }

  return {
    async show(request, reply) {
      const { token } = queryOf(request, confirmQuery);
      const pending = await findSignUp(sql, token);
      if (pending === null) return showGone(request, reply);
      show(request, reply, {
        problem: "",
        token,
        asksPassword: !isOfBrowser(pending, browserToken(request, parts.settings)),
      });
    },
    async take(request, reply) {
      const { token, password } = await formOf(request, confirmFields);
      const requester = requesterOf(request);
      const { address } = requester;
      const wait = await takeTry(buckets, { what: "console-confirm", address, who: token });
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return show(request, reply, { problem: tooMany(wait), token, asksPassword: true }, 429);
      }
      const { requestId } = reply.locals;
      const browser = browserToken(request, parts.settings);
      const done = await confirmSignUp(sql, { token, password, browser, by: { requestId, address } });
      if (!done.ok) {
        if (done.reason === "unknown-link") return showGone(request, reply);
        if (done.reason === "known-address") {
          return responder.redirect(reply, "/console/sign-in", "This address has a sign-in already. Sign in with it.");
        }
        const problem = "This is not the password that was chosen at sign-up. If you did not sign up, leave this page.";
        return show(request, reply, { problem, token, asksPassword: true }, 401);
      }
      log.info({ request_id: requestId, account: String(done.accountId) }, "an account was opened at /console");
      const { status, cookies } = await identity.ask("/sign-in/link", { token: done.signInToken }, requester);
      if (status !== 200) throw new Error(`better-auth returned ${status} for the first sign-in`);
      await endFormer({ parts: signIn }, request, reply);
      passCookies(reply, [...cookies, devices.remember(requester.cookie, done.email)]);
      responder.redirect(reply, "/console", "Your address is confirmed. Welcome to Roundhouse.");
    },
  };
}

function showSignUp(
  { responder }: Context,
  request: Request,
  reply: PageReply,
  shown: ShownSignUp,
  status = 200,
): void {
  const data = { problem: "", email: "", terms: false, adult: false, ...shown };
  responder.show(request, reply, { template: "sign-in/sign-up", width: "reading", title: "Sign up", data }, status);
}

/** A demo without a mail server shows the link that it cannot send, to the browser that signed up. */
function showSent(
  { responder, parts }: Context,
  request: Request,
  reply: PageReply,
  { email, path }: { email: string } & Sent,
  isAgain = false,
): void {
  const isShown = parts.isDemo && parts.settings.SMTP_URL === undefined;
  const data = { email, isAgain, isDemo: isShown, path: isShown ? path : null };
  const title = data.path === null ? "Check your inbox" : "Confirm your address";
  responder.show(request, reply, { template: "sign-in/sent", width: "reading", title, data });
}
