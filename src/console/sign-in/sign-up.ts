import type { Express, Request } from "express";
import { z } from "zod";
import { takeMail } from "../../accounts/mail-limits.ts";
import { passwordProblem } from "../../accounts/password.ts";
import { confirmSignUp, signUp } from "../../accounts/sign-up.ts";
import { findSignUp } from "../../accounts/sign-up-store.ts";
import { takeTry, tooMany } from "../../accounts/tries.ts";
import { addressOf, askerOf, passCookies, userAgentOf } from "../../frame/asker.ts";
import type { PageReply } from "../../frame/shown.ts";
import type { RouteParts } from "../who.ts";
import { addDoor, box, emailProblem, formOf, queryOf, typedEmail, typedPassword, typedToken } from "./door.ts";
import type { DoorParts } from "./doorkeeper.ts";

const signUpForm = z.object({ email: typedEmail, password: typedPassword, terms: box, adult: box });
const confirmForm = z.object({ token: typedToken, password: typedPassword });
const confirmQuery = z.object({ token: typedToken });
const GONE =
  "this link was used already, is more than a day old, or is not whole; sign up again and use the newest mail";

/** Adds signing up, and the page to which the link in its mail leads. */
export function addSignUp(app: Express, { answers, parts }: RouteParts, { sql, identity, buckets, log }: DoorParts) {
  function showSignUp(request: Request, reply: PageReply, shown: { problem?: string; email?: string }, status = 200) {
    const data = { problem: "", email: "", ...shown };
    answers.show(request, reply, { template: "sign-in/sign-up", title: "Sign up", data }, status);
  }

  function showConfirm(request: Request, reply: PageReply, shown: { problem: string; token: string }, status = 200) {
    answers.show(request, reply, { template: "sign-in/confirm", title: "Confirm your address", data: shown }, status);
  }

  function showGone(request: Request, reply: PageReply) {
    const data = { problem: GONE, href: "/console/sign-up", label: "Sign up" };
    answers.show(request, reply, { template: "sign-in/gone", title: "This link does not work", data }, 410);
  }

  addDoor(app, "/sign-up", {
    show: (request, reply) => showSignUp(request, reply, {}),
    async take(request, reply) {
      const { email, password, terms, adult } = await formOf(request, signUpForm);
      const problem =
        emailProblem(email) ??
        (await passwordProblem(password, email)) ??
        (terms ? null : "the terms are not accepted; read them and tick their box") ??
        (adult ? null : "only who is 18 or older may have an account; tick the box if you are");
      if (problem !== null) return showSignUp(request, reply, { problem, email }, 422);
      const address = addressOf(request);
      const wait = await takeMail(buckets, address, { purpose: "sign-up", recipient: email });
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return showSignUp(request, reply, { problem: tooMany(wait), email }, 429);
      }
      const origin = { address, userAgent: userAgentOf(request) };
      await signUp(sql, { email, password, origin, site: parts.site(), mailKey: parts.mailKey });
      const data = { email };
      answers.show(request, reply, { template: "sign-in/sent", title: "Look at your mail", data });
    },
  });

  addDoor(app, "/confirm", {
    async show(request, reply) {
      const { token } = queryOf(request, confirmQuery);
      if ((await findSignUp(sql, token)) === null) return showGone(request, reply);
      showConfirm(request, reply, { problem: "", token });
    },
    async take(request, reply) {
      const { token, password } = await formOf(request, confirmForm);
      const asker = askerOf(request);
      const wait = await takeTry(buckets, "console-confirm", asker.address, token);
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return showConfirm(request, reply, { problem: tooMany(wait), token }, 429);
      }
      const { requestId } = reply.locals;
      const done = await confirmSignUp(sql, { token, password, by: { requestId, address: asker.address } });
      if (!done.ok) {
        if (done.reason === "unknown-link") return showGone(request, reply);
        if (done.reason === "known-address") {
          return answers.goOn(reply, "/console/sign-in", "this address has a sign-in already; sign in with it");
        }
        const problem =
          "this is not the password that was chosen at the sign-up of this link; if you chose none, leave it";
        return showConfirm(request, reply, { problem, token }, 401);
      }
      log.info({ request_id: requestId, account: String(done.accountId) }, "an account was opened at /console");
      const { status, cookies } = await identity.ask("/sign-in/email", { email: done.email, password }, asker);
      if (status !== 200) throw new Error(`better-auth answered the first sign-in with ${status}`);
      passCookies(reply, cookies);
      answers.goOn(reply, "/console", "your address is confirmed, and the account is yours");
    },
  });
}
