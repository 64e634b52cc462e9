import type { IncomingMessage } from "node:http";
import type { Request, Response } from "express";
import type { Visitor } from "./contract.ts";
import { PageError } from "../frame/errors.ts";

/** Somebody who is signed in, and how. */
export interface SignedIn {
  visitor: Visitor;
  sessionId: string;
  /** Whether the sign-in, or the last time the password was given, is less than ten minutes ago. */
  isFresh: boolean;
  hasPassword: boolean;
  hasTwoFactor: boolean;
}

/** Knows people by their cookies. */
export interface Guard {
  /** Who sent a request; null for somebody who is not signed in, or no longer. */
  whoIs(request: Request, requestId: string): Promise<SignedIn | null>;
  /**
   * Checks password and second factor of somebody who is signed in, once more; null where both are right, else what to say.
   * Tries are limited.
   */
  confirm(who: SignedIn, given: { password: string; code: string; request: IncomingMessage }): Promise<string | null>;
}

const known = new WeakMap<Response, SignedIn>();

/** Notes who asks. */
export function remember(response: Response, who: SignedIn): void {
  known.set(response, who);
}

/** Who asks; null where nobody is signed in. */
export function whoAsks(response: Response): SignedIn | null {
  return known.get(response) ?? null;
}

/** Who asks, behind the door. */
export function signedIn(response: Response): SignedIn {
  const who = whoAsks(response);
  if (who === null) throw new PageError(401, "sign in first");
  return who;
}
