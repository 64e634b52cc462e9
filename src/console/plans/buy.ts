import { z } from "zod";
import { legalText } from "../../accounts/legal.ts";
import { purchase } from "../../purchases/purchase-store.ts";
import { quoteOf, quoteText, readQuote } from "../../purchases/quote.ts";
import { readBuyer } from "../../purchases/state-store.ts";
import { readUsedLimit } from "../../purchases/used-limit-store.ts";
import { usedLimitText } from "../../purchases/used-limit.ts";
import type { Shown } from "../../frame/view.ts";
import { consoleAction, consolePage, type ConsoleParts, type Holder } from "../contract.ts";
import { planView } from "./plan-view.ts";

/** The order: plan, price and the two texts to agree to. Nothing is bought before this form is sent. */
export const buyPage = consolePage({
  path: "/plans/:plan/buy",
  show: (parts, { holder, params }) => showOrder(parts, { holder, plan: params["plan"] ?? "", problem: null }),
});

const form = z.object({
  key: z.uuid("expected the form as it was shown; open the page of the plan again"),
  offer: z.string().max(200, "expected the form as it was shown; open the page of the plan again"),
  /** Versions of the texts whose boxes are ticked; empty if a box is not. */
  start_now: z.string().max(40).default(""),
  is_final: z.string().max(40).default(""),
});

/** Buys a plan. If the offer has changed since it was shown, nothing is bought and the current offer is shown. */
export const buyAction = consoleAction({
  name: "plan.buy",
  path: "/plans/:plan/buy",
  needs: ["terms"],
  form,
  async run(parts, { holder, params, form: { key, offer, start_now, is_final } }) {
    const plan = params["plan"] ?? "";
    const quote = readQuote(plan, offer);
    if (quote === null) {
      return { ok: false, problem: "expected the form as it was shown; open the page of the plan again" };
    }
    const showAgain = async (problem: string) => {
      const once = await showOrder(parts, { holder, plan, problem });
      return once === null ? ({ ok: false, missing: true } as const) : { ...REDISPLAY, once };
    };
    if (start_now === "" || is_final === "") return showAgain("Nothing was bought. Tick both boxes to buy");
    const { accountId, address, userAgent, requestId } = holder;
    const agreed = { startNow: start_now, noWithdrawal: is_final };
    const done = await purchase(parts.sql, { accountId, quote, key, agreed, address, userAgent, requestId });
    if (done.ok) {
      const message = done.isReplay
        ? "This form was sent twice. The plan was bought once."
        : `${plan} is ${OUTCOMES[quote.kind]}. The receipt is on its way by mail.`;
      const location = `/console/purchases/${done.purchaseId}`;
      return { ok: true, message, location, ...(done.isReplay && { didNothing: true }) };
    }
    if (done.reason === "not-yours") return { ok: false, missing: true };
    if (done.reason === "other-request") return { ok: false, problem: done.message };
    return showAgain(`Nothing was bought: ${done.message}. The current offer is below`);
  },
});

const OUTCOMES = { buy: "active", renew: "renewed", upgrade: "active", downgrade: "bought for later" } as const;

const REDISPLAY = { ok: true, message: "", location: "/console/plans", didNothing: true } as const;

async function showOrder(
  { sql }: ConsoleParts,
  { holder, plan: name, problem }: { holder: Holder; plan: string; problem: string | null },
): Promise<Shown | null> {
  const buyer = await readBuyer(sql, holder.accountId);
  const view = buyer === null ? null : planView(buyer, name);
  if (buyer === null || view === null) return null;
  const usedLimit =
    view.offer === null
      ? null
      : await readUsedLimit(sql, { accountId: holder.accountId, plan: name, startsAt: view.made.startsAt });
  const data = {
    name,
    problem,
    usedLimit: usedLimit === null ? null : usedLimitText(usedLimit),
    plan: view,
    balance: buyer.balanceMicros,
    isSuspended: holder.isSuspended,
    startNow: legalText("start-now"),
    isFinal: legalText("no-withdrawal"),
    key: crypto.randomUUID(),
    quote: view.offer === null ? "" : quoteText(quoteOf(view.made, buyer.now)),
  };
  const crumbs = [{ label: "Plans", href: "/console/plans" }];
  return { template: "plans/buy", title: view.offer?.verb ?? name, data, crumbs };
}
