import type { Sql } from "../db/client.ts";
import { takeCode } from "./code-store.ts";
import type { Asker, Identity, IdentityAnswer } from "./identity.ts";

export const WRONG_PASSWORD = "the password is not right";
export const WRONG_CODE = "the code is not right, no longer, or was used already";

/**
 * Checks a code of somebody: six digits are of an authenticator, anything else is a backup code. Either is taken once:
 * who looked over a shoulder comes too late.
 */
export async function askCode(
  { sql, identity }: { sql: Sql; identity: Identity },
  asker: Asker,
  userId: string,
  code: string,
): Promise<IdentityAnswer> {
  const plain = code.replaceAll(/\s/g, "").slice(0, 100);
  if (!/^\d{6}$/.test(plain)) return identity.ask("/two-factor/verify-backup-code", { code: plain }, asker);
  // before it is checked, so that of two at once one is refused
  if (!(await takeCode(sql, userId, plain))) return { status: 401, body: null, cookies: [] };
  return identity.ask("/two-factor/verify-totp", { code: plain }, asker);
}
