import type { Guard as GuardOf } from "../frame/sign-in/guard.ts";
import { keepSignedIn } from "../frame/sign-in/guard.ts";
import type { Visitor } from "./contract.ts";

/** A signed-in member of staff, with the state of their session. */
export interface SignedIn {
  visitor: Visitor;
  sessionId: string;
  /** Whether they signed in or confirmed the password in the last ten minutes. */
  isFresh: boolean;
  hasPassword: boolean;
  hasTwoFactor: boolean;
}

export type Guard = GuardOf<SignedIn>;

/** The signed-in member of staff of a request. */
export const { setSignedIn, findSignedIn, requireSignedIn } = keepSignedIn<SignedIn>();
