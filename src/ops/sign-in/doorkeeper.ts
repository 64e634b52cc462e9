import type { Request } from "express";
import { z } from "zod";
import { takeCode } from "../../accounts/code-store.ts";
import type { Asker, Identity, IdentityAnswer } from "../../accounts/identity.ts";
import { findPasswordHash } from "../../accounts/operator-store.ts";
import { isPassword } from "../../accounts/password.ts";
import { confirmSession, useOperatorSession } from "../../accounts/session-store.ts";
import { takeTry } from "../../accounts/tries.ts";
import { audited } from "../../audit/store.ts";
import type { Sql } from "../../db/client.ts";
import type { Buckets } from "../../limits/buckets.ts";
import type { Log } from "../../log.ts";
import { auditEntry } from "../audit-entry.ts";
import type { Visitor } from "../contract.ts";
import type { Doorkeeper } from "../who.ts";
import { FRESH_SECONDS, IDLE_SECONDS } from "./limits.ts";

/** What the doors are made of. */
export interface DoorParts {
  sql: Sql;
  identity: Identity;
  buckets: Buckets;
  log: Log;
}

export const WRONG_PASSWORD = "the password is not right";
export const WRONG_CODE = "the code is not right, no longer, or was used already";

const challenge = z.looseObject({ twoFactorRedirect: z.literal(true) });

/** Knows who is signed in, and whether it is still them. */
export function openDoorkeeper(doors: DoorParts): Doorkeeper {
  const { sql, identity, buckets } = doors;
  return {
    async whoIs(request, requestId) {
      const { cookie } = request.headers;
      if (cookie === undefined) return null;
      const found = await identity.findSession(cookie);
      if (found === null) return null;
      const limits = { idleSeconds: IDLE_SECONDS, freshSeconds: FRESH_SECONDS };
      const session = await useOperatorSession(sql, found.sessionId, limits);
      if (session === null) return null;
      const { userId, email, role, ...facts } = session;
      return { ...facts, visitor: { operatorId: userId, email, role, address: addressOf(request), requestId } };
    },
    async confirm({ visitor, sessionId, hasTwoFactor }, { password, code, request }) {
      const wait = await takeTry(buckets, "ops", visitor.address, visitor.email);
      if (wait > 0) return tooMany(wait);
      const kept = await findPasswordHash(sql, visitor.operatorId);
      if (kept === null || !(await isPassword(password, kept))) {
        await noteRefusal(doors, visitor, WRONG_PASSWORD);
        return WRONG_PASSWORD;
      }
      if (hasTwoFactor) {
        const { status } = await askCode(doors, askerOf(request as Request), visitor.operatorId, code);
        if (status !== 200) {
          await noteRefusal(doors, visitor, WRONG_CODE);
          return WRONG_CODE;
        }
      }
      await confirmSession(sql, sessionId);
      return null;
    },
  };
}

/**
 * Checks a code of somebody: six digits are of an authenticator, anything else is a backup code. Either is taken once:
 * who looked over a shoulder comes too late.
 */
export async function askCode(
  { sql, identity }: DoorParts,
  asker: Asker,
  userId: string,
  code: string,
): Promise<IdentityAnswer> {
  const plain = code.replaceAll(/\s/g, "").slice(0, 100);
  if (!/^\d{6}$/.test(plain)) return identity.ask("/two-factor/verify-backup-code", { code: plain }, asker);
  // before it is checked, so that of two at once one is refused
  if (!(await takeCode(sql, userId, plain))) return { status: 401, body: null, cookies: [] };
  return identity.ask("/two-factor/verify-totp", { code: plain }, asker);
}

/** Writes down that somebody who is signed in could not show once more that it is them. */
export async function noteRefusal({ sql, log }: DoorParts, visitor: Visitor, reason: string): Promise<void> {
  const { email: actor, requestId } = visitor;
  log.warn({ request_id: requestId, actor, reason }, "a proof of who it is was refused at /ops");
  const entry = auditEntry(visitor, { action: "session.refused", target: `operator ${actor}`, reason });
  await audited(sql, () => Promise.resolve({ result: null, entry }));
}

/** Who asks, as the library wants to know it. */
export function askerOf(request: Request): Asker {
  const { cookie = "", "user-agent": userAgent = "" } = request.headers;
  return { cookie, userAgent: userAgent.slice(0, 300), address: addressOf(request) };
}

/** Whether a second step is asked for after a right password. */
export function wantsCode({ status, body }: IdentityAnswer): boolean {
  return status === 200 && challenge.safeParse(body).success;
}

/** What to say where there are no tries left. */
export function tooMany(waitSeconds: number): string {
  return `too many tries; wait ${waitSeconds} s and try again`;
}

/** The address from which a request comes. */
export function addressOf(request: Request): string {
  return request.ip ?? "unknown";
}
