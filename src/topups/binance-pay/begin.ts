import { ACCOUNT_CLOSED, lockAccount } from "../../callers/lock-store.ts";
import type { Transaction } from "../../db/client.ts";
import { usd } from "../../money.ts";
import { countExpected, saveTopup } from "../topup-store.ts";
import { ORDER_MICROS } from "./method.ts";
import { saveNewOrder } from "./order-store.ts";
import { makeOrderReference } from "./trade-no.ts";

/** Open orders per account: more come from a script, or from a lost user. */
const MOST_WAITING = 5;

/** The result of requesting an order. */
export type Begun = { ok: true; topupId: bigint } | { ok: false; reason: string };

/** Stores a request to pay an amount with the payment app. A worker creates the order within seconds. */
export async function beginOrder(
  tx: Transaction,
  { accountId, micros }: { accountId: bigint; micros: bigint },
): Promise<Begun> {
  const { least, most } = ORDER_MICROS;
  if (micros < least || micros > most || micros % 10_000n !== 0n) {
    return {
      ok: false,
      reason: `expected ${usd(least)} to ${usd(most)} USDT with two decimals at most, got ${usd(micros)}`,
    };
  }
  if (!(await lockAccount(tx, accountId))) return { ok: false, reason: ACCOUNT_CLOSED };
  if ((await countExpected(tx, accountId, "binance-pay")) >= MOST_WAITING) {
    return {
      ok: false,
      reason: `you have ${MOST_WAITING} orders that are not paid yet; pay one of them, or wait until they end`,
    };
  }
  const reference = makeOrderReference();
  const topupId = await saveTopup(tx, { accountId, method: "binance-pay", reference, amountMicros: micros });
  if (topupId === null) throw new Error(`the reference ${reference} was drawn twice`);
  await saveNewOrder(tx, { topupId, tradeNo: `${reference}0`, micros });
  return { ok: true, topupId };
}
