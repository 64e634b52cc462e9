import { timingSafeEqual } from "node:crypto";
import { appendAudit } from "../audit/store.ts";
import { announce } from "../callers/store.ts";
import type { Sql, Transaction } from "../db/client.ts";
import { queueMail } from "../mail/outbox-store.ts";
import type { MailKey } from "../mail/seal.ts";
import { type GivenConsent, keepLegalText, saveConsent, saveEarlierConsents } from "./consent-store.ts";
import { type HolderActor, holderEntry } from "./holder-entry.ts";
import type { LegalKind } from "./legal.ts";
import { confirmAddress, signUpOfKnown } from "./letters.ts";
import { hashPassword, isPassword } from "./password.ts";
import { insertMailToken, takeMailToken } from "./mail-token-store.ts";
import { findPerson, insertPerson, isTaken, lockPerson, openAccount } from "./person-store.ts";
import {
  deleteSignUps,
  findSignUp,
  findSignUpOfBrowser,
  type PendingSignUp,
  saveSignUp,
  timeOf,
} from "./sign-up-store.ts";
import { hashToken, makeToken } from "./token.ts";

/** How long the link of a sign-up works. */
const LASTS_SECONDS = 24 * 3_600;
const SIGN_IN_WITHIN_SECONDS = 60;
/** What everybody agrees to before an account is theirs. */
const AGREED: readonly LegalKind[] = ["terms", "adult"];

/** From where somebody agreed to something. */
export interface Origin {
  address: string;
  userAgent: string;
}

/**
 * Takes a sign-up with both boxes ticked: until the link in its mail is opened there is no account and no password, so
 * nobody can have one made ready for somebody else's address. Whether the address is known already shows in the mail
 * alone; what is done here, and how long it takes, is the same.
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

/** What mails with links are written with: our public address, and what links are encrypted with. */
export interface Mailing {
  site: string;
  mailKey: MailKey;
}

/** What was sent: the path of the link, for an address that nobody and no account has; null for all others. */
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
  await saveSignUp(tx, { ...pending, sha256, lastsSeconds: LASTS_SECONDS });
  const letter = known === null ? confirmAddress({ ...mailing, token }) : signUpOfKnown(mailing);
  await queueMail(tx, { ...letter, recipient: email, sealWith: mailing.mailKey });
  return { path: (await isTaken(tx, email)) ? null : `/console/confirm?token=${token}` };
}

/** What came of opening the link of a sign-up. */
export type Confirmed =
  | { ok: true; email: string; accountId: bigint; isClaimed: boolean; signInToken: string }
  | { ok: false; reason: "unknown-link" | "wrong-password" | "known-address" };

/**
 * Makes the sign-in and the account of a person who opens the link of a sign-up, in the browser that signed up or else with
 * the password that was chosen there: the link alone would let an attacker's password into the account of the address's
 * owner, who clicks on it. `signInToken` signs them in within a minute. An account
 * that was made at the command line is theirs from then on. Once is all: another sign-up of the address is used up too.
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

/** Whether a sign-up was sent from the browser that keeps a token. */
export function isOfBrowser({ browserSha256 }: Pick<PendingSignUp, "browserSha256">, browser: string): boolean {
  return timingSafeEqual(browserSha256, hashToken(browser));
}

/** Uses up what {@link confirmSignUp} gave to sign in with; null if it is none, or no longer one. */
export async function redeemFirstSignIn(sql: Sql, token: string): Promise<string | null> {
  const used = await sql.begin((tx) => takeMailToken(tx, "first-sign-in", token));
  return used?.userId ?? null;
}

/**
 * Gives an account to somebody who signs in already and holds none, such as an operator: they agree as everybody does.
 * Null where somebody else holds the account of their address.
 */
export async function openOwnAccount(
  sql: Sql,
  person: { userId: string; email: string; requestId: string } & Origin,
): Promise<bigint | null> {
  const { userId, email, requestId, address, userAgent } = person;
  return sql.begin(async (tx) => {
    await lockPerson(tx, userId);
    const held = (await findPerson(tx, { userId }))?.accountId ?? null;
    if (held !== null) return held;
    const opened = await openAccount(tx, { userId, email });
    if (opened === null) return null;
    for (const kind of AGREED) await saveConsent(tx, { accountId: opened.accountId, kind, address, userAgent });
    await noteOpened(tx, { ...opened, requestId, address });
    return opened.accountId;
  });
}

async function noteOpened(tx: Transaction, { isClaimed, ...by }: HolderActor & { isClaimed: boolean }): Promise<void> {
  await announce(tx); // the keys of a claimed account may have waited for a verified address
  await appendAudit(tx, holderEntry(by, { action: "account.open", after: { claimed: isClaimed, agreed: AGREED } }));
}
