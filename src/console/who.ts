import type { IncomingMessage } from "node:http";
import type { Request, Response } from "express";
import type { Reads } from "../db/reads.ts";
import type { Answers } from "../frame/answer.ts";
import { PageError } from "../frame/errors.ts";
import type { ConsoleParts, Holder } from "./contract.ts";

/** A person who is signed in at the console, with or without an account. */
export interface Person {
  userId: string;
  email: string;
  address: string;
  userAgent: string;
  requestId: string;
}

/** A signed-in person with the state of their session. */
export interface SignedInHolder {
  person: Person;
  /** Null if they hold no account yet; `/console/welcome` opens one. */
  holder: Holder | null;
  sessionId: string;
  /** Whether the person signed in or confirmed the password in the last ten minutes. */
  isFresh: boolean;
  hasTwoFactor: boolean;
  /** Whether the account accepted the current terms. */
  hasCurrentTerms: boolean;
}

/** Authenticates requests by their cookies. */
export interface Guard {
  /** The sender of a request; null if they are not signed in, or the session has ended. */
  whoIs(request: Request, requestId: string): Promise<SignedInHolder | null>;
  /**
   * Checks the password and second factor of a signed-in person again. Null if both are right, else the message to show.
   * Attempts are limited.
   */
  confirm(
    who: SignedInHolder,
    given: { password: string; code: string; request: IncomingMessage },
  ): Promise<string | null>;
}

/** What the routes of the console use. */
export interface RouteParts {
  parts: ConsoleParts;
  answers: Answers;
  guard: Guard;
  /** Runs the queries of a page until its client disconnects. */
  reads: Reads;
}

const known = new WeakMap<Response, SignedInHolder>();

/** Stores the signed-in person for the rest of the request. */
export function setSignedIn(response: Response, who: SignedInHolder): void {
  known.set(response, who);
}

/** The signed-in person of a request; null if there is none. */
export function findSignedIn(response: Response): SignedInHolder | null {
  return known.get(response) ?? null;
}

/** The signed-in person of a request. @throws PageError 401 if there is none. */
export function requireSignedIn(response: Response): SignedInHolder {
  const who = findSignedIn(response);
  if (who === null) throw new PageError(401, "sign in first");
  return who;
}

/** The signed-in person with their account. @throws PageError 401 without a sign-in, 403 without an account. */
export function requireHolder(response: Response): SignedInHolder & { holder: Holder } {
  const who = requireSignedIn(response);
  const { holder } = who;
  if (holder === null)
    throw new PageError(403, "you hold no account yet; agree to the terms at /console/welcome first");
  return { ...who, holder };
}
