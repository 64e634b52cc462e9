import type { Express, Request } from "express";
import { z } from "zod";
import { takeMail } from "../../accounts/holders/mail-limits.ts";
import { findMailToken } from "../../accounts/holders/mail-token-store.ts";
import { askReset, setNewPassword } from "../../accounts/holders/reset.ts";
import { takeTry, tooMany } from "../../accounts/identity/tries.ts";
import { emailProblem } from "../../config/mail.ts";
import { reasonOf } from "../../errors.ts";
import { addressOf, passCookies } from "../../frame/requester.ts";
import type { PageReply } from "../../frame/view.ts";
import type { RouteParts } from "../signed-in.ts";
import {
  addPublicForm,
  formOf,
  type PublicForm,
  queryOf,
  typedEmail,
  typedPassword,
  typedToken,
} from "../../frame/sign-in/public-forms.ts";
import type { SignInParts } from "../../frame/sign-in/guard.ts";

const forgotFields = z.object({ email: typedEmail });
const resetQuery = z.object({ token: typedToken });
const resetFields = z.object({ token: typedToken, next: typedPassword, again: typedPassword });
const GONE =
  "this link was used already, is more than an hour old, is not the newest, or is not whole; ask for another";

/** Adds the password reset: the request, and the form behind the mailed link. */
export function addForgot(app: Express, made: RouteParts, signIn: SignInParts): void {
  addPublicForm(app, "/console/forgot", forgotPage(made, signIn));
  addPublicForm(app, "/console/reset", resetPage(made, signIn));
}

function forgotPage({ responder, parts }: RouteParts, { sql, buckets, log }: SignInParts): PublicForm {
  function show(request: Request, reply: PageReply, data: { problem: string; email: string }, status = 200) {
    const title = "Forgot password";
    responder.show(request, reply, { template: "sign-in/forgot", width: "reading", title, data }, status);
  }

  return {
    show: (request, reply) => show(request, reply, { problem: "", email: "" }),
    async take(request, reply) {
      const { email } = await formOf(request, forgotFields);
      const problem = emailProblem(email);
      if (problem !== null) return show(request, reply, { problem, email }, 422);
      const wait = await takeMail(buckets, addressOf(request), { purpose: "reset", recipient: email });
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return show(request, reply, { problem: tooMany(wait), email }, 429);
      }
      const [data, title] = [{ email }, "Check your inbox"];
      responder.show(request, reply, { template: "sign-in/reset-sent", width: "reading", title, data });
      // after the response: only registered addresses get a mail, and the response time would reveal which are
      await askReset(sql, { email, site: parts.site(), mailKey: parts.mailKey }).catch((error: unknown) =>
        log.error({ request_id: reply.locals.requestId }, `no mail for a new password was written: ${reasonOf(error)}`),
      );
    },
  };
}

function resetPage({ responder, parts }: RouteParts, { sql, buckets, devices }: SignInParts): PublicForm {
  function show(request: Request, reply: PageReply, data: { problem: string; token: string }, status = 200) {
    const title = "Choose a new password";
    responder.show(request, reply, { template: "sign-in/reset", width: "reading", title, data }, status);
  }

  function showGone(request: Request, reply: PageReply) {
    const data = { problem: GONE, href: "/console/forgot", label: "Request another link" };
    const title = "This link does not work";
    responder.show(request, reply, { template: "sign-in/gone", width: "reading", title, data }, 410);
  }

  return {
    async show(request, reply) {
      const { token } = queryOf(request, resetQuery);
      if ((await findMailToken(sql, "reset-password", token)) === null) return showGone(request, reply);
      show(request, reply, { problem: "", token });
    },
    async take(request, reply) {
      const { token, next, again } = await formOf(request, resetFields);
      const address = addressOf(request);
      const wait = await takeTry(buckets, { what: "console-reset", address, who: token });
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return show(request, reply, { problem: tooMany(wait), token }, 429);
      }
      if (next !== again) {
        const problem = "the new password and its repetition are not the same";
        return show(request, reply, { problem, token }, 422);
      }
      const by = { requestId: reply.locals.requestId, address };
      const done = await setNewPassword(sql, { token, password: next, site: parts.site(), by });
      if (!done.ok) {
        if (done.reason === "password") return show(request, reply, { problem: done.problem, token }, 422);
        return showGone(request, reply);
      }
      // the reader of the mailbox must not be locked out by wrong passwords from elsewhere
      passCookies(reply, [devices.remember(request.headers.cookie ?? "", done.email)]);
      const message = "The password is changed, and every sign-in has ended. Sign in again.";
      responder.redirect(reply, "/console/sign-in", message);
    },
  };
}
