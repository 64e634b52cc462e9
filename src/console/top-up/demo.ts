import { randomInt } from "node:crypto";
import { z } from "zod";
import { holderEntry } from "../../accounts/holders/holder-entry.ts";
import { appendAudit } from "../../audit/store.ts";
import { listHeldPlans } from "../../callers/account-store.ts";
import { ACCOUNT_CLOSED, lockAccount } from "../../callers/lock-store.ts";
import { PageError } from "../../frame/errors.ts";
import { parseUsd, thousands, usd } from "../../money.ts";
import { creditDemoMoney, hasOnlyDemoHouses } from "../../topups/demo/demo-store.ts";
import { DEMO_MICROS } from "../../topups/demo/method.ts";
import { consoleAction, consolePage } from "../contract.ts";

const crumbs = [{ label: "Top up", href: "/console/top-up" }];
const DIGITS = 12;

/** A new reference, so that a form that is sent twice credits once. */
export function demoReference(): string {
  return `DEMO-${Array.from({ length: DIGITS }, () => randomInt(10)).join("")}`;
}

/** The form of the demo payment; the top-up page has it too. */
export const demoPage = consolePage({
  path: "/top-up/demo",
  show: ({ isDemo }) =>
    Promise.resolve(
      isDemo ? { template: "top-up/demo", title: "Demo payment", data: { reference: demoReference() }, crumbs } : null,
    ),
});

const form = z.object({
  amount: z.string().trim().max(20),
  reference: z.string().regex(/^DEMO-\d{12}$/, "expected the reference that the form of the page has"),
});

/** Credits demo money. Responds 404 unless the instance is a demo. */
export const demoAction = consoleAction({
  name: "topup.demo",
  path: "/top-up/demo",
  needs: ["terms"],
  form,
  async run({ sql, isDemo }, { holder, form: { amount, reference } }) {
    if (!isDemo || !(await hasOnlyDemoHouses(sql))) return { ok: false, missing: true };
    const micros = parseUsd(amount);
    const { least, most } = DEMO_MICROS;
    if (micros === null || micros < least || micros > most) {
      const problem = `expected an amount from ${usd(least)} to ${usd(most)} USD, without commas, got ${JSON.stringify(amount)}`;
      return { ok: false, problem };
    }
    const credited = await sql.begin(async (tx) => {
      if (!(await lockAccount(tx, holder.accountId))) throw new PageError(403, ACCOUNT_CLOSED);
      const topup = await creditDemoMoney(tx, { accountId: holder.accountId, micros, reference });
      if (topup === null) return false;
      const after = { topup, method: "demo", usd: usd(micros) };
      await appendAudit(tx, holderEntry(holder, { action: "topup.demo", after }));
      return true;
    });
    if (!credited) {
      return {
        ok: true,
        message: "This demo payment was credited before.",
        location: "/console/top-up",
        didNothing: true,
      };
    }
    const held = await listHeldPlans(sql, holder.accountId);
    const location = held.length === 0 ? "/console/plans" : "/console/top-up";
    return { ok: true, message: `${thousands(usd(micros))} USD of demo money were added to your balance.`, location };
  },
});
