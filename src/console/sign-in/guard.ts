import { useHolderSession } from "../../accounts/holders/holder-session-store.ts";
import { type CurrentAccount, openGuard, type SignInParts } from "../../frame/sign-in/guard.ts";
import { addressOf, isRefresh, userAgentOf } from "../../frame/requester.ts";
import type { Log } from "../../log.ts";
import type { Guard, SignedInHolder } from "../signed-in.ts";
import { FRESH_SECONDS, IDLE_SECONDS } from "./limits.ts";

/** Authenticates sessions of the console and confirms passwords again. */
export function openConsoleGuard(parts: SignInParts): Guard {
  return openGuard(parts, {
    async find(id, request, requestId) {
      const limits = { idleSeconds: IDLE_SECONDS, freshSeconds: FRESH_SECONDS, isUse: !isRefresh(request) };
      const session = await useHolderSession(parts.sql, id, limits);
      if (session === null) return null;
      const { userId, email, accountId, isSuspended, ...state } = session;
      const origin = { address: addressOf(request), userAgent: userAgentOf(request), requestId };
      return { ...state, holder: { userId, email, accountId, isSuspended, ...origin } };
    },
    accountOf,
    noteRefusal: (who, reason) => noteRefusal(parts.log, who, reason),
  });
}

/** The account of a holder. */
export function accountOf({ holder, sessionId, hasTwoFactor }: SignedInHolder): CurrentAccount {
  const { userId, email, address } = holder;
  return { userId, email, address, sessionId, hasTwoFactor };
}

/** Logs that a signed-in holder failed to confirm their password or code. */
export function noteRefusal(log: Log, { holder }: SignedInHolder, reason: string): Promise<void> {
  const { requestId, userId } = holder;
  log.warn({ request_id: requestId, user: userId, reason }, "a password or code was refused at /console");
  return Promise.resolve();
}
