import type { Queryable } from "../db/client.ts";

/**
 * Common table expressions, after `with recursive`: `given_back` has the payments of an account's purchases that are
 * reversed (`paid_by`), and since when (`at`).
 */
export function givenBack(sql: Queryable, accountId: bigint) {
  return sql`
    reversals (paid_by, id, at, times) as (
      select p.transaction_id, t.id, t.created_at, 1
      from purchases p
      join ledger_transactions t on t.reverses = p.transaction_id
      where p.account_id = ${accountId}
      union all
      select r.paid_by, t.id, t.created_at, r.times + 1
      from reversals r
      join ledger_transactions t on t.reverses = r.id
    ),
    given_back as (
      select paid_by, max(at) as at
      from reversals
      group by paid_by
      having max(times) % 2 = 1 -- a reversal that was reversed gives nothing back
    )`;
}
