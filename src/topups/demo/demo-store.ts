import type { Queryable, Transaction } from "../../db/client.ts";
import { creditTopup, saveTopup } from "../topup-store.ts";

/** Whether every house that is polled from this database is a demo house. */
export async function hasOnlyDemoHouses(sql: Queryable): Promise<boolean> {
  const [row] = await sql<{ isSo: boolean }[]>`
    select coalesce(bool_and(demo), false) as "isSo"
    from houses
    where enabled`;
  return row?.isSo === true;
}

/**
 * Credits demo money, by the same steps in the ledger as any other top-up. The same reference again credits nothing.
 * Gives the id of the top-up; null if the reference was used.
 */
export async function creditDemoMoney(
  tx: Transaction,
  { accountId, micros, reference }: { accountId: bigint; micros: bigint; reference: string },
): Promise<bigint | null> {
  const topupId = await saveTopup(tx, { accountId, method: "demo", reference, amountMicros: micros });
  if (topupId === null) return null;
  const posted = await creditTopup(tx, { topupId, micros, key: `demo:${reference}`, cash: "cash_demo" });
  if (!posted.ok) throw new Error(`the demo payment ${reference} could not be credited: ${posted.message}`);
  return topupId;
}
