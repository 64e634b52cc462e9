import { inFours } from "../../config/iban.ts";
import { findTopupDetail } from "../../topups/topup-detail-store.ts";
import { opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";

/** One top-up by whichever method: its state, its account, and where its money is decided on. */
export const topupPage = opsPage({
  path: "/top-ups/:id",
  async show({ sql }, { params }) {
    const id = idOf(params["id"]);
    const topup = id === null ? null : await findTopupDetail(sql, id);
    if (topup === null) return null;
    const reference = topup.method === "bank" ? inFours(topup.reference) : topup.reference;
    const crumbs = [
      { label: "Callers", href: "/ops/callers" },
      { label: topup.email, href: `/ops/callers/${topup.accountId}` },
    ];
    return {
      template: "topups/topup",
      title: `Top-up ${reference}`,
      data: { topup, ...METHODS[topup.method] },
      crumbs,
    };
  },
});

/** The page on which staff decide on money of a method. */
const METHODS = {
  bank: { method: "Bank transfer", list: { label: "Bank transfers", href: "/ops/bank" } },
  usdt: { method: "USDT", list: { label: "Deposits", href: "/ops/deposits" } },
  "binance-pay": { method: "Binance Pay", list: { label: "Payment app", href: "/ops/payment-app" } },
  demo: { method: "Demo payment", list: null },
} as const;
