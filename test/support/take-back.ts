import { insertOperator } from "../../src/accounts/operators/operator-store.ts";
import type { Sql } from "../../src/db/client.ts";
import { post } from "../../src/ledger/store.ts";

interface TakeBack {
  transactionId: bigint;
  accountId: bigint;
  micros: bigint;
  /** The other side of the transaction: revenue of a purchase, or the cash account of a top-up. */
  side?: "revenue" | "cash_onchain";
}

/** Reverses the payment of a purchase or a top-up, or that reversal: `micros` is the change of the account's balance. Returns the new transaction. */
export async function takeBack(
  sql: Sql,
  { transactionId, accountId, micros, side = "revenue" }: TakeBack,
): Promise<bigint> {
  return sql.begin(async (tx) => {
    const by: string[] = [];
    for (const name of ["ann", "ben"]) {
      const email = `${name}.${crypto.randomUUID()}@example.com`;
      by.push((await insertOperator(tx, { email, role: "operator", passwordHash: null, by: "test" }))!.id);
    }
    const posted = await post(tx, {
      kind: "reversal",
      key: `reversal:${transactionId}`,
      reverses: transactionId,
      legs: [
        { side: { kind: "wallet", owner: accountId }, micros },
        { side: { kind: side }, micros: -micros },
      ],
    });
    if (!posted.ok) throw new Error(posted.message);
    const [proposer = "", decider = ""] = by;
    await tx`
      insert into reversal_proposals (
        transaction_id, reason, proposed_by, state, decided_by, decided_at, decided_why, reversal_id
      )
      values (
        ${transactionId}, 'a test', ${proposer}, 'approved', ${decider}, now(), 'a test', ${posted.transactionId}
      )`;
    return posted.transactionId;
  });
}
