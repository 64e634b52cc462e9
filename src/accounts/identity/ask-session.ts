import type { Sql } from "../../db/client.ts";
import { findPasswordHash } from "../operators/operator-store.ts";
import type { Identity, IdentityResponse, Requester } from "./identity.ts";

/** A response with a session or a pending second step, or neither if it `isRevoked`. */
export interface SessionResponse extends IdentityResponse {
  /** Whether the password was changed meanwhile: the response then has no cookies, and its session has ended. */
  isRevoked: boolean;
}

/**
 * Asks the library for a session of a person. Ends it if their password was changed meanwhile: the old password may have
 * been checked for it, and the change ends only the sessions that it sees.
 */
export async function askSession(
  { sql, identity }: { sql: Sql; identity: Identity },
  by: { email: string } | { userId: string },
  requester: Requester,
  ask: () => Promise<IdentityResponse>,
): Promise<SessionResponse> {
  const before = await findPasswordHash(sql, by);
  const response = await ask();
  // waits for a change that is not committed yet; a later one sees the session
  const isRevoked = response.status === 200 && (await findPasswordHash(sql, by, { locks: true })) !== before;
  if (!isRevoked) return { ...response, isRevoked };
  const cookie = response.cookies.map((one) => one.split(";", 1)[0]).join("; ");
  await identity.ask("/sign-out", {}, { ...requester, cookie });
  return { ...response, cookies: [], isRevoked };
}
