import { randomInt } from "node:crypto";
import type { Transaction } from "../../db/client.ts";
import { usd } from "../../money.ts";
import { countExpected, holdAccount, saveTopup } from "../topup-store.ts";
import { ORDER_MICROS } from "./method.ts";
import { saveNewOrder } from "./order-store.ts";

/** Orders that one account may have waiting: more are a script, or somebody who lost the way. */
const MOST_WAITING = 5;
/** Digits and capitals that nobody takes for each other. */
const SYMBOLS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/** What came of asking for an order. */
export type Begun = { ok: true; topupId: bigint } | { ok: false; reason: string };

/** Writes down that somebody wants to pay so much with the payment app; a worker makes the order within seconds. */
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
  await holdAccount(tx, accountId);
  if ((await countExpected(tx, accountId, "binance-pay")) >= MOST_WAITING) {
    return {
      ok: false,
      reason: `you have ${MOST_WAITING} orders that are not paid yet; pay one of them, or wait until they end`,
    };
  }
  const reference = `RH${Array.from({ length: 20 }, () => SYMBOLS[randomInt(SYMBOLS.length)]).join("")}`;
  const topupId = await saveTopup(tx, { accountId, method: "binance-pay", reference, amountMicros: micros });
  if (topupId === null) throw new Error(`the reference ${reference} was drawn twice`);
  await saveNewOrder(tx, { topupId, tradeNo: `${reference}0`, micros });
  return { ok: true, topupId };
}
