import type { Sql, Transaction } from "../../db/client.ts";
import { hashToken, makeToken } from "../token.ts";

/** Creates a one-time link for a person and returns its token: 256 random bits; only the hash is stored. */
export async function insertLink(tx: Transaction, userId: string, lastsSeconds: number): Promise<string> {
  const { token, sha256 } = makeToken();
  await tx`delete from sign_in_links where expires_at < clock_timestamp() - interval '1 day'`;
  await tx`
    insert into sign_in_links (sha256, user_id, expires_at)
    values (${sha256}, ${userId}, clock_timestamp() + make_interval(secs => ${lastsSeconds}))`;
  return token;
}

/** Redeems a one-time link and returns its user id; null if it is unknown, used or expired. */
export async function redeemLink(sql: Sql, token: string): Promise<string | null> {
  const [used] = await sql<{ userId: string }[]>`
    update sign_in_links
    set used_at = clock_timestamp()
    where sha256 = ${hashToken(token)} and used_at is null and expires_at > clock_timestamp()
    returning user_id as "userId"`;
  return used?.userId ?? null;
}

/** Revokes unused links of a person, so that only the newest one works. */
export async function withdrawLinks(tx: Transaction, userId: string): Promise<void> {
  await tx`
    delete from sign_in_links
    where user_id = ${userId} and used_at is null`;
}
