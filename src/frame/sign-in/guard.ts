import type { IncomingMessage } from "node:http";
import type { Request, Response } from "express";
import { SIGNED_OUT } from "../../accounts/identity/ask-session.ts";
import type { Devices } from "../../accounts/identity/devices.ts";
import type { Identity, IdentitySurface } from "../../accounts/identity/identity.ts";
import { prove } from "../../accounts/identity/prove.ts";
import { confirmSession } from "../../accounts/identity/session-store.ts";
import type { Sql } from "../../db/client.ts";
import type { Buckets } from "../../limits/buckets.ts";
import type { Log } from "../../log.ts";
import { PageError } from "../errors.ts";
import { requesterOf } from "../requester.ts";

/** What the sign-in of a surface uses. */
export interface SignInParts {
  /** Attempts are counted by surface, and a session opens only this one. */
  surface: IdentitySurface;
  sql: Sql;
  identity: Identity;
  buckets: Buckets;
  log: Log;
  /** Browsers in which a person signed in before. */
  devices: Devices;
  /** The public address, without a trailing slash. */
  site: () => string;
}

/** The account that is signed in. */
export interface CurrentAccount {
  userId: string;
  email: string;
  address: string;
  sessionId: string;
  hasTwoFactor: boolean;
}

/** Authenticates requests by their cookies. */
export interface Guard<SignedIn> {
  /** The sender of a request; null if they are not signed in, or the session has ended. */
  whoIs(request: Request, requestId: string): Promise<SignedIn | null>;
  /**
   * Checks the password and the code of a signed-in person again. Null if both are right, else the message to show.
   * Attempts are limited.
   */
  confirm(who: SignedIn, given: { password: string; code: string; request: IncomingMessage }): Promise<string | null>;
}

/** Makes the guard of a surface. */
export function openGuard<SignedIn>(
  parts: SignInParts,
  surface: {
    /** The person of a session; null if it is not valid here. */
    find(sessionId: string, request: Request, requestId: string): Promise<SignedIn | null>;
    accountOf(who: SignedIn): CurrentAccount;
    /** Records a wrong password or code. */
    noteRefusal(who: SignedIn, reason: string): Promise<void>;
  },
): Guard<SignedIn> {
  return {
    async whoIs(request, requestId) {
      const { cookie } = request.headers;
      const found = cookie === undefined ? null : await parts.identity.findSession(cookie);
      return found === null ? null : surface.find(found.sessionId, request, requestId);
    },
    async confirm(who, { password, code, request }) {
      const account = surface.accountOf(who);
      const proof = await prove(parts, account, { password, code, requester: requesterOf(request as Request) });
      if (proof.ok) {
        return (await confirmSession(parts.sql, account.sessionId)) ? null : SIGNED_OUT;
      }
      if (proof.waitSeconds === 0) await surface.noteRefusal(who, proof.problem);
      return proof.problem;
    },
  };
}

/** Keeps the signed-in person of each request. `requireSignedIn` throws a PageError 401 if there is none. */
export function keepSignedIn<SignedIn>() {
  const known = new WeakMap<Response, SignedIn>();
  const findSignedIn = (response: Response): SignedIn | null => known.get(response) ?? null;
  return {
    findSignedIn,
    setSignedIn: (response: Response, who: SignedIn | null): void => {
      if (who === null) known.delete(response);
      else known.set(response, who);
    },
    requireSignedIn: (response: Response): SignedIn => {
      const who = findSignedIn(response);
      if (who === null) throw new PageError(401, "sign in first");
      return who;
    },
  };
}
