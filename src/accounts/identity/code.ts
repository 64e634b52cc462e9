import { z } from "zod";
import type { Sql } from "../../db/client.ts";
import { takeCode } from "./code-store.ts";
import { type Identity, type IdentityResponse, type Requester, withoutChallenge, withoutSession } from "./identity.ts";

export const WRONG_PASSWORD = "the password is not right";
export const WRONG_CODE = "the code is not right, no longer, or was used already";

const REFUSED: IdentityResponse = { status: 401, body: null, cookies: [] };
const checked = z.object({ user: z.object({ id: z.string() }) });

interface CodeParts {
  sql: Sql;
  identity: Identity;
}

/**
 * Checks the code of a person whose sign-in waits for it: six digits are an authenticator code, anything else a backup code.
 * Each works once, so a code that was observed cannot be reused.
 */
export async function askCode(
  parts: CodeParts,
  requester: Requester,
  userId: string,
  code: string,
): Promise<IdentityResponse> {
  return ask(parts, { ...requester, cookie: withoutSession(requester.cookie) }, userId, code);
}

/** Checks the code of a signed-in person like {@link askCode}; it is refused if their session has ended. */
export async function askOwnCode(
  parts: CodeParts,
  requester: Requester,
  userId: string,
  code: string,
): Promise<IdentityResponse> {
  return ask(parts, { ...requester, cookie: withoutChallenge(requester.cookie) }, userId, code);
}

async function ask(
  { sql, identity }: CodeParts,
  requester: Requester,
  userId: string,
  code: string,
): Promise<IdentityResponse> {
  const plain = code.replaceAll(/\s/g, "").slice(0, 100);
  const isShown = /^\d{6}$/.test(plain);
  // marked before the check, so that one of two concurrent uses is refused
  if (isShown && !(await takeCode(sql, userId, plain))) return REFUSED;
  const path = isShown ? "/two-factor/verify-totp" : "/two-factor/verify-backup-code";
  const response = await identity.ask(path, { code: plain }, requester);
  // the library decides by cookies whose code it is
  const isTheirs = response.status !== 200 || checked.parse(response.body).user.id === userId;
  return isTheirs ? response : REFUSED;
}
