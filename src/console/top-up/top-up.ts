import { z } from "zod";
import { usd } from "../../money.ts";
import { walletMicros } from "../../ledger/store.ts";
import { inFours } from "../../config/iban.ts";
import type { Topup, TopupMethod } from "../../topups/contract.ts";
import { configuredMethods, methodLabel } from "../../topups/methods.ts";
import { listTopups } from "../../topups/topup-store.ts";
import type { ConsolePage } from "../contract.ts";
import { demoReference } from "./demo.ts";
import { STATES } from "./words.ts";

const MOST_TOPUPS = 200;
const nothing = z.object({});

/** Ways to pay in that are set up here, and what was paid in. */
export const topUpPage: ConsolePage<z.infer<typeof nothing>> = {
  path: "/top-up",
  nav: { label: "Top up", order: 30, group: "Billing" },
  query: nothing,
  async show({ sql, settings, isDemo }, { holder }) {
    const [topups, balance] = await Promise.all([
      listTopups(sql, holder.accountId, MOST_TOPUPS),
      walletMicros(sql, holder.accountId),
    ]);
    const offered = configuredMethods(settings);
    const data = {
      demo: isDemo ? demoReference() : null,
      methods: offered.map((method) => ({ ...method, about: method.about(settings) })),
      balance: usd(balance),
      topups: topups.map((topup) => ({
        ...topup,
        label: methodLabel(topup.method),
        said: STATES[topup.state],
        amount: topup.amountMicros === null ? (topup.details["announced"] ?? null) : `${usd(topup.amountMicros)} USD`,
        shown: topup.method === "bank" ? inFours(topup.reference) : topup.reference,
        href: hrefOf(topup, offered),
      })),
      isCut: topups.length === MOST_TOPUPS,
    };
    return { template: "top-up/top-up", title: "Top up", data };
  },
};

/** The page of a top-up; null where its way is not set up any more. All deposits to an address on a chain share one. */
function hrefOf({ id, method }: Topup, offered: readonly TopupMethod[]): string | null {
  const path = offered.find((one) => one.id === method)?.path;
  if (path === undefined) return null;
  return method === "usdt" ? `/console/top-up${path}` : `/console/top-up${path}/${id}`;
}
