import { z } from "zod";
import { endSession, endSessions } from "../../accounts/identity/session-store.ts";
import type { AuditEntry } from "../../audit/entry.ts";
import { appendAudit } from "../../audit/store.ts";
import type { Responder } from "../responder.ts";
import type { PageReply } from "../view.ts";
import type { AddAccountForm } from "./account-forms.ts";
import type { SignInParts } from "./guard.ts";

/** What ending sessions needs besides the parts of the sign-in. */
export interface SessionParts extends SignInParts {
  responder: Responder;
  /** The path of the account page. */
  page: string;
  /** The audit entry of `own.end-session`, with the number of sessions that ended. */
  entryOf: (reply: PageReply, after: { sessions_ended: number }) => AuditEntry;
}

/** Adds ending one other session of the current account, and all others together. */
export function addSessions(addForm: AddAccountForm, { responder, sql, surface, page, entryOf }: SessionParts): void {
  addForm("/sessions/end", z.object({ id: z.string().max(100) }), async ({ reply, own, form, refuse }) => {
    const isEnded = await sql.begin(async (tx) => {
      const ended = await endSession(tx, own.userId, form.id, surface);
      if (ended) await appendAudit(tx, entryOf(reply, { sessions_ended: 1 }));
      return ended;
    });
    if (!isEnded) return refuse("This sign-in is not yours, or has ended.");
    responder.redirect(reply, page, "The sign-in has ended.");
  });

  addForm("/sessions/end-others", z.object({}), async ({ reply, own }) => {
    const ended = await sql.begin(async (tx) => {
      const count = await endSessions(tx, own.userId, { except: own.sessionId, surface });
      await appendAudit(tx, entryOf(reply, { sessions_ended: count }));
      return count;
    });
    responder.redirect(
      reply,
      page,
      ended === 1 ? "One other sign-in has ended." : `${ended} other sign-ins have ended.`,
    );
  });
}
