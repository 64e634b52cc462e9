import { walletMicros } from "../../ledger/store.ts";
import { configuredMethods } from "../../topups/methods.ts";
import { listTopups } from "../../topups/topup-store.ts";
import { consolePage } from "../contract.ts";
import { demoReference } from "./demo.ts";
import { topupRow } from "./topup-row.ts";

const MOST_TOPUPS = 200;
/** Reload interval while a top-up is pending. */
const REFRESH_SECONDS = 15;

/** The configured payment methods, and earlier top-ups. */
export const topUpPage = consolePage({
  path: "/top-up",
  nav: { label: "Top up", order: 30, group: "Billing" },
  async show({ sql, settings, isDemo }, { holder }) {
    const [topups, balance] = await Promise.all([
      listTopups(sql, holder.accountId, { limit: MOST_TOPUPS + 1 }),
      walletMicros(sql, holder.accountId),
    ]);
    const offered = configuredMethods(settings);
    const data = {
      demo: isDemo ? demoReference() : null,
      methods: offered.map((method) => ({ ...method, about: method.about(settings) })),
      balance,
      isPending: topups.some(({ state }) => state === "expected" || state === "seen"),
      topups: topups.slice(0, MOST_TOPUPS).map((topup) => topupRow(topup, offered)),
      isCut: topups.length > MOST_TOPUPS,
    };
    return {
      template: "top-up/top-up",
      title: "Top up",
      data,
      header: { lead: "The balance pays for plans and for nothing else. It is not paid out, and purchases are final." },
      ...(data.isPending && { refreshSeconds: REFRESH_SECONDS }),
    };
  },
});
