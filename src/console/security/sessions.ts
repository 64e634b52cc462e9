import type { Express } from "express";
import { z } from "zod";
import { endSession, endSessions, listSessions } from "../../accounts/session-store.ts";
import { appendAudit } from "../../audit/store.ts";
import type { AddAccountForm } from "../../frame/sign-in/account-forms.ts";
import type { PageReply } from "../../frame/view.ts";
import { holderEntry } from "../../accounts/holder-entry.ts";
import { IDLE_SECONDS } from "../sign-in/limits.ts";
import { requireHolder, type RouteParts } from "../who.ts";

/** Path of the security page. */
export const SECURITY = "/console/security";

/** Adds the security page, and ending other sessions. */
export function addSessions(app: Express, addForm: AddAccountForm, { answers, parts: { sql } }: RouteParts): void {
  app.get(SECURITY, async (request, response) => {
    const { person, sessionId, hasTwoFactor } = requireHolder(response);
    const sessions = await listSessions(sql, person.userId, { idleSeconds: IDLE_SECONDS, surface: "console" });
    const data = { sessions, sessionId, hasTwoFactor, email: person.email };
    answers.show(request, response as PageReply, { template: "security/security", title: "Security", data });
  });

  addForm("/sessions/end", z.object({ id: z.string().max(100) }), async ({ reply, own, form, refuse }) => {
    const { holder } = requireHolder(reply);
    const isEnded = await sql.begin(async (tx) => {
      if (!(await endSession(tx, own.userId, form.id, "console"))) return false;
      await appendAudit(tx, holderEntry(holder, { action: "own.end-session", after: { sessions_ended: 1 } }));
      return true;
    });
    if (!isEnded) return refuse("This sign-in is not yours, or has ended.");
    answers.goOn(reply, SECURITY, "The sign-in has ended.");
  });

  addForm("/sessions/end-others", z.object({}), async ({ reply, own }) => {
    const { holder } = requireHolder(reply);
    const ended = await sql.begin(async (tx) => {
      const count = await endSessions(tx, own.userId, { except: own.sessionId, surface: "console" });
      await appendAudit(tx, holderEntry(holder, { action: "own.end-session", after: { sessions_ended: count } }));
      return count;
    });
    answers.goOn(reply, SECURITY, ended === 1 ? "One other sign-in has ended." : `${ended} other sign-ins have ended.`);
  });
}
