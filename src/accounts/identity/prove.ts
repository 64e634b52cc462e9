import type { Sql } from "../../db/client.ts";
import type { Buckets } from "../../limits/buckets.ts";
import { askOwnCode, WRONG_CODE, WRONG_PASSWORD } from "./code.ts";
import { noteWrongCode } from "./guessed-code.ts";
import type { Requester, Identity } from "./identity.ts";
import { findPasswordHash } from "../operators/operator-store.ts";
import { isPassword } from "./password.ts";
import { noteFailure, takeTry, tooMany } from "./tries.ts";

/** Whether a password and code were right. If not: the message, and how long to wait if no attempts are left. */
export type Proof = { ok: true } | { ok: false; problem: string; waitSeconds: number };

/**
 * Checks the password of a signed-in person again, and the code of those with two-factor authentication. Attempts are limited
 * by session, so that they cannot be used up from elsewhere.
 */
export async function prove(
  parts: { sql: Sql; identity: Identity; buckets: Buckets; surface: "console" | "ops"; site: () => string },
  person: { userId: string; email: string; hasTwoFactor: boolean; sessionId: string | null },
  given: { password: string; code: string; requester: Requester },
): Promise<Proof> {
  const { sql, buckets, surface } = parts;
  const { address } = given.requester;
  const attempt = { what: surface, address, who: person.email, device: person.sessionId };
  const wait = await takeTry(buckets, attempt);
  if (wait > 0) return { ok: false, problem: tooMany(wait), waitSeconds: wait };
  const kept = await findPasswordHash(sql, person);
  if (kept === null || !(await isPassword(given.password, kept))) {
    await noteFailure(buckets, attempt);
    return { ok: false, problem: WRONG_PASSWORD, waitSeconds: 0 };
  }
  if (!person.hasTwoFactor) return { ok: true };
  const { status } = await askOwnCode(parts, given.requester, person.userId, given.code);
  if (status === 200) return { ok: true };
  await noteFailure(buckets, attempt);
  if (given.code !== "") await noteWrongCode(parts, person);
  return { ok: false, problem: WRONG_CODE, waitSeconds: 0 };
}
