import type { Express, Request } from "express";
import { z } from "zod";
import { takeNewAddress } from "../../accounts/holders/change-email.ts";
import { findMailToken } from "../../accounts/holders/mail-token-store.ts";
import { findPerson } from "../../accounts/holders/person-store.ts";
import { prove } from "../../accounts/identity/prove.ts";
import { requesterOf } from "../../frame/requester.ts";
import type { PageReply } from "../../frame/view.ts";
import type { RouteParts } from "../signed-in.ts";
import { addPublicForm, formOf, queryOf, typedPassword, typedToken } from "../../frame/sign-in/public-forms.ts";
import type { SignInParts } from "../../frame/sign-in/guard.ts";

const query = z.object({ token: typedToken });
const form = z.object({ token: typedToken, password: typedPassword });
const GONE = "this link was used already, is more than a day old, is not the newest, or is not whole; ask for another";
const TAKEN = "this address has an account of its own meanwhile, so yours keeps the one it has";

/**
 * Adds the page behind the link that is mailed to a new address. Opening it changes nothing. Its form needs the link, and
 * a session of the requester or their password.
 */
export function addNewAddress(app: Express, { responder, parts, guard }: RouteParts, signIn: SignInParts): void {
  const { sql } = signIn;

  function show(
    request: Request,
    reply: PageReply,
    data: { problem: string; token: string; asksPassword: boolean },
    status = 200,
  ) {
    const title = "Your new address";
    responder.show(request, reply, { template: "sign-in/new-address", width: "reading", title, data }, status);
  }

  function showGone(request: Request, reply: PageReply, problem: string) {
    const [data, title] = [{ problem, href: "/console/security", label: "To your sign-in" }, "This link does not work"];
    responder.show(request, reply, { template: "sign-in/gone", width: "reading", title, data }, 410);
  }

  async function isSignedInAs(request: Request, reply: PageReply, userId: string): Promise<boolean> {
    return (await guard.whoIs(request, reply.locals.requestId))?.holder.userId === userId;
  }

  addPublicForm(app, "/console/new-email", {
    async show(request, reply) {
      const { token } = queryOf(request, query);
      const found = await findMailToken(sql, "change-email", token);
      if (found === null) return showGone(request, reply, GONE);
      const asksPassword = !(await isSignedInAs(request, reply, found.userId));
      show(request, reply, { problem: "", token, asksPassword });
    },
    async take(request, reply) {
      const { token, password } = await formOf(request, form);
      const found = await findMailToken(sql, "change-email", token);
      const person = found && (await findPerson(sql, found));
      if (!found || !person) return showGone(request, reply, GONE);
      const requester = requesterOf(request);
      if (!(await isSignedInAs(request, reply, found.userId))) {
        // a second factor was asked for where the change was; here the mail is the other proof
        const who = { ...person, hasTwoFactor: false, sessionId: null };
        const proof = await prove(signIn, who, { password, code: "", requester });
        if (!proof.ok) {
          const { problem, waitSeconds } = proof;
          if (waitSeconds > 0) reply.setHeader("Retry-After", waitSeconds);
          return show(request, reply, { problem, token, asksPassword: true }, waitSeconds > 0 ? 429 : 401);
        }
      }
      const by = { requestId: reply.locals.requestId, address: requester.address };
      const done = await takeNewAddress(sql, { token, by });
      if (!done.ok) return showGone(request, reply, done.reason === "taken" ? TAKEN : GONE);
      parts.log.info({ request_id: by.requestId, user: found.userId }, "an address was changed at /console");
      responder.redirect(reply, "/console/security", "your e-mail address is changed; sign in with it from now on");
    },
  });
}
