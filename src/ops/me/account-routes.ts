import { noteOperatorChange } from "../../accounts/operator-change-store.ts";
import type { Express } from "express";
import { z } from "zod";
import { findPasswordHash, savePassword } from "../../accounts/operator-store.ts";
import { hashPassword, isPassword, passwordProblem } from "../../accounts/password.ts";
import { endSession, endSessions, listSessions } from "../../accounts/session-store.ts";
import { appendAudit, audited } from "../../audit/store.ts";
import { PageError } from "../../frame/errors.ts";
import { accountForms } from "../../frame/sign-in/account-forms.ts";
import type { PageReply } from "../../frame/view.ts";
import { addTwoFactor } from "../../frame/sign-in/two-factor.ts";
import { isLooking } from "../../frame/pages.ts";
import { auditEntry } from "../audit-entry.ts";
import { askAgain, type RouteParts } from "../routes.ts";
import { type SignInParts, noteRefusal } from "../sign-in/guard.ts";
import { IDLE_SECONDS } from "../sign-in/limits.ts";
import { signedIn } from "../who.ts";

const ME = "/ops/me";
const passwordForm = z.object({
  current: z.string().max(1_000).default(""),
  next: z.string().max(1_000),
  again: z.string().max(1_000),
});

/** What the audit log says of each change of a second factor. */
const FACTOR_CHANGES = {
  on: { action: "own.two-factor", before: { two_factor: false }, after: { two_factor: true } },
  off: { action: "own.two-factor", before: { two_factor: true }, after: { two_factor: false } },
  "new-codes": { action: "own.backup-codes", before: null, after: { made: true } },
} as const;

/** What somebody does for themselves is made of. */
export interface OwnParts extends SignInParts {
  /** Whether everybody needs a second factor: without one only this page opens. */
  mustHaveTwoFactor: boolean;
}

/** Adds what everybody does for themselves, whatever their role: their sign-ins, password and second factor. */
export function addOwn(app: Express, { answers }: RouteParts, own: OwnParts): void {
  const { sql, mustHaveTwoFactor } = own;

  app.get(ME, async (request, response) => {
    const { visitor, sessionId, hasPassword, hasTwoFactor } = signedIn(response);
    const sessions = await listSessions(sql, visitor.operatorId, { idleSeconds: IDLE_SECONDS, surface: "ops" });
    const data = { sessions, sessionId, hasPassword, hasTwoFactor, mustHaveTwoFactor };
    answers.show(request, response as PageReply, { template: "me/me", title: "Your sign-in", data });
  });

  const addForm = accountForms(app, {
    answers,
    ...own,
    page: ME,
    surface: "ops",
    ownOf(response) {
      const { visitor, sessionId, hasTwoFactor } = signedIn(response);
      const { operatorId: userId, email, address } = visitor;
      return { userId, email, address, sessionId, hasTwoFactor };
    },
    noteRefusal: (response, reason) => noteRefusal(own, signedIn(response).visitor, reason),
  });

  addForm("/password", passwordForm, async ({ request, reply, form, refuse, refuseProof, mayTry }) => {
    const who = signedIn(reply);
    const { visitor, sessionId, isFresh, hasPassword } = who;
    if (form.next !== form.again) return refuse("the new password and its repetition are not the same");
    const problem = await passwordProblem(form.next, visitor.email);
    if (problem !== null) return refuse(problem);
    if (hasPassword) {
      if (!(await mayTry())) return;
      const kept = await findPasswordHash(sql, visitor.operatorId);
      if (kept === null || !(await isPassword(form.current, kept))) {
        return refuseProof("the password of now is not right");
      }
    } else if (!isFresh) {
      return askAgain(answers, request, reply, { who, name: "setting a password", fields: {}, problem: null });
    }
    const passwordHash = await hashPassword(form.next);
    await sql.begin(async (tx) => {
      await savePassword(tx, visitor.operatorId, passwordHash);
      const ended = await endSessions(tx, visitor.operatorId, { except: sessionId });
      const target = `operator ${visitor.email}`;
      await appendAudit(tx, auditEntry(visitor, { action: "own.password", target, after: { sessions_ended: ended } }));
    });
    answers.goOn(reply, ME, "the password is changed, and your other sign-ins have ended");
  });

  addForm("/sessions/end", z.object({ id: z.string().max(100) }), async ({ reply, form, refuse }) => {
    const { visitor } = signedIn(reply);
    const isEnded = await sql.begin(async (tx) => {
      const ended = await endSession(tx, visitor.operatorId, form.id, "ops");
      const target = `operator ${visitor.email}`;
      if (ended)
        await appendAudit(tx, auditEntry(visitor, { action: "own.end-session", target, before: { session: form.id } }));
      return ended;
    });
    if (!isEnded) return refuse("this sign-in is not yours, or has ended");
    answers.goOn(reply, ME, "the sign-in has ended");
  });

  addForm("/sessions/end-others", z.object({}), async ({ reply }) => {
    const { visitor, sessionId } = signedIn(reply);
    const ended = await sql.begin(async (tx) => {
      const count = await endSessions(tx, visitor.operatorId, { except: sessionId, surface: "ops" });
      const after = { sessions_ended: count };
      await appendAudit(
        tx,
        auditEntry(visitor, { action: "own.end-session", target: `operator ${visitor.email}`, after }),
      );
      return count;
    });
    answers.goOn(reply, ME, `${ended} other sign-ins have ended`);
  });

  addTwoFactor(addForm, {
    answers,
    ...own,
    page: { href: ME, label: "Your sign-in" },
    mustHaveOne: () => Promise.resolve(mustHaveTwoFactor),
    async note(reply, change) {
      const { visitor } = signedIn(reply);
      const entry = auditEntry(visitor, { ...FACTOR_CHANGES[change], target: `operator ${visitor.email}` });
      await audited(sql, async (tx) => {
        const { operatorId: userId, email } = visitor;
        if (change === "off") await noteOperatorChange(tx, { userId, email, what: "second-factor", by: email });
        return { result: null, entry };
      });
    },
  });

  app.use((request, response, next) => {
    const { hasTwoFactor } = signedIn(response);
    if (!mustHaveTwoFactor || hasTwoFactor) return next();
    if (!isLooking(request)) throw new PageError(403, "everybody needs a second factor here; turn yours on at /ops/me");
    answers.goOn(response as PageReply, ME, "everybody needs a second factor here; turn yours on");
  });
}
