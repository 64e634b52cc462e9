import { thousands, usd } from "../../money.ts";
import { inFours } from "../../config/iban.ts";
import type { Topup, TopupMethod } from "../../topups/contract.ts";
import { methodLabel } from "../../topups/methods.ts";
import { statusOf } from "./states.ts";

/** A top-up as a row of a list. */
export function topupRow(topup: Topup, offered: readonly TopupMethod[]) {
  return {
    ...topup,
    label: methodLabel(topup.method),
    status: statusOf(topup),
    amount: amountOf(topup),
    shown: topup.method === "bank" ? inFours(topup.reference) : topup.reference,
    href: hrefOf(topup, offered),
  };
}

/** The amount: of USD once it is known, before that as it was announced. */
function amountOf({ amountMicros, details: { announced } }: Topup): string | null {
  if (amountMicros !== null) return thousands(`${usd(amountMicros)} USD`);
  return announced === undefined ? null : thousands(announced);
}

/** The page of a top-up; null if its method is not configured any more. All deposits to an address on a chain share one. */
function hrefOf({ id, method }: Topup, offered: readonly TopupMethod[]): string | null {
  const path = offered.find((one) => one.id === method)?.path;
  if (path === undefined) return null;
  return method === "usdt" ? `/console/top-up${path}` : `/console/top-up${path}/${id}`;
}
