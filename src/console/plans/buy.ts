import { z } from "zod";
import { legalText } from "../../accounts/legal.ts";
import { usd } from "../../money.ts";
import { purchase } from "../../purchases/purchase-store.ts";
import { quoteOf, quoteText, readQuote } from "../../purchases/quote.ts";
import { readBuyer } from "../../purchases/state-store.ts";
import type { Shown } from "../../frame/shown.ts";
import type { ConsoleAction, ConsolePage, ConsoleParts, Holder } from "../contract.ts";
import { tellPlan } from "./told.ts";

const query = z.object({});

/** What is bought and for how much, with the two texts that are agreed to: nothing is bought before this is sent. */
export const buyPage: ConsolePage<z.infer<typeof query>> = {
  path: "/plans/:plan/buy",
  query,
  show: (parts, { holder, params }) => showOrder(parts, { holder, plan: params["plan"] ?? "", problem: null }),
};

const form = z.object({
  key: z.uuid("expected the form as it was shown; open the page of the plan again"),
  offer: z.string().max(200, "expected the form as it was shown; open the page of the plan again"),
  /** The versions of the texts whose boxes were ticked; empty for an empty box. */
  start_now: z.string().max(40).default(""),
  is_final: z.string().max(40).default(""),
});

/** Buys it. Where it is no longer what was shown, nothing is bought, and it is shown as it is now. */
export const buyAction: ConsoleAction<z.infer<typeof form>> = {
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
    const anew = async (problem: string) => {
      const once = await showOrder(parts, { holder, plan, problem });
      return once === null ? ({ ok: false, missing: true } as const) : { ...shownAnew, once };
    };
    if (start_now === "" || is_final === "") return anew("Nothing was bought: both boxes have to be ticked for it");
    const { accountId, address, userAgent, requestId } = holder;
    const agreed = { startNow: start_now, noWithdrawal: is_final };
    const done = await purchase(parts.sql, { accountId, quote, key, agreed, address, userAgent, requestId });
    if (done.ok) {
      const message = done.isReplay
        ? "this form has bought it already: here it is, bought once"
        : `${plan} is ${quote.kind === "renew" ? "renewed" : "bought"}; the receipt is on its way by mail`;
      const location = `/console/purchases/${done.purchaseId}`;
      return { ok: true, message, location, ...(done.isReplay && { didNothing: true }) };
    }
    if (done.reason === "not-yours") return { ok: false, missing: true };
    if (done.reason === "other-request") return { ok: false, problem: done.message };
    return anew(`Nothing was bought: ${done.message}. Below it is as it is now`);
  },
};

const shownAnew = { ok: true, message: "", location: "/console/plans", didNothing: true } as const;

async function showOrder(
  { sql }: ConsoleParts,
  { holder, plan: name, problem }: { holder: Holder; plan: string; problem: string | null },
): Promise<Shown | null> {
  const buyer = await readBuyer(sql, holder.accountId);
  const told = buyer === null ? null : tellPlan(buyer, name);
  if (buyer === null || told === null) return null;
  const data = {
    name,
    problem,
    told,
    balance: usd(buyer.balanceMicros),
    isSuspended: holder.isSuspended,
    startNow: legalText("start-now"),
    isFinal: legalText("no-withdrawal"),
    key: crypto.randomUUID(),
    quote: told.offer === null ? "" : quoteText(quoteOf(told.made, buyer.now)),
  };
  const crumbs = [{ label: "Plans", href: "/console/plans" }];
  return { template: "plans/buy", title: told.offer?.verb ?? name, data, crumbs };
}
