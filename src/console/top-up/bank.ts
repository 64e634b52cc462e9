import { z } from "zod";
import { holderEntry } from "../../accounts/holders/holder-entry.ts";
import { appendAudit } from "../../audit/store.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { thousands, usd } from "../../money.ts";
import { amountText, parseAmount } from "../../topups/bank/statements/amount.ts";
import { announceTransfer, MOST_EXPECTED } from "../../topups/bank/expected-store.ts";
import { inFours } from "../../config/iban.ts";
import { announcedLetter } from "../../topups/letters.ts";
import { type BankSettings, hasBank } from "../../topups/bank/method.ts";
import { countExpected, findTopup, lockTopup, saveTopupState } from "../../topups/topup-store.ts";
import { idOf } from "../../frame/path-id.ts";
import { consoleAction, consolePage } from "../contract.ts";
import { statusOf } from "./states.ts";

const crumbs = [{ label: "Top up", href: "/console/top-up" }];

/** The form for the amount of a bank transfer. */
export const bankFormPage = consolePage({
  path: "/top-up/bank",
  async show({ sql, settings }, { holder }) {
    if (!hasBank(settings)) return null;
    const open = await countExpected(sql, holder.accountId, "bank");
    const data = {
      currencies: settings.BANK_CURRENCIES,
      mayAnnounce: open < MOST_EXPECTED,
      most: MOST_EXPECTED,
      isOnePerson: settings.BANK_ONE_PERSON,
    };
    return { template: "top-up/bank-form", title: "Bank transfer", data, crumbs };
  },
});

const announceForm = z.object({
  amount: z.string().max(60),
  currency: z.string().trim().max(10),
});

/** Announces a transfer and creates its reference. */
export const announceAction = consoleAction({
  name: "topup.bank.announce",
  path: "/top-up/bank",
  needs: ["terms"],
  form: announceForm,
  async run({ sql, settings }, { holder, form: { amount, currency } }) {
    if (!hasBank(settings)) return { ok: false, missing: true };
    if (!settings.BANK_CURRENCIES.includes(currency)) {
      return { ok: false, problem: `expected one of ${settings.BANK_CURRENCIES.join(", ")}, got ${currency}` };
    }
    const parsed = parseAmount(amount, currency);
    if (!parsed.ok) return parsed;
    const announced = amountText(parsed.value, currency);
    const made = await sql.begin(async (tx) => {
      const topup = await announceTransfer(tx, { accountId: holder.accountId, announced });
      if (!topup.ok) return topup;
      const after = { topup: topup.id, reference: topup.reference, announced };
      await appendAudit(tx, holderEntry(holder, { action: "topup.announce", after }));
      const { reference } = topup;
      const letter = announcedLetter({ amount: announced, reference, ...bankDetails(settings) });
      await queueMail(tx, { ...letter, recipient: holder.email });
      return topup;
    });
    if (!made.ok) return made;
    const message = "Use the reference below. The bank details are on their way to you by mail too.";
    return { ok: true, message, location: `/console/top-up/bank/${made.id}` };
  },
});

/** Transfer details to copy, and the status. */
export const bankTransferPage = consolePage({
  path: "/top-up/bank/:topup",
  async show({ sql, settings }, { holder, params }) {
    const id = idOf(params["topup"]);
    const topup = !hasBank(settings) || id === null ? null : await findTopup(sql, holder.accountId, id);
    if (topup?.method !== "bank") return null;
    const data = {
      topup,
      status: statusOf(topup),
      announced: topup.details["announced"] ?? null,
      again: topup.details["again"] ?? null,
      credited:
        topup.state === "credited" && topup.amountMicros !== null ? thousands(`${usd(topup.amountMicros)} USD`) : null,
      reference: inFours(topup.reference),
      ...bankDetails(settings),
      isOnePerson: settings.BANK_ONE_PERSON,
      isOpen: topup.state === "expected" || topup.state === "expired",
    };
    return { template: "top-up/bank", title: `Transfer ${inFours(topup.reference)}`, data, crumbs };
  },
});

/** Cancels an announced transfer. Money that still arrives is checked like any other. */
export const cancelTransferAction = consoleAction({
  name: "topup.bank.cancel",
  path: "/top-up/bank/:topup/cancel",
  needs: [],
  async run({ sql, settings }, { holder, params }) {
    const id = idOf(params["topup"]);
    if (!hasBank(settings) || id === null) return { ok: false, missing: true };
    return sql.begin(async (tx) => {
      const own = await findTopup(tx, holder.accountId, id);
      if (own?.method !== "bank") return { ok: false, missing: true } as const;
      const topup = await lockTopup(tx, id);
      if (topup.state !== "expected" && topup.state !== "expired") {
        const problem = `This transfer is ${statusOf(topup).word}, so it cannot be cancelled.`;
        return { ok: false, problem } as const;
      }
      await saveTopupState(tx, id, "cancelled");
      const entry = {
        action: "topup.cancel",
        before: { topup: id, state: topup.state },
        after: { topup: id, state: "cancelled" },
      };
      await appendAudit(tx, holderEntry(holder, entry));
      return { ok: true, message: "The transfer is cancelled.", location: "/console/top-up" } as const;
    });
  },
});

function bankDetails({ BANK_BENEFICIARY, BANK_IBAN, BANK_BIC, BANK_NAME }: BankSettings) {
  return {
    beneficiary: BANK_BENEFICIARY ?? "",
    iban: inFours(BANK_IBAN ?? ""),
    bic: BANK_BIC ?? null,
    bank: BANK_NAME ?? null,
  };
}
