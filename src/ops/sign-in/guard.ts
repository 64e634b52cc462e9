import { useOperatorSession } from "../../accounts/identity/session-store.ts";
import { audited } from "../../audit/store.ts";
import { type CurrentAccount, openGuard, type SignInParts } from "../../frame/sign-in/guard.ts";
import { addressOf, isRefresh } from "../../frame/requester.ts";
import { auditEntry } from "../audit-entry.ts";
import type { Guard, SignedIn } from "../signed-in.ts";
import { FRESH_SECONDS, IDLE_SECONDS } from "./limits.ts";

/** Authenticates sessions of staff and confirms passwords again. */
export function openOpsGuard(parts: SignInParts): Guard {
  return openGuard(parts, {
    async find(id, request, requestId) {
      const limits = { idleSeconds: IDLE_SECONDS, freshSeconds: FRESH_SECONDS, isUse: !isRefresh(request) };
      const session = await useOperatorSession(parts.sql, id, limits);
      if (session === null) return null;
      const { userId: operatorId, email, role, ...state } = session;
      return { ...state, visitor: { operatorId, email, role, address: addressOf(request), requestId } };
    },
    accountOf,
    noteRefusal: (who, reason) => noteRefusal(parts, who, reason),
  });
}

/** The account of a member of staff. */
export function accountOf({ visitor, sessionId, hasTwoFactor }: SignedIn): CurrentAccount {
  const { operatorId: userId, email, address } = visitor;
  return { userId, email, address, sessionId, hasTwoFactor };
}

/** Records that a signed-in member of staff failed to confirm their password or code. */
export async function noteRefusal({ sql, log }: SignInParts, { visitor }: SignedIn, reason: string): Promise<void> {
  const { email: actor, requestId } = visitor;
  log.warn({ request_id: requestId, actor, reason }, "a password or code was refused at /ops");
  const entry = auditEntry(visitor, { action: "session.refused", target: `operator ${actor}`, reason });
  await audited(sql, () => Promise.resolve({ result: null, entry }));
}
