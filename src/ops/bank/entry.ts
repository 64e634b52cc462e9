import { z } from "zod";
import { amountText } from "../../topups/bank/statements/amount.ts";
import { checkLine } from "../../topups/bank/check-line.ts";
import { lineName } from "../../topups/bank/line.ts";
import { saveLines } from "../../topups/bank/line-store.ts";
import { auditedAction } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { roles } from "./line-action.ts";

/** A form for one line of a statement. */
export const bankEntryPage = opsPage({
  path: "/bank/lines/new",
  show({ settings }, { visitor }) {
    const data = {
      currencies: settings.BANK_CURRENCIES,
      bank: settings.BANK_NAME ?? "",
      isOnePerson: settings.BANK_ONE_PERSON,
      mayAct: visitor.role === "operator" || visitor.role === "admin",
    };
    const crumbs = [{ label: "Bank transfers", href: "/ops/bank" }];
    return Promise.resolve({ template: "bank/entry", title: "Enter a transfer", data, crumbs });
  },
});

const field = z.string().max(1_200);
const form = z.object({
  bank: field,
  bank_ref: field,
  value_date: field,
  amount: field,
  currency: field,
  sender: field,
  remittance: field.default(""),
});

/** Stores one line of a statement. */
export const addLineAction = auditedAction({
  name: "bank.line.add",
  path: "/bank/lines/new",
  roles,
  isDangerous: false,
  form,
  async change(tx, { visitor, form: given }, { settings }) {
    const { bank_ref: bankRef, value_date: valueDate, ...rest } = given;
    const checked = checkLine({ bankRef, valueDate, ...rest }, settings.BANK_CURRENCIES);
    if (!checked.ok) return checked;
    const [saved] = await saveLines(tx, [checked.value], { by: visitor.operatorId, importId: null });
    if (saved?.is !== "new" || saved.id === null) {
      const how = saved?.is === "other" ? `, with another ${saved.differs.join(", ")}` : "";
      return { ok: false, problem: `${given.bank} ${bankRef} is here already: line ${saved?.id ?? "?"}${how}` };
    }
    const line = { id: saved.id, ...checked.value };
    return {
      ok: true,
      target: lineName(line),
      // without the sender's name and text: the audit log cannot delete them
      after: { value_date: line.valueDate, amount: amountText(line.amountMinor, line.currency) },
      message: `${lineName(line)} is entered`,
      location: `/ops/bank/lines/${line.id}`,
    };
  },
});
