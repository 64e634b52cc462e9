import type { Express, Request } from "express";
import { z } from "zod";
import { takeMail } from "../../accounts/mail-limits.ts";
import { findMailToken } from "../../accounts/mail-token-store.ts";
import { askReset, setNewPassword } from "../../accounts/reset.ts";
import { takeTry, tooMany } from "../../accounts/tries.ts";
import { reasonOf } from "../../errors.ts";
import { addressOf, passCookies } from "../../frame/requester.ts";
import type { PageReply } from "../../frame/view.ts";
import type { RouteParts } from "../signed-in.ts";
import {
  addPublicForm,
  emailProblem,
  formOf,
  queryOf,
  typedEmail,
  typedPassword,
  typedToken,
} from "../../frame/sign-in/public-forms.ts";
import type { SignInParts } from "../../frame/sign-in/guard.ts";

const forgotForm = z.object({ email: typedEmail });
const resetQuery = z.object({ token: typedToken });
const resetForm = z.object({ token: typedToken, next: typedPassword, again: typedPassword });
const GONE =
  "this link was used already, is more than an hour old, is not the newest, or is not whole; ask for another";

/** Adds the password reset: the request, and the form behind the mailed link. */
export function addForgot(
  app: Express,
  { answers, parts }: RouteParts,
  { sql, buckets, log, devices }: SignInParts,
): void {
  function showForgot(request: Request, reply: PageReply, data: { problem: string; email: string }, status = 200) {
    answers.show(
      request,
      reply,
      { template: "sign-in/forgot", width: "reading", title: "Forgot password", data },
      status,
    );
  }

  function showReset(request: Request, reply: PageReply, data: { problem: string; token: string }, status = 200) {
    answers.show(
      request,
      reply,
      { template: "sign-in/reset", width: "reading", title: "Choose a new password", data },
      status,
    );
  }

  function showGone(request: Request, reply: PageReply) {
    const data = { problem: GONE, href: "/console/forgot", label: "Ask for another" };
    answers.show(
      request,
      reply,
      { template: "sign-in/gone", width: "reading", title: "This link does not work", data },
      410,
    );
  }

  addPublicForm(app, "/console/forgot", {
    show: (request, reply) => showForgot(request, reply, { problem: "", email: "" }),
    async take(request, reply) {
      const { email } = await formOf(request, forgotForm);
      const problem = emailProblem(email);
      if (problem !== null) return showForgot(request, reply, { problem, email }, 422);
      const wait = await takeMail(buckets, addressOf(request), { purpose: "reset", recipient: email });
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return showForgot(request, reply, { problem: tooMany(wait), email }, 429);
      }
      const data = { email };
      answers.show(request, reply, {
        template: "sign-in/reset-sent",
        width: "reading",
        title: "Check your inbox",
        data,
      });
      // after the response: only registered addresses get a mail, and the response time would reveal which are
      await askReset(sql, { email, site: parts.site(), mailKey: parts.mailKey }).catch((error: unknown) =>
        log.error({ request_id: reply.locals.requestId }, `no mail for a new password was written: ${reasonOf(error)}`),
      );
    },
  });

  addPublicForm(app, "/console/reset", {
    async show(request, reply) {
      const { token } = queryOf(request, resetQuery);
      if ((await findMailToken(sql, "reset-password", token)) === null) return showGone(request, reply);
      showReset(request, reply, { problem: "", token });
    },
    async take(request, reply) {
      const { token, next, again } = await formOf(request, resetForm);
      const address = addressOf(request);
      const wait = await takeTry(buckets, { what: "console-reset", address, who: token });
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return showReset(request, reply, { problem: tooMany(wait), token }, 429);
      }
      if (next !== again) {
        const problem = "the new password and its repetition are not the same";
        return showReset(request, reply, { problem, token }, 422);
      }
      const by = { requestId: reply.locals.requestId, address };
      const done = await setNewPassword(sql, { token, password: next, site: parts.site(), by });
      if (done.ok) {
        // the reader of the mailbox must not be locked out by wrong passwords from elsewhere
        passCookies(reply, [devices.remember(request.headers.cookie ?? "", done.email)]);
        return answers.goOn(
          reply,
          "/console/sign-in",
          "the password is changed, and every sign-in has ended; sign in again",
        );
      }
      if (done.reason === "password") return showReset(request, reply, { problem: done.problem, token }, 422);
      showGone(request, reply);
    },
  });
}
