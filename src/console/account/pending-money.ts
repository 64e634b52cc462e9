import { thousands, usd } from "../../money.ts";
import type { Topup } from "../../topups/contract.ts";
import type { UncreditedDeposits } from "../../topups/usdt/deposit-list-store.ts";
import { topupRow } from "../top-up/topup-row.ts";

/**
 * What becomes of money that is not credited yet if the account is closed now, one clause each: a closed account is
 * still credited with USDT and Binance Pay, but its balance cannot be used; a bank transfer goes into suspense.
 */
export function pendingMoney(
  topups: readonly Topup[],
  count: number,
  deposits: readonly UncreditedDeposits[],
): string[] {
  const more = count - topups.length;
  return [
    ...topups.map(topupClause),
    ...(more > 0 ? [`${more} more pending top-ups are lost or delayed in the same way`] : []),
    ...deposits.map(depositsClause),
  ];
}

function topupClause(topup: Topup): string {
  const { label, shown, amount } = topupRow(topup, []);
  const of = amount === null ? "" : ` of ${amount}`;
  if (topup.method === "bank") {
    return `your bank transfer ${shown}${of} is not credited any more: money that arrives is held until our staff return it`;
  }
  const what = topup.method === "binance-pay" ? "Binance Pay order" : `top-up by ${label}`;
  return `your ${what} ${shown}${of}: what is paid for it is lost`;
}

function depositsClause({ state, n, micros }: UncreditedDeposits): string {
  const why = state === "pending" ? "not credited yet" : "below the minimum";
  const amount = `${thousands(usd(micros))} USDT`;
  return n === 1
    ? `1 USDT deposit of ${amount}, which is ${why}, is lost`
    : `${n} USDT deposits of ${amount} together, which are ${why}, are lost`;
}
