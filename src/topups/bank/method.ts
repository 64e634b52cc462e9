import type { Settings } from "../../config/environment.ts";
import type { TopupMethod } from "../contract.ts";

/** The settings of bank transfers. */
export type BankSettings = Pick<
  Settings,
  "BANK_BENEFICIARY" | "BANK_IBAN" | "BANK_BIC" | "BANK_NAME" | "BANK_CURRENCIES" | "BANK_ONE_PERSON"
>;

/** International bank transfer, checked by two people before it is credited. */
export const bankTransfer: TopupMethod = {
  id: "bank",
  label: "Bank transfer",
  path: "/bank",
  isConfigured: hasBank,
  about: ({ BANK_CURRENCIES, BANK_ONE_PERSON }) => ({
    time: `One to five working days from bank to bank; then ${BANK_ONE_PERSON ? "a member of staff checks" : "two members of staff check"} it on a working day.`,
    minimum: "None. A bank in between may keep a fee, so small amounts make little sense.",
    credited: `What arrives, in USD. We take ${BANK_CURRENCIES.join(", ")}; other currencies are converted at the rate of the day on which it is checked.`,
  }),
};

/** Whether bank transfers are configured. */
export function hasBank({ BANK_BENEFICIARY, BANK_IBAN }: BankSettings): boolean {
  return BANK_BENEFICIARY !== undefined && BANK_IBAN !== undefined;
}
