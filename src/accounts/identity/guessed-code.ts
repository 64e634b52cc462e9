import type { Sql } from "../../db/client.ts";
import type { Buckets } from "../../limits/buckets.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { codesGuessed } from "../letters.ts";

/** Wrong codes that a person may mistype within a day before they get a mail. */
const MISTYPED = { points: 2, seconds: 86_400 };

/**
 * Mails a person whose password was right and whose second factor was not, several times: someone may know the password.
 * At most one mail a day (UTC).
 */
export async function noteWrongCode(
  { sql, buckets, site, surface }: { sql: Sql; buckets: Buckets; site: () => string; surface: "console" | "ops" },
  { userId, email }: { userId: string; email: string },
): Promise<void> {
  const { isGranted } = await buckets.draw(`${surface}-wrong-code ${userId}`, MISTYPED);
  if (isGranted) return;
  const letter = codesGuessed({ site: site(), page: surface === "console" ? "/console/security" : "/ops/me" });
  const day = new Date().toISOString().slice(0, 10);
  await queueMail(sql, { ...letter, recipient: email, dedupKey: `codes guessed ${userId} ${day}` });
}
