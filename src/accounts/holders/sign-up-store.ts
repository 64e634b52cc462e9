import type { Queryable, Transaction } from "../../db/client.ts";
import type { GivenConsent } from "./consent-store.ts";
import { hashToken } from "../token.ts";

/** A sign-up that is not confirmed yet. */
export interface PendingSignUp {
  email: string;
  passwordHash: string;
  /** SHA-256 of the token that the browser of the sign-up keeps. */
  browserSha256: Buffer;
  consents: GivenConsent[];
}

/** Stores a sign-up until its mailed link is confirmed. */
export async function saveSignUp(
  tx: Transaction,
  {
    sha256,
    browserSha256,
    email,
    passwordHash,
    consents,
    lastsSeconds,
  }: PendingSignUp & { sha256: Buffer; lastsSeconds: number },
): Promise<void> {
  await tx`
    insert into sign_ups (sha256, browser_sha256, email, password_hash, consents, expires_at)
    values (
      ${sha256}, ${browserSha256}, ${email}, ${passwordHash}, ${JSON.stringify(consents)}::text::jsonb,
      clock_timestamp() + make_interval(secs => ${lastsSeconds})
    )`;
}

/** The sign-up of a link; null if it is unknown or expired. */
export async function findSignUp(sql: Queryable, token: string): Promise<PendingSignUp | null> {
  const [found] = await sql<PendingSignUp[]>`
    select email, password_hash as "passwordHash", browser_sha256 as "browserSha256", consents
    from sign_ups
    where sha256 = ${hashToken(token)} and expires_at > clock_timestamp()`;
  return found ?? null;
}

/** The newest sign-up of an address from a browser; null if there is none or it expired. */
export async function findSignUpOfBrowser(
  sql: Queryable,
  { email, browser }: { email: string; browser: string },
): Promise<PendingSignUp | null> {
  const [found] = await sql<PendingSignUp[]>`
    select email, password_hash as "passwordHash", browser_sha256 as "browserSha256", consents
    from sign_ups
    where email = ${email}
      and browser_sha256 = ${hashToken(browser)}
      and expires_at > clock_timestamp()
    order by created_at desc
    limit 1`;
  return found ?? null;
}

/** Deletes all sign-ups of an address. */
export async function deleteSignUps(tx: Transaction, email: string): Promise<void> {
  await tx`
    delete from sign_ups
    where email = ${email}`;
}

/** The database's current time, as text in UTC. */
export async function timeOf(tx: Transaction): Promise<string> {
  const [clock] = await tx<{ at: string }[]>`select utc_text(clock_timestamp()) as at`;
  if (clock === undefined) throw new Error("expected the time from the database, got no row");
  return clock.at;
}
