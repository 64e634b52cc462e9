import type { Queryable, Transaction } from "../../db/client.ts";
import { hashToken, makeToken } from "../token.ts";

/** Purpose of a token. `first-sign-in` is never mailed: it is redeemed in the request that creates it. */
export type TokenPurpose = "reset-password" | "change-email" | "first-sign-in";

/** The person and address of a token. */
export interface MailToken {
  userId: string;
  /** The address to which it was sent. */
  email: string;
}

/** Creates a token for a person; earlier ones for the same purpose stop working. */
export async function insertMailToken(
  tx: Transaction,
  { purpose, userId, email, lastsSeconds }: MailToken & { purpose: TokenPurpose; lastsSeconds: number },
): Promise<string> {
  const { token, sha256 } = makeToken();
  await withdrawMailTokens(tx, userId, purpose);
  await tx`
    insert into mail_tokens (sha256, purpose, user_id, email, expires_at)
    values (${sha256}, ${purpose}, ${userId}, ${email}, clock_timestamp() + make_interval(secs => ${lastsSeconds}))`;
  return token;
}

/** Finds a token without redeeming it; null if it is unknown for this purpose, used or expired. */
export async function findMailToken(sql: Queryable, purpose: TokenPurpose, token: string): Promise<MailToken | null> {
  const [found] = await sql<MailToken[]>`
    select user_id as "userId", email
    from mail_tokens
    where sha256 = ${hashToken(token)}
      and purpose = ${purpose}
      and used_at is null
      and expires_at > clock_timestamp()`;
  return found ?? null;
}

/** Redeems a token; null if it is unknown for this purpose, used or expired. */
export async function takeMailToken(tx: Transaction, purpose: TokenPurpose, token: string): Promise<MailToken | null> {
  const [used] = await tx<MailToken[]>`
    update mail_tokens
    set used_at = clock_timestamp()
    where sha256 = ${hashToken(token)}
      and purpose = ${purpose}
      and used_at is null
      and expires_at > clock_timestamp()
    returning user_id as "userId", email`;
  return used ?? null;
}

/** Revokes the unused tokens of a person, for one purpose or for all. */
export async function withdrawMailTokens(
  tx: Transaction,
  userId: string,
  purpose: TokenPurpose | null = null,
): Promise<void> {
  await tx`
    delete from mail_tokens
    where user_id = ${userId} and used_at is null and (${purpose}::text is null or purpose = ${purpose})`;
}
