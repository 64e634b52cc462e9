import type { Queryable, Transaction } from "../db/client.ts";
import { post, type Posted } from "../ledger/store.ts";
import { queueMail } from "../mail/outbox-store.ts";
import type { MethodId, Topup, TopupState } from "./contract.ts";
import { creditedLetter } from "./letters.ts";

/** Money to credit, and its source. */
export interface Credit {
  topupId: bigint;
  /** In 1e-6 USD. */
  micros: bigint;
  /** The idempotency key of the money itself, such as `bank:NAME:REF`: the same money is credited once. */
  key: string;
  /** The cash account of the method; `suspense` if the money was posted there first. */
  cash: "cash_bank" | "cash_onchain" | "cash_payapp" | "cash_demo" | "suspense";
  meta?: Record<string, string>;
}

/**
 * Credits a top-up in the caller's transaction: posts the money to the account's wallet, updates the row and writes the
 * e-mail. Idempotent. Refused, with nothing written, if the key belongs to other money or the top-up was credited with
 * another key.
 * @throws Error if there is no such top-up.
 */
export async function creditTopup(tx: Transaction, credit: Credit): Promise<Posted> {
  const { topupId, micros, key, cash, meta = {} } = credit;
  const topup = await lockTopup(tx, topupId);
  const posted = await post(tx, {
    kind: cash === "suspense" ? "placement" : "topup",
    key,
    legs: [
      { side: { kind: cash }, micros: -micros },
      { side: { kind: "wallet", owner: topup.accountId }, micros },
    ],
    meta: { topup: String(topupId), method: topup.method, reference: topup.reference, ...meta },
  });
  if (!posted.ok) return posted;
  if (topup.transactionId === posted.transactionId) return posted;
  if (topup.state === "credited" || posted.isReplay) {
    // rolls back the posting and the rest of the caller's transaction: no caller may request this
    throw new Error(
      `top-up ${topupId} is credited by transaction ${topup.transactionId ?? "none"} and the key ${key} by ${posted.transactionId}; one top-up is one credit`,
    );
  }
  await tx`
    update topups
    set
      state = 'credited',
      amount_micros = ${micros},
      credited_at = clock_timestamp(),
      transaction_id = ${posted.transactionId}
    where id = ${topupId}`;
  if (topup.isClosed) return posted;
  const letter = creditedLetter({ micros, method: topup.method, reference: topup.reference });
  await queueMail(tx, { ...letter, recipient: topup.email, dedupKey: `topup ${topupId} credited` });
  return posted;
}

/** A top-up that this transaction has locked, with its account. */
export interface LockedTopup extends Topup {
  email: string;
  isClosed: boolean;
  isSuspended: boolean;
}

/** Returns a top-up with its account, locked until the transaction ends. @throws Error if there is none. */
export async function lockTopup(tx: Transaction, id: bigint): Promise<LockedTopup> {
  await tx`
    select
    from topups
    where id = ${id}
    for no key update`;
  const [found] = await tx<LockedTopup[]>`
    select
      ${topupColumns(tx)},
      a.email,
      a.closed_at is not null as "isClosed",
      a.suspended_at is not null as "isSuspended"
    from topups t
    join accounts a on a.id = t.account_id
    where t.id = ${id}`;
  if (found === undefined) throw new Error(`there is no top-up ${id}`);
  return found;
}

/** A new top-up. */
export interface NewTopup {
  accountId: bigint;
  method: MethodId;
  reference: string;
  state?: "expected" | "seen";
  amountMicros?: bigint | null;
  /** Days until it counts as expired; never if not given. */
  expiresInDays?: number;
  details?: Readonly<Record<string, string>>;
}

/** Stores a top-up. Returns null if its reference exists already. */
export async function saveTopup(tx: Queryable, topup: NewTopup): Promise<bigint | null> {
  const { accountId, method, reference, state = "expected", amountMicros = null, details = {} } = topup;
  const [saved] = await tx<{ id: bigint }[]>`
    insert into topups (account_id, method, reference, state, amount_micros, expires_at, details)
    values (
      ${accountId}, ${method}, ${reference}, ${state}, ${amountMicros},
      clock_timestamp() + make_interval(days => ${topup.expiresInDays ?? null}), ${tx.json(details)}
    )
    on conflict (reference) do nothing
    returning id`;
  return saved?.id ?? null;
}

/** Changes the state of a top-up that is not credited. `reason` is stored if given. */
export async function saveTopupState(
  tx: Transaction,
  id: bigint,
  state: Exclude<TopupState, "credited">,
  reason: string | null = null,
): Promise<void> {
  await tx`
    update topups
    set
      state = ${state},
      reason = coalesce(${reason}, reason)
    where id = ${id}`;
}

/**
 * Returns the top-ups of an account, newest first, by all methods or one, without those of matches that were taken back.
 */
export async function listTopups(
  sql: Queryable,
  accountId: bigint,
  { limit, method = null }: { limit: number; method?: MethodId | null },
): Promise<Topup[]> {
  return sql<Topup[]>`
    select ${topupColumns(sql)}
    from topups t
    where t.account_id = ${accountId}
      and (${method}::text is null or t.method = ${method})
      and ${isShown(sql)}
    order by t.id desc
    limit ${limit}`;
}

/** Returns the top-ups of an account that are announced or in review, newest first. */
export async function listPendingTopups(sql: Queryable, accountId: bigint, limit: number): Promise<Topup[]> {
  return sql<Topup[]>`
    select ${topupColumns(sql)}
    from topups t
    where t.account_id = ${accountId}
      and ${isPending(sql)}
    order by t.id desc
    limit ${limit}`;
}

/** Returns how many top-ups of an account {@link listPendingTopups} lists without a limit. */
export async function countPendingTopups(sql: Queryable, accountId: bigint): Promise<number> {
  const [counted] = await sql<{ count: number }[]>`
    select count(*)::integer as count
    from topups t
    where t.account_id = ${accountId}
      and ${isPending(sql)}`;
  return counted?.count ?? 0;
}

/** Returns a top-up of an account; null if {@link listTopups} does not list it. */
export async function findTopup(sql: Queryable, accountId: bigint, id: bigint): Promise<Topup | null> {
  const [found] = await sql<Topup[]>`
    select ${topupColumns(sql)}
    from topups t
    where t.id = ${id}
      and t.account_id = ${accountId}
      and ${isShown(sql)}`;
  return found ?? null;
}

/** Returns how many top-ups of a method the account has announced that neither arrived nor expired. */
export async function countExpected(sql: Queryable, accountId: bigint, method: MethodId): Promise<number> {
  const [counted] = await sql<{ count: number }[]>`
    select count(*)::integer as count
    from topups
    where account_id = ${accountId}
      and method = ${method}
      and state = 'expected'
      and (expires_at is null or expires_at > clock_timestamp())`;
  return counted?.count ?? 0;
}

function isPending(sql: Queryable) {
  return sql`t.state in ('expected', 'seen')
      and (t.state = 'seen' or t.expires_at is null or t.expires_at > clock_timestamp())`;
}

/** A bank line that names no announced transfer is matched with a new top-up; if that is taken back, no holder made it. */
function isShown(sql: Queryable) {
  return sql`(t.state <> 'cancelled' or t.details -> 'line' is null)`;
}

/** Columns of {@link Topup}. An announced top-up past its time is shown as expired without being updated. */
export function topupColumns(sql: Queryable) {
  return sql`
    t.id,
    t.account_id as "accountId",
    t.method,
    t.reference,
    case when t.state = 'expected' and t.expires_at <= clock_timestamp() then 'expired' else t.state end as state,
    t.amount_micros as "amountMicros",
    t.requested_at as "requestedAt",
    t.expires_at as "expiresAt",
    t.credited_at as "creditedAt",
    t.transaction_id as "transactionId",
    reversed_at(t.transaction_id) as "reversedAt",
    t.reason,
    t.details`;
}
