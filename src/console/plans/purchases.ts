import { z } from "zod";
import { thousands, usd } from "../../money.ts";
import { listWorkingKeys } from "../../callers/key-store.ts";
import { walletMicros } from "../../ledger/store.ts";
import { findPurchase, listPurchases, type Purchase } from "../../purchases/history-store.ts";
import { includedText, KIND_WORDS } from "../../purchases/receipt.ts";
import { idOf } from "../../frame/path-id.ts";
import { consolePage } from "../contract.ts";

const PER_PAGE = 50;

const query = z.object({ page: z.coerce.number().int().min(1).max(100_000).default(1) });

/** Purchases of the account, newest first. */
export const purchasesPage = consolePage({
  path: "/purchases",
  nav: { label: "Purchases", order: 32, group: "Billing" },
  query,
  async show({ sql }, { holder: { accountId }, query: { page: wanted } }) {
    const { rows, total, page } = await listPurchases(sql, accountId, { page: wanted, perPage: PER_PAGE });
    const data = { rows: rows.map(purchaseView), total, page, perPage: PER_PAGE };
    return { template: "plans/purchases", title: "Purchases", data };
  },
});

/** One purchase as on its receipt. An account without a key creates its first one here. */
export const purchasePage = consolePage({
  path: "/purchases/:purchase",
  async show({ sql }, { holder: { accountId, email, isSuspended }, params }) {
    const id = idOf(params["purchase"]);
    const made = id === null ? null : await findPurchase(sql, accountId, id);
    if (made === null) return null;
    const data = {
      one: purchaseView(made),
      texts: [made.startNow, made.noWithdrawal],
      email,
      balance: await walletMicros(sql, accountId),
      mayCreateKey: !isSuspended && (await listWorkingKeys(sql, accountId)).length === 0,
    };
    const crumbs = [{ label: "Purchases", href: "/console/purchases" }];
    return { template: "plans/purchase", title: `Purchase ${made.id}`, data, crumbs };
  },
});

function purchaseView({ listedMicros, discountMicros, paidMicros, ...made }: Purchase) {
  return {
    ...made,
    included: includedText(made),
    what: KIND_WORDS[made.kind] + (made.reversedAt === null ? "" : ", payment reversed"),
    listed: thousands(usd(listedMicros)),
    discount: discountMicros === 0n ? null : { money: discountMicros },
    paid: { money: paidMicros },
    isLonger: discountMicros > listedMicros,
  };
}
