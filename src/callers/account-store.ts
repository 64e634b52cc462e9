import type { Decided, Made, Refusal } from "../audit/decision.ts";
import { isEmailAddress } from "../config/mail.ts";
import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { type ListPage, type PageWanted, readListPage } from "../db/list-page.ts";
import { currentPlan } from "./current-plan-store.ts";
import { keyWorks } from "./key-state-store.ts";
import { lockAccount } from "./lock-store.ts";
import { announce } from "./key-store.ts";

/**
 * Makes an account, or finds the one that is there: e-mail addresses differ by more than upper and lower case. It counts as
 * verified, since the operator who runs this command vouches for the address.
 */
export async function createAccount(sql: Sql, email: string): Promise<Decided<{ id: bigint; created: boolean }>> {
  if (!isEmailAddress(email)) {
    return { ok: false, problem: `expected an e-mail address such as ann@example.com, got ${JSON.stringify(email)}` };
  }
  return sql.begin(async (transaction) => {
    const [made] = await transaction<{ id: bigint }[]>`
      insert into accounts (email, verified_at)
      values (${email}, now())
      on conflict (lower(email)) do nothing
      returning id`;
    if (made !== undefined) {
      const [target, message] = [`account ${made.id}`, `made the account ${email}`];
      return { ok: true, target, after: { verified: true }, message, id: made.id, created: true };
    }
    return verifyAccount(transaction, email);
  });
}

async function verifyAccount(tx: Transaction, email: string): Promise<Decided<{ id: bigint; created: boolean }>> {
  const [found] = await tx<{ id: bigint; isVerified: boolean }[]>`
    select id, verified_at is not null as "isVerified"
    from accounts
    where lower(email) = lower(${email})
    for no key update`;
  if (found === undefined) throw new Error(`the account ${email} was there and is gone`);
  const { id, isVerified } = found;
  const target = `account ${id}`;
  if (isVerified) {
    const message = `the account ${email} is there already`;
    return { ok: true, didNothing: true, target, message, id, created: false };
  }
  await tx`
    update accounts
    set verified_at = now()
    where id = ${id}`;
  await announce(tx);
  const message = `the account ${email} is verified now`;
  return { ok: true, target, before: { verified: false }, after: { verified: true }, message, id, created: false };
}

/** An account as operators see it. */
export interface Account {
  id: bigint;
  email: string;
  createdAt: string;
  verifiedAt: string | null;
  suspendedAt: string | null;
  suspendReason: string | null;
  suspendedBy: string | null;
  /** The plan that holds now, and its end; null if there is none, or no end. */
  plan: string | null;
  planEndsAt: string | null;
  /** Keys that work. */
  keys: number;
  lastUsedAt: string | null;
  /** Whether its holder gets mails when 80 % and 100 % of a limit are used. */
  quotaMails: boolean;
}

/** What accounts are searched by, and how the list is ordered. */
export interface AccountSearch {
  /** A part of an e-mail address, an id, or the last four characters of a key. */
  text: string;
  isSuspended: boolean | null;
  sort: "email" | "created" | "used";
  isDown: boolean;
}

/** Returns a page of the accounts that match; the last page if there are fewer. */
export async function listAccounts(
  sql: Queryable,
  search: AccountSearch,
  wanted: PageWanted,
): Promise<ListPage<Account>> {
  const order = { email: sql`lower(email)`, created: sql`created_at`, used: sql`last_used_at` }[search.sort];
  return readListPage<Account>(
    wanted,
    ({ limit, offset }) => sql<(Account & { total: number })[]>`
    with found as (
      select
        a.*,
        (select max(last_used_at) from keys where account_id = a.id) as last_used_at,
        count(*) over ()::integer as total
      from accounts a
      where ${matching(sql, search.text)}
        ${
          search.isSuspended === null
            ? sql``
            : search.isSuspended
              ? sql`and a.suspended_at is not null`
              : sql`and a.suspended_at is null`
        }
      order by ${order} ${search.isDown ? sql`desc nulls last` : sql`asc nulls last`}, a.id
      limit ${limit}
      offset ${offset}
    )
    select ${columnsOf(sql)}, a.total
    from found a
    ${currentPlan(sql)}
    order by ${order} ${search.isDown ? sql`desc nulls last` : sql`asc nulls last`}, a.id`,
  );
}

/** One account by its id or its whole address; null if there is none. */
export async function findAccount(sql: Queryable, by: { id: bigint } | { email: string }): Promise<Account | null> {
  const [row] = await sql<Account[]>`
    select ${columnsOf(sql)}
    from (
      select a.*, (select max(last_used_at) from keys where account_id = a.id) as last_used_at
      from accounts a
      where ${"id" in by ? sql`a.id = ${by.id}` : sql`lower(a.email) = lower(${by.email})`}
    ) a
    ${currentPlan(sql)}`;
  return row ?? null;
}

/** A plan that an account had, has, or will have. */
export interface HeldPlan {
  plan: string;
  startsAt: string;
  endsAt: string | null;
  state: "past" | "current" | "future";
}

/** The plans of an account, newest first. */
export async function listHeldPlans(sql: Queryable, accountId: bigint): Promise<HeldPlan[]> {
  return sql<HeldPlan[]>`
    select
      plan,
      utc_text(starts_at) as "startsAt",
      utc_text(ends_at) as "endsAt",
      case when starts_at > now() then 'future' when ends_at <= now() then 'past' else 'current' end as state
    from entitlements
    where account_id = ${accountId}
    order by starts_at desc, id desc
    limit 100`;
}

/** A decision on an account. */
export type AccountDecision = Decided<{ email: string; after: object }>;

/**
 * Suspends an account: in every process all its keys are refused from the next counted call on. Refused if it is suspended
 * already, with the name of who did it, so that the second of two concurrent decisions is reported.
 */
export async function suspendAccount(
  tx: Transaction,
  id: bigint,
  { by, reason }: { by: string; reason: string },
): Promise<AccountDecision> {
  const account = await findLocked(tx, id);
  if (account === null) return unknownAccount(id);
  const { email, suspendedAt, suspendedBy, suspendReason } = account;
  if (suspendedAt !== null) {
    const who = suspendedBy === null ? "" : ` by ${suspendedBy}`;
    return { ok: false, problem: `${email} was suspended${who} at ${suspendedAt} already: ${suspendReason}` };
  }
  await tx`
    update accounts
    set
      suspended_at = now(),
      suspended_by = ${by},
      suspend_reason = ${reason}
    where id = ${id}`;
  await announce(tx);
  return decided(account, "is suspended: its keys are refused from the next call on", {
    before: { suspended: false, reason: null },
    after: { suspended: true, reason },
  });
}

/** Lets an account's keys call again, from the next call on. Refused where it is not suspended. */
export async function restoreAccount(tx: Transaction, id: bigint): Promise<AccountDecision> {
  const account = await findLocked(tx, id);
  if (account === null) return unknownAccount(id);
  const { email, suspendedAt, suspendReason } = account;
  if (suspendedAt === null) return { ok: false, problem: `${email} is not suspended` };
  await tx`
    update accounts
    set
      suspended_at = null,
      suspended_by = null,
      suspend_reason = null
    where id = ${id}`;
  await announce(tx);
  return decided(account, "is restored: its keys work again", {
    before: { suspended: true, reason: suspendReason },
    after: { suspended: false, reason: null },
  });
}

/**
 * Ends the plan that an account was granted without end, from the next call on, so that it can buy one. Refused where it
 * has none: what was bought runs to its end.
 */
export async function endGrant(tx: Transaction, id: bigint): Promise<AccountDecision> {
  const account = await findLocked(tx, id);
  if (account === null) return unknownAccount(id);
  const [ended] = await tx<{ plan: string; endsAt: string }[]>`
    update entitlements
    set
      ends_at = clock_timestamp(),
      end_notified_at = clock_timestamp()
    where account_id = ${id}
      and ends_at is null
    returning plan, utc_text(ends_at) as "endsAt"`;
  if (ended === undefined) {
    return { ok: false, problem: `${account.email} has no plan without end; what was bought runs to its end` };
  }
  await announce(tx);
  const { plan, endsAt } = ended;
  return decided(account, "has no plan without end any more", {
    before: { plan, ends_at: null },
    after: { plan, ends_at: endsAt },
  });
}

/** The account is named by its id: the log cannot delete an address, which is deleted when the account is closed. */
export function decided(
  { id, email }: Pick<Account, "id" | "email">,
  outcome: string,
  change: { before: object; after: object },
): Made<{ email: string; after: object }> {
  return { ok: true, target: `account ${id}`, ...change, message: `${email} ${outcome}`, email };
}

/** The refusal of a decision on an account that does not exist. */
export function unknownAccount(id: bigint): Refusal {
  return { ok: false, problem: `there is no account ${id}`, isUnknown: true };
}

async function findLocked(tx: Transaction, id: bigint): Promise<Account | null> {
  await lockAccount(tx, id);
  return findAccount(tx, { id }); // a second statement sees what the last holder of the lock committed
}

function matching(sql: Queryable, text: string) {
  if (text === "") return sql`true`;
  return sql`(
    strpos(lower(a.email), lower(${text})) > 0
    or a.id = ${/^\d{1,18}$/.test(text) ? text : null}
    or exists (select from keys where account_id = a.id and last4 = ${text.replace(/^…/, "")})
  )`;
}

function columnsOf(sql: Queryable) {
  return sql`
    a.id,
    a.email,
    utc_text(a.created_at) as "createdAt",
    utc_text(a.verified_at) as "verifiedAt",
    utc_text(a.suspended_at) as "suspendedAt",
    a.suspend_reason as "suspendReason",
    a.suspended_by as "suspendedBy",
    current.plan,
    utc_text(current.ends_at) as "planEndsAt",
    (
      select count(*)::integer
      from keys k
      where k.account_id = a.id
        and ${keyWorks(sql)}
    ) as keys,
    utc_text(a.last_used_at) as "lastUsedAt",
    a.quota_mails as "quotaMails"`;
}

/** Turns the mails about used calls on or off. Returns false, and writes nothing, if they are that already. */
export async function saveQuotaMails(tx: Transaction, id: bigint, isOn: boolean): Promise<boolean> {
  const changed = await tx`
    update accounts
    set quota_mails = ${isOn}
    where id = ${id}
      and quota_mails <> ${isOn}
    returning id`;
  return changed.length > 0;
}
