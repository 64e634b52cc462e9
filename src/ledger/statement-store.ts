import type { Queryable } from "../db/client.ts";
import type { Posting } from "./posting.ts";

/** One entry of an account's wallet, as its holder sees it. */
export interface StatementEntry {
  /** Transaction id. */
  id: bigint;
  at: Date;
  kind: Posting["kind"];
  /** Amount received (positive) or paid (negative), in micro-units. */
  micros: bigint;
  /** Balance after the entry, in micro-units. */
  balanceAfter: bigint;
  /** Stored details: `method` and `reference` of a top-up, `plan` of a purchase, `reason` of a reversal. */
  meta: Readonly<Record<string, string>>;
  /** The transaction that a reversal undoes. */
  reverses: bigint | null;
}

/** Part of a statement: entries before an id, or of one UTC year. */
export interface StatementPart {
  before?: bigint | null;
  year?: number | null;
  limit: number;
}

/** The entries of an account's wallet, newest first. */
export async function listStatement(
  sql: Queryable,
  accountId: bigint,
  { before = null, year = null, limit }: StatementPart,
): Promise<StatementEntry[]> {
  return sql<StatementEntry[]>`
    select
      t.id,
      t.created_at as at,
      t.kind,
      e.amount as micros,
      e.balance_after as "balanceAfter",
      t.meta,
      t.reverses
    from ledger_accounts a
    join ledger_entries e on e.account_id = a.id
    join ledger_transactions t on t.id = e.transaction_id
    where a.kind = 'wallet'
      and a.owner_id = ${accountId}
      ${before === null ? sql`` : sql`and e.transaction_id < ${before}`}
      ${year === null ? sql`` : sql`and extract(year from t.created_at at time zone 'UTC') = ${year}`}
    order by e.transaction_id desc
    limit ${limit}`;
}
