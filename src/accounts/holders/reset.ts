import { appendAudit } from "../../audit/store.ts";
import type { Sql } from "../../db/client.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { type HolderActor, holderEntry } from "./holder-entry.ts";
import { passwordChanged, resetPassword } from "../letters.ts";
import { findMailToken, insertMailToken, takeMailToken, withdrawMailTokens } from "./mail-token-store.ts";
import { replacePassword, savePassword } from "../operators/operator-store.ts";
import { hashPassword, passwordProblem } from "../identity/password.ts";
import { findPerson, lockPerson } from "./person-store.ts";
import { endSessions } from "../identity/session-store.ts";
import type { Mailing } from "./sign-up.ts";

/** Lifetime of a password reset link. */
const LASTS_SECONDS = 3_600;

/**
 * Mails a password reset link to a holder; does nothing for an unknown address. Operators get no link: an admin resets
 * their password, because it opens more than an account.
 */
export async function askReset(sql: Sql, { email, site, mailKey }: { email: string } & Mailing): Promise<void> {
  await sql.begin(async (tx) => {
    const known = await findPerson(tx, { email });
    if (known === null) return;
    await lockPerson(tx, known.userId);
    const person = await findPerson(tx, { email }); // again: they may have closed their account, or left the address
    if (person === null) return;
    const { userId, email: recipient } = person;
    const purpose = "reset-password" as const;
    const token = await insertMailToken(tx, { purpose, userId, email: recipient, lastsSeconds: LASTS_SECONDS });
    await queueMail(tx, { ...resetPassword({ site, token }), recipient, sealWith: mailKey });
  });
}

/** What came of choosing a new password with a link. */
export type Reset =
  | { ok: true; email: string }
  | { ok: false; reason: "unknown-link" }
  | { ok: false; reason: "password"; problem: string };

/**
 * Redeems a reset link: sets the new password, ends all sessions and revokes other links, so that a change of address that
 * a thief requested cannot take the account again. A second factor stays on.
 */
export async function setNewPassword(
  sql: Sql,
  { token, password, site, by }: { token: string; password: string; site: string; by: Omit<HolderActor, "accountId"> },
): Promise<Reset> {
  const found = await findMailToken(sql, "reset-password", token);
  if (found === null) return { ok: false, reason: "unknown-link" };
  const problem = await passwordProblem(password, found.email);
  if (problem !== null) return { ok: false, reason: "password", problem };
  const passwordHash = await hashPassword(password);
  return sql.begin(async (tx): Promise<Reset> => {
    await lockPerson(tx, found.userId);
    const taken = await takeMailToken(tx, "reset-password", token);
    const person = taken && (await findPerson(tx, { userId: taken.userId }));
    // the link may have been mailed to an address that was changed meanwhile and now belongs to a stranger
    if (!person || person.email !== taken?.email) return { ok: false, reason: "unknown-link" };
    const { userId, email, accountId } = person;
    await savePassword(tx, userId, passwordHash);
    await withdrawMailTokens(tx, userId);
    const ended = await endSessions(tx, userId);
    await queueMail(tx, { ...passwordChanged({ site, surface: "console" }), recipient: email });
    if (accountId !== null) {
      const after = { sessions_ended: ended };
      await appendAudit(tx, holderEntry({ ...by, accountId }, { action: "own.reset-password", after }));
    }
    return { ok: true, email };
  });
}

/** The new password of a holder who proved the old one. */
export interface PasswordChange {
  userId: string;
  sessionId: string;
  email: string;
  /** The hash of the old password, read before it was proven. */
  from: string | null;
  password: string;
  site: string;
  by: HolderActor;
}

/**
 * Changes the password of a verified person, ends their other sessions and revokes pending links. False if the password
 * was changed after it was proven.
 */
export async function changePassword(sql: Sql, change: PasswordChange): Promise<boolean> {
  const { userId, sessionId, email, from, password, site, by } = change;
  const to = await hashPassword(password);
  return sql.begin(async (tx) => {
    await lockPerson(tx, userId);
    if (!(await replacePassword(tx, userId, { from, to }))) return false;
    await withdrawMailTokens(tx, userId);
    const ended = await endSessions(tx, userId, { except: sessionId });
    await queueMail(tx, { ...passwordChanged({ site, surface: "console" }), recipient: email });
    await appendAudit(tx, holderEntry(by, { action: "own.password", after: { sessions_ended: ended } }));
    return true;
  });
}
