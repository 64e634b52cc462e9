import type { IncomingMessage } from "node:http";
import type { Request, Response } from "express";
import type { Reads } from "../db/reads.ts";
import type { Answers } from "../frame/answer.ts";
import { PageError } from "../frame/errors.ts";
import type { ConsoleParts, Holder } from "./contract.ts";

/** Somebody who is signed in at the console, whether or not an account is theirs. */
export interface Person {
  userId: string;
  email: string;
  address: string;
  userAgent: string;
  requestId: string;
}

/** Somebody who is signed in, and how. */
export interface SignedInHolder {
  person: Person;
  /** Null where they hold no account yet, such as an operator who looks in: they are asked at `/console/welcome`. */
  holder: Holder | null;
  sessionId: string;
  /** Whether the sign-in, or the last time the password was given, is less than ten minutes ago. */
  isFresh: boolean;
  hasTwoFactor: boolean;
  /** Whether the account agreed to the terms that hold now. */
  hasCurrentTerms: boolean;
}

/** Knows people by their cookies. */
export interface Doorkeeper {
  /** Who sent a request; null for somebody who is not signed in, or no longer. */
  whoIs(request: Request, requestId: string): Promise<SignedInHolder | null>;
  /**
   * Checks password and second factor of somebody who is signed in, once more; null where both are right, else what to say.
   * Tries are limited.
   */
  confirm(
    who: SignedInHolder,
    given: { password: string; code: string; request: IncomingMessage },
  ): Promise<string | null>;
}

/** What pages and actions of the console are served with. */
export interface RouteParts {
  parts: ConsoleParts;
  answers: Answers;
  doorkeeper: Doorkeeper;
  /** Runs what a page reads, until its client is gone. */
  reads: Reads;
}

const known = new WeakMap<Response, SignedInHolder>();

/** Notes who asks. */
export function setSignedIn(response: Response, who: SignedInHolder): void {
  known.set(response, who);
}

/** Who asks; null where nobody is signed in. */
export function findSignedIn(response: Response): SignedInHolder | null {
  return known.get(response) ?? null;
}

/** Who asks, behind the door. */
export function requireSignedIn(response: Response): SignedInHolder {
  const who = findSignedIn(response);
  if (who === null) throw new PageError(401, "sign in first");
  return who;
}

/** Who asks, with the account that is theirs: behind the page that asks those who hold none. */
export function requireHolder(response: Response): SignedInHolder & { holder: Holder } {
  const who = requireSignedIn(response);
  const { holder } = who;
  if (holder === null)
    throw new PageError(403, "you hold no account yet; agree to the terms at /console/welcome first");
  return { ...who, holder };
}
