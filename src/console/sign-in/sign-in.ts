import type { Express, Request } from "express";
import { z } from "zod";
import { findEmail } from "../../accounts/code-store.ts";
import { askCode, WRONG_CODE } from "../../accounts/code.ts";
import { noteWrongCode } from "../../accounts/guessed-code.ts";
import { wantsCode, withoutSession } from "../../accounts/identity.ts";
import { noteFailure, takeTry, tooMany } from "../../accounts/tries.ts";
import { localPath } from "../../frame/answer.ts";
import { requesterOf, passCookies } from "../../frame/requester.ts";
import type { PageReply } from "../../frame/view.ts";
import type { RouteParts } from "../who.ts";
import { addPublicForm, formOf, goal, queryOf, typedEmail, typedPassword } from "../../frame/sign-in/public-forms.ts";
import { type SignInParts, TRIES } from "./guard.ts";

const WRONG = "the e-mail or the password is not right";

const signInForm = z.object({ email: typedEmail, password: typedPassword, to: goal });
const codeForm = z.object({ code: z.string().max(100).default(""), to: goal });
const query = z.object({ to: goal });
const begun = z.object({ user: z.object({ id: z.string() }) });

/** Adds signing in, its second step, and signing out. */
export function addSignIn(app: Express, { answers }: RouteParts, doors: SignInParts): void {
  const { sql, identity, buckets, log, devices } = doors;

  function showSignIn(
    request: Request,
    reply: PageReply,
    shown: { problem?: string; email?: string; to: string },
    status = 200,
  ) {
    const data = { problem: "", email: "", ...shown };
    answers.show(request, reply, { template: "sign-in/sign-in", width: "reading", title: "Sign in", data }, status);
  }

  function showCode(request: Request, reply: PageReply, shown: { problem: string; to: string }, status = 200) {
    answers.show(
      request,
      reply,
      { template: "sign-in/code", width: "reading", title: "Two-factor authentication", data: shown },
      status,
    );
  }

  /** Logs each sign-in, so that the use of a stolen password leaves a trace. */
  function noteBegun(reply: PageReply, user: string) {
    log.info({ request_id: reply.locals.requestId, user }, "a sign-in at /console began");
  }

  addPublicForm(app, "/sign-in", {
    show: (request, reply) => showSignIn(request, reply, queryOf(request, query)),
    async take(request, reply) {
      const { email, password, to } = await formOf(request, signInForm);
      const requester = requesterOf(request);
      const attempt = {
        what: TRIES,
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
        log.warn({ request_id: reply.locals.requestId }, "a sign-in at /console was refused");
        return showSignIn(request, reply, { problem: WRONG, email, to }, 401);
      }
      passCookies(reply, answer.cookies);
      if (!wantsCode(answer)) {
        passCookies(reply, [devices.remember(requester.cookie, email)]);
        noteBegun(reply, begun.parse(answer.body).user.id);
        return answers.goOn(reply, localPath("/console", to), "");
      }
      answers.goOn(reply, `/console/sign-in/code${to === "" ? "" : `?to=${encodeURIComponent(to)}`}`, "");
    },
  });

  addPublicForm(app, "/sign-in/code", {
    show: (request, reply) => showCode(request, reply, { problem: "", ...queryOf(request, query) }),
    async take(request, reply) {
      const { code, to } = await formOf(request, codeForm);
      const requester = requesterOf(request);
      const challenged = { ...requester, cookie: withoutSession(requester.cookie) };
      const userId = await identity.findChallenged(challenged.cookie);
      const email = userId === null ? null : await findEmail(sql, userId);
      const device = email === null ? null : devices.find(requester.cookie, email);
      const attempt = {
        what: TRIES,
        isCode: true,
        address: requester.address,
        who: userId ?? requester.address,
        device,
      };
      const wait = await takeTry(buckets, attempt);
      if (wait > 0) {
        reply.setHeader("Retry-After", wait);
        return showCode(request, reply, { problem: tooMany(wait), to }, 429);
      }
      if (userId === null || email === null)
        return showCode(request, reply, { problem: "nothing waits for a code; begin again", to }, 401);
      const answer = await askCode(doors, challenged, userId, code);
      if (answer.status >= 500) throw new Error(`better-auth answered a code with ${answer.status}`);
      passCookies(reply, answer.cookies);
      if (answer.status === 200) {
        passCookies(reply, [devices.remember(requester.cookie, email)]);
        noteBegun(reply, userId);
        return answers.goOn(reply, localPath("/console", to), "");
      }
      await noteFailure(buckets, attempt);
      await noteWrongCode({ ...doors, surface: TRIES }, { userId, email });
      log.warn({ request_id: reply.locals.requestId, user: userId }, "a code at /console was refused");
      showCode(request, reply, { problem: `${WRONG_CODE}; wait for the next one, or begin again`, to }, 401);
    },
  });

  app.post("/console/sign-out", async (request, response) => {
    const reply = response as PageReply;
    const { cookies } = await identity.ask("/sign-out", {}, requesterOf(request));
    passCookies(reply, cookies);
    answers.goOn(reply, "/console/sign-in", "you are signed out");
  });
}
