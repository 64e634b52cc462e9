import { randomUUID } from "node:crypto";
import type { Sql, Transaction } from "../../src/db/client.ts";
import { post } from "../../src/ledger/store.ts";

/** Puts money into the wallet of an account with what the database requires for it: a paid order of the payment app. */
export async function fund(tx: Transaction, accountId: bigint, micros: bigint, key: string = randomUUID()) {
  const posted = await post(tx, {
    kind: "topup",
    key,
    legs: [
      { side: { kind: "cash_payapp" }, micros: -micros },
      { side: { kind: "wallet", owner: accountId }, micros },
    ],
  });
  if (!posted.ok) throw new Error(posted.message);
  if (posted.isReplay) return posted;
  const [topup] = await tx<{ id: bigint }[]>`
    insert into topups (account_id, method, reference, state, amount_micros, credited_at, transaction_id)
    values (${accountId}, 'binance-pay', ${key}, 'credited', ${micros}, now(), ${posted.transactionId})
    returning id`;
  await tx`
    insert into payment_app_orders (topup_id, trade_no, amount_micros, state, prepay_id, checkout_url, expires_at)
    values (
      ${topup!.id}, ${randomUUID().replaceAll("-", "")}, ${micros}, 'paid', ${randomUUID().replaceAll("-", "")}, 'https://pay.example', now()
    )`;
  return posted;
}

/**
 * Lets tests of the ledger's own rules post movements without documents, in their database alone; gives what must run
 * before that database is handed on.
 */
export async function withoutDocuments(sql: Sql): Promise<() => Promise<void>> {
  await sql`alter table ledger_entries disable trigger transaction_has_its_document`;
  return async () => {
    await sql`alter table ledger_entries enable trigger transaction_has_its_document`;
  };
}
