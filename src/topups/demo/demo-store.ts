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
 * Credits demo money through the same ledger steps as any other top-up. Returns the id of the top-up; null, with
 * nothing credited, if the reference was used before.
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
