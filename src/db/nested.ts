import type { Sql, Transaction } from "./client.ts";

/**
 * A transaction for functions that begin their own: what they do becomes a savepoint of it, so that it is done together
 * with what else the transaction does, or not at all. Not for those that take many transactions on purpose.
 */
export function nested(tx: Transaction): Sql {
  const begin = <Result>(work: (inner: Transaction) => Promise<Result>) => tx.savepoint(work);
  // it has no `until` and `end`, and its `begin` takes no mode: such functions use none of these
  return Object.assign(tx, { begin }) as unknown as Sql;
}
