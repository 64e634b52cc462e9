import type { Transaction } from "../db/client.ts";
import type { RequestParts } from "./posting.ts";

/** Row counts, and the total balance of each kind of account, in micro-units. */
export interface LedgerCounts {
  accounts: number;
  transactions: number;
  entries: number;
  total: bigint;
  sums: { kind: string; micros: bigint }[];
}

/**
 * Sets the statement timeout of a transaction in milliseconds (0: none) and allows joins of whole tables, which a worker's
 * connections disable.
 */
export async function limitStatements(tx: Transaction, timeoutMs: number): Promise<void> {
  await tx`
    select
      set_config('statement_timeout', ${`${timeoutMs}ms`}, true),
      set_config('enable_hashjoin', 'on', true),
      set_config('enable_mergejoin', 'on', true)`;
}

/** Counts the ledger and sums its balances. */
export async function countLedger(tx: Transaction): Promise<LedgerCounts> {
  const sums = await tx<{ kind: string; micros: bigint; accounts: number }[]>`
    select kind, sum(balance)::bigint as micros, count(*)::integer as accounts
    from ledger_accounts
    group by kind
    order by kind`;
  const [counted] = await tx<{ transactions: number; entries: number }[]>`
    select
      (select count(*) from ledger_transactions)::integer as transactions,
      (select count(*) from ledger_entries)::integer as entries`;
  return {
    accounts: sums.reduce((count, { accounts }) => count + accounts, 0),
    transactions: counted?.transactions ?? 0,
    entries: counted?.entries ?? 0,
    total: sums.reduce((sum, { micros }) => sum + micros, 0n),
    sums: sums.map(({ kind, micros }) => ({ kind, micros })),
  };
}

/** The request of a stored transaction, rebuilt from its rows. */
export interface StoredRequest extends RequestParts {
  id: bigint;
  requestHash: string;
}

/** Transactions after an id, with the values that their request hash covers. */
export async function listRequests(tx: Transaction, after: bigint, limit: number): Promise<StoredRequest[]> {
  return tx<StoredRequest[]>`
    select
      t.id,
      t.kind,
      t.idempotency_key as key,
      t.request_hash as "requestHash",
      t.meta,
      t.reverses::text as reverses,
      moved.legs
    from (
      select *
      from ledger_transactions
      where id > ${after}
      order by id
      limit ${limit}
    ) t
    cross join lateral (
      select
        coalesce(
          jsonb_agg(
            jsonb_build_object('side', a.kind || coalesce(' ' || a.owner_id, ''), 'micros', e.amount::text)
            order by e.seq
          ),
          '[]'
        ) as legs
      from ledger_entries e
      join ledger_accounts a on a.id = e.account_id
      where e.transaction_id = t.id
    ) moved
    order by t.id`;
}
