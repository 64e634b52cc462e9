import { ACCOUNT_CLOSED, lockAccount } from "../../callers/lock-store.ts";
import type { Queryable, Transaction } from "../../db/client.ts";
import type { TopupState } from "../contract.ts";
import { countExpected, saveTopup } from "../topup-store.ts";
import { findReferences } from "./find-reference.ts";
import { makeReference } from "./reference.ts";

/** The most transfers that one account can have announced at a time. */
export const MOST_EXPECTED = 5;
/** The most that one account can announce within a day: each writes a mail and entries of the audit log. */
const MOST_A_DAY = 20;
/** Transfers take days; one that has not arrived after two months has probably not been sent. */
const EXPECTED_DAYS = 60;

/** A transfer that its sender announced, or the account that a line is assigned to. */
export interface ExpectedTransfer {
  topupId: bigint;
  reference: string;
  state: TopupState;
  accountId: bigint;
  email: string;
  isClosed: boolean;
  isSuspended: boolean;
  requestedAt: Date;
  /** The announced amount, `100.00 EUR`; null if none was announced. */
  announced: string | null;
}

/** Announces a transfer. Refused if the account has too many open announcements, or made too many within a day. */
export async function announceTransfer(
  tx: Transaction,
  { accountId, announced }: { accountId: bigint; announced: string },
): Promise<{ ok: true; id: bigint; reference: string } | { ok: false; problem: string }> {
  if (!(await lockAccount(tx, accountId))) return { ok: false, problem: ACCOUNT_CLOSED };
  if ((await countExpected(tx, accountId, "bank")) >= MOST_EXPECTED) {
    const problem = `You have ${MOST_EXPECTED} pending transfers, the most there may be. Send or cancel one of them first.`;
    return { ok: false, problem };
  }
  const [made] = await tx<{ today: number }[]>`
    select count(*)::integer as today
    from topups
    where account_id = ${accountId}
      and method = 'bank'
      and details ? 'announced'
      and requested_at > clock_timestamp() - interval '1 day'`;
  if (made !== undefined && made.today >= MOST_A_DAY) {
    const problem = `You announced ${MOST_A_DAY} transfers within a day, the most there may be. Use the reference of one of them, or try again tomorrow.`;
    return { ok: false, problem };
  }
  return { ok: true, ...(await saveTransfer(tx, { accountId, state: "expected", details: { announced } })) };
}

/** Creates a top-up for money that arrived without one: sent twice with one reference, or with no reference. */
export async function makeTransfer(
  tx: Transaction,
  { accountId, details }: { accountId: bigint; details: Readonly<Record<string, string>> },
): Promise<{ id: bigint; reference: string }> {
  await lockAccount(tx, accountId);
  return saveTransfer(tx, { accountId, state: "seen", details });
}

/** Returns transfers by their references. Unknown references are left out. */
export async function findTransfers(sql: Queryable, references: readonly string[]): Promise<ExpectedTransfer[]> {
  if (references.length === 0) return [];
  return sql<ExpectedTransfer[]>`
    select ${columns(sql)}
    from topups t
    join accounts a on a.id = t.account_id
    where t.method = 'bank'
      and t.reference = any(${[...references]}::text[])
    order by t.id`;
}

/** Returns transfers that are announced and have not arrived, oldest first. */
export async function listExpected(sql: Queryable, limit: number): Promise<ExpectedTransfer[]> {
  return sql<ExpectedTransfer[]>`
    select ${columns(sql)}
    from topups t
    join accounts a on a.id = t.account_id
    where t.method = 'bank'
      and t.state = 'expected'
      and t.expires_at > clock_timestamp()
    order by t.id
    limit ${limit}`;
}

/** A transfer that the text of a line points to. */
export interface Proposal {
  transfer: ExpectedTransfer;
  /** The reference was found with a typo: the operator has to check it. */
  isTypo: boolean;
}

/** Returns the transfers whose reference is in a text. References with a typo are returned only if none is exact. */
export async function proposeTransfers(sql: Queryable, text: string): Promise<Proposal[]> {
  const { exact, close } = findReferences(text);
  const found = await findTransfers(sql, exact);
  if (found.length > 0) return found.map((transfer) => ({ transfer, isTypo: false }));
  return (await findTransfers(sql, close)).map((transfer) => ({ transfer, isTypo: true }));
}

/** Creates the next reference of an account. The transaction must hold the account's row. */
async function saveTransfer(
  tx: Transaction,
  topup: { accountId: bigint; state: "expected" | "seen"; details: Readonly<Record<string, string>> },
): Promise<{ id: bigint; reference: string }> {
  const { accountId } = topup;
  const [counted] = await tx<{ sequence: bigint }[]>`
    select count(*) + 1 as sequence
    from topups
    where account_id = ${accountId}
      and method = 'bank'`;
  const reference = makeReference({ accountId, sequence: counted?.sequence ?? 1n });
  const id = await saveTopup(tx, { ...topup, method: "bank", reference, expiresInDays: EXPECTED_DAYS });
  if (id === null)
    throw new Error(`the reference ${reference} was given already; are top-ups of account ${accountId} gone?`);
  return { id, reference };
}

function columns(sql: Queryable) {
  return sql`
    t.id as "topupId",
    t.reference,
    case when t.state = 'expected' and t.expires_at <= clock_timestamp() then 'expired' else t.state end as state,
    t.account_id as "accountId",
    a.email,
    a.closed_at is not null as "isClosed",
    a.suspended_at is not null as "isSuspended",
    t.requested_at as "requestedAt",
    t.details ->> 'announced' as announced`;
}
