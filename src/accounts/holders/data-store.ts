import type { Queryable } from "../../db/client.ts";
import { listConsents } from "./consent-store.ts";

/** The most changes of an account that are read: some 3 MB. Revoking keys, for example, has no limit per account. */
export const MOST_CHANGES = 10_000;

/**
 * Stored data of an account and its holder for the download: consents, keys without secrets, plans, sessions, mails,
 * the newest {@link MOST_CHANGES} changes, and the senders of payments. Only approved bank transfers: the name on
 * another one may be a stranger's.
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
    where lower(recipient) = (select email from auth.users where id = ${userId}) -- an account's may have capitals
    order by id`;
  const changes = await sql`
    select utc_text(at) as at, action, before, after, address
    from audit_log
    where actor = ${`account ${accountId}`}
    order by seq desc
    limit ${MOST_CHANGES}`;
  const transfers = await sql`
    select l.bank, l.bank_ref, l.value_date::text as value_date, l.currency, l.amount_minor, l.sender, l.remittance
    from bank_matches m
    join bank_lines l on l.id = m.line_id
    join topups t on t.id = m.topup_id
    where t.account_id = ${accountId} and m.approved_by is not null and m.ended_at is null
    order by m.id`;
  const [given] = await sql<{ address: string }[]>`
    select address
    from deposit_addresses
    where account_id = ${accountId}`;
  const deposits = await sql`
    select chain_id, tx_hash, sender, micros, state, utc_text(seen_at) as seen_at
    from chain_deposits
    where account_id = ${accountId}
    order by id`;
  const chain = { address: given?.address ?? null, deposits };
  const agreed = await listConsents(sql, accountId);
  return { account, agreed, keys, plans, sign_ins: signIns, mails, changes, bank_transfers: transfers, chain };
}
