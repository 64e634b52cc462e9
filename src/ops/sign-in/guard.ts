import type { Request } from "express";
import type { Devices } from "../../accounts/devices.ts";
import type { Identity } from "../../accounts/identity.ts";
import { prove } from "../../accounts/prove.ts";
import { confirmSession, useOperatorSession } from "../../accounts/session-store.ts";
import { audited } from "../../audit/store.ts";
import type { Sql } from "../../db/client.ts";
import { addressOf, requesterOf } from "../../frame/requester.ts";
import type { Buckets } from "../../limits/buckets.ts";
import type { Log } from "../../log.ts";
import { auditEntry } from "../audit-entry.ts";
import type { Visitor } from "../contract.ts";
import type { Guard } from "../who.ts";
import { FRESH_SECONDS, IDLE_SECONDS } from "./limits.ts";

/** What the doors are made of. */
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

/** Knows who is signed in, and whether it is still them. */
export function openGuard(doors: SignInParts): Guard {
  const { sql, identity } = doors;
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
      const person = { userId: visitor.operatorId, email: visitor.email, hasTwoFactor, sessionId };
      const requester = requesterOf(request as Request);
      const proof = await prove({ ...doors, surface: "ops" }, person, { password, code, requester });
      if (proof.ok) {
        await confirmSession(sql, sessionId);
        return null;
      }
      if (proof.waitSeconds === 0) await noteRefusal(doors, visitor, proof.problem);
      return proof.problem;
    },
  };
}

/** Writes down that somebody who is signed in could not show once more that it is them. */
export async function noteRefusal({ sql, log }: SignInParts, visitor: Visitor, reason: string): Promise<void> {
  const { email: actor, requestId } = visitor;
  log.warn({ request_id: requestId, actor, reason }, "a proof of who it is was refused at /ops");
  const entry = auditEntry(visitor, { action: "session.refused", target: `operator ${actor}`, reason });
  await audited(sql, () => Promise.resolve({ result: null, entry }));
}
