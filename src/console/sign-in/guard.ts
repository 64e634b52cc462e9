import type { Request } from "express";
import { useHolderSession } from "../../accounts/holder-session-store.ts";
import type { Devices } from "../../accounts/devices.ts";
import type { Identity } from "../../accounts/identity.ts";
import { prove } from "../../accounts/prove.ts";
import { confirmSession } from "../../accounts/session-store.ts";
import type { Sql } from "../../db/client.ts";
import { addressOf, requesterOf, userAgentOf } from "../../frame/requester.ts";
import type { Buckets } from "../../limits/buckets.ts";
import type { Log } from "../../log.ts";
import type { Guard, Person } from "../who.ts";
import { FRESH_SECONDS, IDLE_SECONDS } from "./limits.ts";

/** What tries at the console are counted under. */
export const TRIES = "console" as const;

/** What the routes without a sign-in use. */
export interface SignInParts {
  sql: Sql;
  identity: Identity;
  buckets: Buckets;
  log: Log;
  /** Browsers in which a person signed in before. */
  devices: Devices;
  /** The public address, without a slash at its end. */
  site: () => string;
}

/** Authenticates sessions of the console and confirms passwords again. */
export function openConsoleGuard(doors: SignInParts): Guard {
  const { sql, identity, log } = doors;
  return {
    async whoIs(request, requestId) {
      const { cookie } = request.headers;
      if (cookie === undefined) return null;
      const found = await identity.findSession(cookie);
      if (found === null) return null;
      const limits = { idleSeconds: IDLE_SECONDS, freshSeconds: FRESH_SECONDS };
      const session = await useHolderSession(sql, found.sessionId, limits);
      if (session === null) return null;
      const { userId, email, accountId, isSuspended, ...facts } = session;
      const person = { userId, email, address: addressOf(request), userAgent: userAgentOf(request), requestId };
      return { ...facts, person, holder: accountId === null ? null : { ...person, accountId, isSuspended } };
    },
    async confirm({ person, sessionId, hasTwoFactor }, { password, code, request }) {
      const requester = requesterOf(request as Request);
      const proof = await prove(
        { ...doors, surface: TRIES },
        { ...person, hasTwoFactor, sessionId },
        { password, code, requester },
      );
      if (proof.ok) {
        await confirmSession(sql, sessionId);
        return null;
      }
      if (proof.waitSeconds === 0) noteRefusal(log, person, proof.problem);
      return proof.problem;
    },
  };
}

/** Logs that a signed-in person failed to confirm their password or code. */
export function noteRefusal(log: Log, { requestId, userId }: Person, reason: string): void {
  log.warn({ request_id: requestId, user: userId, reason }, "a proof of who it is was refused at /console");
}
