import type { Sql } from "../../db/client.ts";
import type { Identity, IdentityResponse, Requester } from "./identity.ts";
import { findRevocations } from "./session-store.ts";

/** Why a sign-in that `isRevoked` is refused, for the person and for the audit log. */
export const SIGNED_OUT = "you were signed out meanwhile, for instance because the password was changed; sign in again";
export const REVOKED = "sessions of this person were ended meanwhile";

/** A response with a session or a pending second step, or neither if it `isRevoked`. */
export interface SessionResponse extends IdentityResponse {
  /** Whether sessions of the person were ended meanwhile, this one too: the response then has no cookies. */
  isRevoked: boolean;
}

/** The Cookie header that a browser sends after a response. */
export function cookieOf({ cookies }: IdentityResponse): string {
  return cookies.map((one) => one.split(";", 1)[0]).join("; ");
}

/**
 * Asks the library for a session of a person. Ends it if sessions of theirs were ended meanwhile, for instance by a new
 * password: the old one may have been checked for it, and only sessions that are stored by then are deleted.
 */
export async function askSession(
  { sql, identity }: { sql: Sql; identity: Identity },
  by: { email: string } | { userId: string },
  requester: Requester,
  ask: () => Promise<IdentityResponse>,
): Promise<SessionResponse> {
  const before = await findRevocations(sql, by);
  const response = await ask();
  // waits for an end that is not committed yet; a later one sees the session
  const after = response.status === 200 ? await findRevocations(sql, by, { locks: true }) : before;
  const isRevoked = response.status === 200 && (after === null || after !== before);
  if (!isRevoked) return { ...response, isRevoked };
  await endGiven(identity, requester, response);
  return { ...response, cookies: [], isRevoked };
}

/**
 * Records a session before its cookies are passed on. One that cannot be recorded is ended, so that none is without a trace.
 *
 * @throws what `record` throws
 */
export async function recordOrEnd(
  { identity }: { identity: Identity },
  requester: Requester,
  response: IdentityResponse,
  record: () => Promise<void>,
): Promise<void> {
  try {
    await record();
  } catch (error) {
    await endGiven(identity, requester, response);
    throw error;
  }
}

/** Ends the session that a response has. */
async function endGiven(identity: Identity, requester: Requester, response: IdentityResponse): Promise<void> {
  await identity.ask("/sign-out", {}, { ...requester, cookie: cookieOf(response) });
}
