import { z } from "zod";
import { endSession, endSessions } from "../../accounts/identity/session-store.ts";
import { shortHash, tooMany } from "../../accounts/identity/tries.ts";
import type { AuditEntry } from "../../audit/entry.ts";
import { appendAudit } from "../../audit/store.ts";
import type { Responder } from "../responder.ts";
import type { PageReply } from "../view.ts";
import type { AccountForm, AddAccountForm } from "./account-forms.ts";
import type { SignInParts } from "./guard.ts";

/** Each end also ends sign-ins that are being checked: endless ones from a stolen session would keep its holder out. */
const ENDS = { points: 30, seconds: 600 };

/** What ending sessions needs besides the parts of the sign-in. */
export interface SessionParts extends SignInParts {
  responder: Responder;
  /** The path of the account page. */
  page: string;
  /** The audit entry of `own.end-session`, with the number of sessions that ended. */
  entryOf: (reply: PageReply, after: { sessions_ended: number }) => AuditEntry;
}

/** Adds ending one other session of the current account, and all others together. */
export function addSessions(addForm: AddAccountForm, parts: SessionParts): void {
  const { responder, sql, surface, page, entryOf } = parts;

  addForm("/sessions/end", z.object({ id: z.string().max(100) }), async (sent) => {
    const { reply, own, form, refuse } = sent;
    if (!(await mayEnd(parts, sent))) return;
    const isEnded = await sql.begin(async (tx) => {
      const ended = await endSession(tx, own.userId, form.id, surface);
      if (ended) await appendAudit(tx, entryOf(reply, { sessions_ended: 1 }));
      return ended;
    });
    if (!isEnded) return refuse("This sign-in is not yours, or has ended.");
    responder.redirect(reply, page, "The sign-in has ended.");
  });

  addForm("/sessions/end-others", z.object({}), async (sent) => {
    const { reply, own } = sent;
    if (!(await mayEnd(parts, sent))) return;
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

/** Counts an end of sessions. False, with a response sent, if the current session has ended too many. */
async function mayEnd(
  { buckets, surface }: SessionParts,
  { reply, own, refuse }: Pick<AccountForm<unknown>, "reply" | "own" | "refuse">,
): Promise<boolean> {
  const { isGranted, waitMs } = await buckets.draw(`${surface}-end ${shortHash(own.sessionId)}`, ENDS);
  if (isGranted) return true;
  const waitSeconds = Math.ceil(waitMs / 1_000);
  reply.setHeader("Retry-After", waitSeconds);
  refuse(tooMany(waitSeconds), 429);
  return false;
}
