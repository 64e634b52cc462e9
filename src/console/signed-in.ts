import type { Reads } from "../db/reads.ts";
import type { Responder } from "../frame/responder.ts";
import type { Guard as GuardOf } from "../frame/sign-in/guard.ts";
import { keepSignedIn } from "../frame/sign-in/guard.ts";
import type { ConsoleParts, Holder } from "./contract.ts";

/** A signed-in holder with the state of their session. */
export interface SignedInHolder {
  holder: Holder;
  sessionId: string;
  /** Whether the holder signed in or confirmed the password in the last ten minutes. */
  isFresh: boolean;
  hasTwoFactor: boolean;
  /** Whether the account accepted the current terms. */
  hasCurrentTerms: boolean;
}

export type Guard = GuardOf<SignedInHolder>;

/** What the routes of the console use. */
export interface RouteParts {
  parts: ConsoleParts;
  responder: Responder;
  guard: Guard;
  /** Runs the queries of a page until its client disconnects. */
  reads: Reads;
}

/** The signed-in holder of a request. */
export const { setSignedIn, findSignedIn, requireSignedIn } = keepSignedIn<SignedInHolder>();
