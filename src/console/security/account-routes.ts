import type { Express } from "express";
import { holderEntry } from "../../accounts/holders/holder-entry.ts";
import { listSessions } from "../../accounts/identity/session-store.ts";
import { accountForms } from "../../frame/sign-in/account-forms.ts";
import type { SignInParts } from "../../frame/sign-in/guard.ts";
import { queryOf, toQuery } from "../../frame/sign-in/public-forms.ts";
import { addSessions } from "../../frame/sign-in/sessions.ts";
import type { PageReply } from "../../frame/view.ts";
import { addCloseForm } from "../account/close.ts";
import { accountOf, noteRefusal } from "../sign-in/guard.ts";
import { IDLE_SECONDS } from "../sign-in/limits.ts";
import { addAcceptTerms } from "../sign-in/terms.ts";
import { requireSignedIn, type RouteParts } from "../signed-in.ts";
import { addAddressForm } from "./address.ts";
import { SECURITY } from "./path.ts";
import { addPasswordForm } from "./password.ts";
import { addSecondFactor } from "./second-factor.ts";

/** Adds the routes of holders for themselves: accepting terms, their sign-in, and closing their account. */
export function addAccountRoutes(app: Express, made: RouteParts, signIn: SignInParts): void {
  const { responder, parts } = made;
  addAcceptTerms(app, made);

  app.get(SECURITY, async (request, response) => {
    const { holder, sessionId, hasTwoFactor } = requireSignedIn(response);
    const { to } = queryOf(request, toQuery);
    const limits = { idleSeconds: IDLE_SECONDS, surface: "console" } as const;
    const sessions = await listSessions(parts.sql, holder.userId, limits);
    const data = { page: SECURITY, to, sessions, sessionId, hasTwoFactor, email: holder.email };
    responder.show(request, response as PageReply, { template: "security/security", title: "Security", data });
  });

  const shared = {
    responder,
    ...signIn,
    accountOf: (response: PageReply) => accountOf(requireSignedIn(response)),
    noteRefusal: (response: PageReply, reason: string) => noteRefusal(signIn.log, requireSignedIn(response), reason),
  };
  const addForm = accountForms(app, { ...shared, page: SECURITY });
  addSessions(addForm, {
    ...shared,
    page: SECURITY,
    entryOf: (reply, after) => holderEntry(requireSignedIn(reply).holder, { action: "own.end-session", after }),
  });
  addPasswordForm(addForm, made);
  addSecondFactor(addForm, made, signIn);
  addAddressForm(addForm, made, signIn);
  addCloseForm(accountForms(app, { ...shared, page: "/console/account" }), made, signIn);
}
