import type { Queryable, Transaction } from "../db/client.ts";
import type { GivenConsent } from "./consent-store.ts";
import { hashToken } from "./token.ts";

/** A sign-up that waits for the link in its mail to be opened. */
export interface PendingSignUp {
  email: string;
  passwordHash: string;
  consents: GivenConsent[];
}

/** Keeps a sign-up until the link of its mail is opened. */
export async function saveSignUp(
  tx: Transaction,
  { sha256, email, passwordHash, consents, lastsSeconds }: PendingSignUp & { sha256: Buffer; lastsSeconds: number },
): Promise<void> {
  await tx`
    insert into sign_ups (sha256, email, password_hash, consents, expires_at)
    values (
      ${sha256}, ${email}, ${passwordHash}, ${JSON.stringify(consents)}::text::jsonb,
      clock_timestamp() + make_interval(secs => ${lastsSeconds})
    )`;
}

/** The sign-up that a link is of; null where there is none, or its time is over. */
export async function findSignUp(sql: Queryable, token: string): Promise<PendingSignUp | null> {
  const [found] = await sql<PendingSignUp[]>`
    select email, password_hash as "passwordHash", consents
    from sign_ups
    where sha256 = ${hashToken(token)} and expires_at > clock_timestamp()`;
  return found ?? null;
}

/** Uses up every sign-up of an address. */
export async function deleteSignUps(tx: Transaction, email: string): Promise<void> {
  await tx`
    delete from sign_ups
    where email = ${email}`;
}

/** What time it is, as the database writes it. */
export async function timeOf(tx: Transaction): Promise<string> {
  const [clock] = await tx<{ at: string }[]>`select utc_text(clock_timestamp()) as at`;
  if (clock === undefined) throw new Error("the database did not say what time it is");
  return clock.at;
}
