import type { Queryable } from "../db/client.ts";
import type { Fragment } from "../db/statement.ts";

/** An expression: when the transaction with this id was reversed; null if it was not, or if its reversal was reversed. */
export function reversedAt(sql: Queryable, transactionId: Fragment) {
  return sql`(
    with recursive reversals (id, at, times) as (
      select r.id, r.created_at, 1
      from ledger_transactions r
      where r.reverses = ${transactionId}
      union all
      select r.id, r.created_at, n.times + 1
      from reversals n
      join ledger_transactions r on r.reverses = n.id
    )
    select max(at)
    from reversals
    having max(times) % 2 = 1 -- a reversal that was reversed takes nothing back
  )`;
}
