import type { Queryable } from "../db/client.ts";
import { listConsents } from "./consent-store.ts";

/**
 * What is kept of an account and its holder, as a file tells it: what was agreed to, keys without their secrets, plans,
 * sign-ins, mails that were written to them, and what they changed.
 */
export async function readOwnData(sql: Queryable, { accountId, userId }: { accountId: bigint; userId: string }) {
  const [account] = await sql`
    select
      id, email, utc_text(created_at) as created_at, utc_text(verified_at) as verified_at,
      utc_text(suspended_at) as suspended_at, suspend_reason
    from accounts
    where id = ${accountId}`;
  const keys = await sql`
    select
      id, name, last4, utc_text(created_at) as created_at, utc_text(expires_at) as expires_at,
      utc_text(revoked_at) as revoked_at, utc_text(last_used_at) as last_used_at
    from keys
    where account_id = ${accountId}
    order by id`;
  const plans = await sql`
    select plan, utc_text(starts_at) as starts_at, utc_text(ends_at) as ends_at
    from entitlements
    where account_id = ${accountId}
    order by starts_at, id`;
  const signIns = await sql`
    select
      surface, utc_text(created_at) as created_at, utc_text(seen_at) as seen_at, utc_text(expires_at) as expires_at,
      ip_address as address, user_agent
    from auth.sessions
    where user_id = ${userId}
    order by created_at`;
  const mails = await sql`
    select kind, subject, utc_text(created_at) as created_at, utc_text(sent_at) as sent_at
    from mails
    where recipient = (select email from auth.users where id = ${userId})
    order by id`;
  const changes = await sql`
    select utc_text(at) as at, action, before, after, address
    from audit_log
    where actor = ${`account ${accountId}`}
    order by seq`;
  return { account, agreed: await listConsents(sql, accountId), keys, plans, sign_ins: signIns, mails, changes };
}
