import { timingSafeEqual } from "node:crypto";
import { appendAudit } from "../../audit/store.ts";
import { announce } from "../../callers/key-store.ts";
import type { Sql, Transaction } from "../../db/client.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import type { MailKey } from "../../mail/seal.ts";
import { type GivenConsent, keepLegalText, saveEarlierConsents } from "./consent-store.ts";
import { type HolderActor, holderEntry } from "./holder-entry.ts";
import type { LegalKind } from "../legal.ts";
import { confirmAddress, signUpOfKnown } from "../letters.ts";
import { hashPassword, isPassword } from "../identity/password.ts";
import { insertMailToken, takeMailToken } from "./mail-token-store.ts";
import { findPerson, insertPerson, isTaken, openAccount } from "./person-store.ts";
import {
  deleteSignUps,
  findSignUp,
  findSignUpOfBrowser,
  type PendingSignUp,
  saveSignUp,
  timeOf,
} from "./sign-up-store.ts";
import { hashToken, makeToken } from "../token.ts";

/** How long the link of a sign-up works, and the browser that sent it is known. */
export const SIGN_UP_SECONDS = 24 * 3_600;
const SIGN_IN_WITHIN_SECONDS = 60;
/** Consents that every account requires. */
const AGREED: readonly LegalKind[] = ["terms", "adult"];

/** The origin of a consent. */
export interface Origin {
  address: string;
  userAgent: string;
}

/**
 * Stores a sign-up with its consents and mails a link. Account and password exist only after the link is confirmed, so a
 * stranger cannot prepare an account for another person's address. Only the mail shows whether the address is registered:
 * response and timing are the same.
 */
export async function signUp(
  sql: Sql,
  { email, password, origin, ...mailing }: { email: string; password: string; origin: Origin } & Mailing,
): Promise<{ browser: string } & Sent> {
  const passwordHash = await hashPassword(password);
  const { token: browser, sha256: browserSha256 } = makeToken();
  return sql.begin(async (tx) => {
    const givenAt = await timeOf(tx);
    const consents: GivenConsent[] = [];
    for (const kind of AGREED) consents.push({ ...(await keepLegalText(tx, kind)), givenAt, ...origin });
    return { browser, ...(await sendLink(tx, { email, passwordHash, browserSha256, consents }, mailing)) };
  });
}

/** Our public address, and the key that encrypts links in mails. */
export interface Mailing {
  site: string;
  mailKey: MailKey;
}

/** The path of the mailed link; null if the address belongs to a person or an account. */
export interface Sent {
  path: string | null;
}

/** Sends the mail of a sign-up again, with another link; only from the browser that signed up. */
export async function resendSignUp(
  sql: Sql,
  { email, browser, ...mailing }: { email: string; browser: string } & Mailing,
): Promise<Sent> {
  return sql.begin(async (tx) => {
    const pending = await findSignUpOfBrowser(tx, { email, browser });
    return pending === null ? { path: null } : sendLink(tx, pending, mailing);
  });
}

async function sendLink(tx: Transaction, pending: PendingSignUp, mailing: Mailing): Promise<Sent> {
  const { email } = pending;
  const { token, sha256 } = makeToken();
  const known = await findPerson(tx, { email });
  // if the address is known, the token is stored and never shown, so that both cases take the same time
  await saveSignUp(tx, { ...pending, sha256, lastsSeconds: SIGN_UP_SECONDS });
  const letter = known === null ? confirmAddress({ ...mailing, token }) : signUpOfKnown(mailing);
  await queueMail(tx, { ...letter, recipient: email, sealWith: mailing.mailKey });
  return { path: (await isTaken(tx, email)) ? null : `/console/confirm?token=${token}` };
}

/** The outcome of confirming a sign-up. */
export type Confirmed =
  | { ok: true; email: string; accountId: bigint; isClaimed: boolean; signInToken: string }
  | { ok: false; reason: "unknown-link" | "wrong-password" | "known-address" };

/**
 * Confirms a sign-up: creates the person and their account, or claims one that was created by command. Needs the browser of
 * the sign-up or its password: with the link alone, an owner who clicks it would activate an attacker's password.
 * `signInToken` signs in within a minute. Deletes all other sign-ups of the address.
 */
export async function confirmSignUp(
  sql: Sql,
  {
    token,
    password,
    browser,
    by,
  }: { token: string; password: string; browser: string; by: Omit<HolderActor, "accountId"> },
): Promise<Confirmed> {
  const pending = await findSignUp(sql, token);
  if (pending === null) return { ok: false, reason: "unknown-link" };
  const { email, passwordHash, consents } = pending;
  if (!isOfBrowser(pending, browser) && !(await isPassword(password, passwordHash))) {
    return { ok: false, reason: "wrong-password" };
  }
  return sql.begin(async (tx): Promise<Confirmed> => {
    await deleteSignUps(tx, email);
    const userId = await insertPerson(tx, { email, passwordHash });
    if (userId === null) return { ok: false, reason: "known-address" };
    const opened = await openAccount(tx, { userId, email });
    if (opened === null) throw new Error("an account whose address signs in nowhere has a holder");
    await saveEarlierConsents(tx, opened.accountId, consents);
    await noteOpened(tx, { ...by, ...opened });
    const signInToken = await insertMailToken(tx, {
      purpose: "first-sign-in",
      userId,
      email,
      lastsSeconds: SIGN_IN_WITHIN_SECONDS,
    });
    return { ok: true, email, ...opened, signInToken };
  });
}

/** Whether a browser's token belongs to a sign-up. */
export function isOfBrowser({ browserSha256 }: Pick<PendingSignUp, "browserSha256">, browser: string): boolean {
  return timingSafeEqual(browserSha256, hashToken(browser));
}

/** Redeems the `signInToken` of {@link confirmSignUp} and returns the user id; null if it is unknown, used or expired. */
export async function redeemFirstSignIn(sql: Sql, token: string): Promise<string | null> {
  const used = await sql.begin((tx) => takeMailToken(tx, "first-sign-in", token));
  return used?.userId ?? null;
}

async function noteOpened(tx: Transaction, { isClaimed, ...by }: HolderActor & { isClaimed: boolean }): Promise<void> {
  await announce(tx); // the keys of a claimed account may have waited for a verified address
  await appendAudit(tx, holderEntry(by, { action: "account.open", after: { claimed: isClaimed, agreed: AGREED } }));
}
