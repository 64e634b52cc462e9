import { lastUse } from "../../callers/key-state-store.ts";
import type { Queryable } from "../../db/client.ts";
import type { Read } from "../../db/reads.ts";
import type { Pages } from "../../json-parts.ts";
import { listConsents } from "./consent-store.ts";

/** Rows of one read: some 300 kB. */
export const ROWS_AT_ONCE = 1_000;

/**
 * Stored data of an account and its holder for the download: consents, keys without secrets, plans, sessions, mails,
 * changes by the holder and by staff (the newest first), and the senders of payments. What an account can have much of is read in pages while the file
 * is written. Only approved bank transfers: the name on another one may be a stranger's.
 */
export async function readOwnData(read: Read, { accountId, userId }: { accountId: bigint; userId: string }) {
  const { account, agreed, plans, transfers, address } = await read((sql) => readShortData(sql, accountId));
  return {
    account,
    agreed,
    keys: inPages(read, (sql, after: bigint | null) => listKeys(sql, accountId, after)),
    plans,
    sign_ins: inPages(read, (sql, after: SessionPlace | null) => listSignIns(sql, userId, after)),
    mails: inPages(read, (sql, after: bigint | null) => listMails(sql, userId, after)),
    changes: inPages(read, (sql, after: bigint | null) => listChanges(sql, accountId, after)),
    changes_by_staff: inPages(read, (sql, after: bigint | null) => listStaffChanges(sql, accountId, after)),
    bank_transfers: transfers,
    chain: { address, deposits: inPages(read, (sql, after: bigint | null) => listDeposits(sql, accountId, after)) },
  };
}

/**
 * Reads a list in pages of {@link ROWS_AT_ONCE}, each in a read of its own. `list` returns the rows after a place; each has its
 * own `place`, which no page has.
 */
export async function* inPages<Place>(
  read: Read,
  list: (sql: Queryable, after: Place | null) => Promise<readonly (object & { place: Place })[]>,
): Pages {
  let after: Place | null = null;
  let isWhole = false;
  while (!isWhole) {
    const from: Place | null = after;
    const rows: readonly { place: Place }[] = await read((sql) => list(sql, from));
    yield rows.map((row) => ({ ...row, place: undefined })); // JSON leaves it out
    after = rows.at(-1)?.place ?? null;
    isWhole = rows.length < ROWS_AT_ONCE;
  }
}

/** What an account has little of. */
async function readShortData(sql: Queryable, accountId: bigint) {
  const [account] = await sql`
    select
      id, email, utc_text(created_at) as created_at, utc_text(verified_at) as verified_at,
      utc_text(suspended_at) as suspended_at, suspend_reason
    from accounts
    where id = ${accountId}`;
  const plans = await sql`
    select plan, utc_text(starts_at) as starts_at, utc_text(ends_at) as ends_at
    from entitlements
    where account_id = ${accountId}
    order by starts_at, id`;
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
  const agreed = await listConsents(sql, accountId);
  return { account, agreed, plans, transfers, address: given?.address ?? null };
}

type Placed<Place> = { place: Place }[];

function listKeys(sql: Queryable, accountId: bigint, after: bigint | null) {
  return sql<Placed<bigint>>`
    select
      id, name, last4, utc_text(created_at) as created_at, utc_text(expires_at) as expires_at,
      utc_text(revoked_at) as revoked_at, utc_text(${lastUse(sql)}) as last_used_at, id as place
    from keys k
    where account_id = ${accountId}
      and id > ${after ?? 0n}
    order by id
    limit ${ROWS_AT_ONCE}`;
}

/** When a session was created, to the microsecond, and its id. */
interface SessionPlace {
  at: string;
  id: string;
}

function listSignIns(sql: Queryable, userId: string, after: SessionPlace | null) {
  return sql<Placed<SessionPlace>>`
    select
      surface, utc_text(created_at) as created_at, utc_text(seen_at) as seen_at, utc_text(expires_at) as expires_at,
      ip_address as address, user_agent, json_build_object('at', created_at::text, 'id', id) as place
    from auth.sessions
    where user_id = ${userId}
      and (created_at, id) > (${after?.at ?? "-infinity"}::text::timestamptz, ${after?.id ?? ""})
    order by created_at, id
    limit ${ROWS_AT_ONCE}`;
}

function listMails(sql: Queryable, userId: string, after: bigint | null) {
  return sql<Placed<bigint>>`
    select kind, subject, utc_text(created_at) as created_at, utc_text(sent_at) as sent_at, id as place
    from mails
    where lower(recipient) = (select email from auth.users where id = ${userId}) -- an account's may have capitals
      and id > ${after ?? 0n}
    order by id
    limit ${ROWS_AT_ONCE}`;
}

function listChanges(sql: Queryable, accountId: bigint, before: bigint | null) {
  return sql<Placed<bigint>>`
    select utc_text(at) as at, action, before, after, address, seq as place
    from audit_log
    where actor = ${`account ${accountId}`}
      ${before === null ? sql`` : sql`and seq < ${before}`}
    order by seq desc
    limit ${ROWS_AT_ONCE}`;
}

function listStaffChanges(sql: Queryable, accountId: bigint, before: bigint | null) {
  return sql<Placed<bigint>>`
    select utc_text(at) as at, action, target, before, after, seq as place
    from changes_by_staff(${accountId}::bigint, ${before}::bigint, ${ROWS_AT_ONCE}::integer)`;
}

function listDeposits(sql: Queryable, accountId: bigint, after: bigint | null) {
  return sql<Placed<bigint>>`
    select chain_id, tx_hash, sender, micros, state, utc_text(seen_at) as seen_at, id as place
    from chain_deposits
    where account_id = ${accountId}
      and id > ${after ?? 0n}
    order by id
    limit ${ROWS_AT_ONCE}`;
}
