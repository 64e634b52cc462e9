import type { Express } from "express";
import { z } from "zod";
import { findPasswordHash, replacePassword } from "../../accounts/operators/operator-store.ts";
import { CHANGED_MEANWHILE, hashPassword, passwordProblem } from "../../accounts/identity/password.ts";
import { endSessions, listSessions } from "../../accounts/identity/session-store.ts";
import { passwordChanged } from "../../accounts/letters.ts";
import { isLocalAddress } from "../../accounts/operators/local-operator.ts";
import { appendAudit } from "../../audit/store.ts";
import { PageError } from "../../frame/errors.ts";
import { isLooking } from "../../frame/pages.ts";
import { accountForms, type AddAccountForm } from "../../frame/sign-in/account-forms.ts";
import type { SignInParts } from "../../frame/sign-in/guard.ts";
import { queryOf, toQuery } from "../../frame/sign-in/public-forms.ts";
import { addSessions } from "../../frame/sign-in/sessions.ts";
import { ensureProven } from "../../frame/sign-in/step-up.ts";
import type { PageReply } from "../../frame/view.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { auditEntry } from "../audit-entry.ts";
import type { RouteParts } from "../routes.ts";
import { accountOf, noteRefusal } from "../sign-in/guard.ts";
import { IDLE_SECONDS } from "../sign-in/limits.ts";
import { requireSignedIn } from "../signed-in.ts";
import { addSecondFactor } from "./second-factor.ts";

const ME = "/ops/me";
const passwordForm = z.object({
  current: z.string().max(1_000).default(""),
  code: z.string().max(100).default(""),
  next: z.string().max(1_000),
  again: z.string().max(1_000),
});

/** What the account page of staff uses. */
export interface StaffAccountParts extends SignInParts {
  /** Whether all staff must use two-factor authentication: without it only the account page opens. */
  mustHaveTwoFactor: boolean;
}

/** Adds the account page of staff, for every role: their sign-ins, password and second factor. */
export function addAccountRoutes(app: Express, made: RouteParts, parts: StaffAccountParts): void {
  const { responder } = made;
  const { sql, mustHaveTwoFactor } = parts;

  app.get(ME, async (request, response) => {
    const { visitor, sessionId, hasPassword, hasTwoFactor } = requireSignedIn(response);
    const { to } = queryOf(request, toQuery);
    const sessions = await listSessions(sql, visitor.operatorId, { idleSeconds: IDLE_SECONDS, surface: "ops" });
    const data = { page: ME, to, sessions, sessionId, hasPassword, hasTwoFactor, mustHaveTwoFactor };
    responder.show(request, response as PageReply, { template: "me/me", title: "Your sign-in", data });
  });

  const addForm = accountForms(app, {
    responder,
    ...parts,
    page: ME,
    accountOf: (response) => accountOf(requireSignedIn(response)),
    noteRefusal: (response, reason) => noteRefusal(parts, requireSignedIn(response), reason),
  });
  addPasswordForm(addForm, made, parts);
  addSessions(addForm, {
    responder,
    ...parts,
    page: ME,
    entryOf(reply, after) {
      const { visitor } = requireSignedIn(reply);
      return auditEntry(visitor, { action: "own.end-session", target: `operator ${visitor.email}`, after });
    },
  });
  addSecondFactor(addForm, made, parts, ME);

  app.use((request, response, next) => {
    if (!mustHaveTwoFactor || requireSignedIn(response).hasTwoFactor) return next();
    if (!isLooking(request))
      throw new PageError(403, "All staff of this instance must use two-factor authentication. Turn it on at /ops/me.");
    responder.redirect(
      response as PageReply,
      ME,
      "All staff of this instance must use two-factor authentication. Turn it on.",
    );
  });
}

/** Adds the form that changes the password, or sets one for staff who signed in by a link. It ends other sessions. */
function addPasswordForm(addForm: AddAccountForm, { responder, guard }: RouteParts, { sql, site }: SignInParts): void {
  addForm("/password", passwordForm, async ({ request, reply, form, refuse, mayChoose, isThem }) => {
    const who = requireSignedIn(reply);
    const { visitor, sessionId, isFresh, hasPassword } = who;
    if (form.next !== form.again) return refuse("the new password and its repetition are not the same");
    if (!(await mayChoose())) return;
    const problem = await passwordProblem(form.next, visitor.email);
    if (problem !== null) return refuse(problem);
    const from = hasPassword ? await findPasswordHash(sql, { userId: visitor.operatorId }) : null;
    if (hasPassword) {
      if (!(await isThem({ password: form.current, code: form.code }))) return;
    } else {
      const requirement = { isFresh, name: "Set password", stepUp: { kind: "link" } } as const;
      const sent = { fields: {}, proof: { password: "", code: "" } };
      const confirm = (given: Parameters<typeof guard.confirm>[1]) => guard.confirm(who, given);
      if (!(await ensureProven(responder, request, reply, { sent, requirement, confirm }))) return;
    }
    const to = await hashPassword(form.next);
    const isChanged = await sql.begin(async (tx) => {
      if (!(await replacePassword(tx, visitor.operatorId, { from, to }))) return false;
      const ended = await endSessions(tx, visitor.operatorId, { except: sessionId });
      const target = `operator ${visitor.email}`;
      await appendAudit(tx, auditEntry(visitor, { action: "own.password", target, after: { sessions_ended: ended } }));
      if (!isLocalAddress(visitor.email)) {
        await queueMail(tx, { ...passwordChanged({ site: site(), surface: "ops" }), recipient: visitor.email });
      }
      return true;
    });
    if (!isChanged) return refuse(CHANGED_MEANWHILE, 409);
    responder.redirect(reply, ME, "The password is changed, and your other sign-ins have ended.");
  });
}
