import { usd } from "../money.ts";
import { letter, type Letter } from "../mail/letter.ts";
import type { MethodId } from "./contract.ts";

const WAYS: Record<MethodId, string> = {
  bank: "bank transfer",
  usdt: "USDT on-chain",
  "binance-pay": "Binance Pay",
  demo: "demo payment, which is not real money",
};

/** The data that a bank's transfer form asks for, in its usual order. */
export interface TransferInstructions {
  amount: string;
  reference: string;
  beneficiary: string;
  iban: string;
  bic: string | null;
  bank: string | null;
}

/** E-mail with everything that a transfer needs, for a holder who sends it elsewhere or later. */
export function announcedLetter({ amount, reference, beneficiary, iban, bic, bank }: TransferInstructions): Letter {
  const lines = [
    `Amount: ${amount}`,
    `Reference: ${reference}`,
    `Beneficiary: ${beneficiary}`,
    `IBAN: ${iban}`,
    ...(bic === null ? [] : [`BIC: ${bic}`]),
    ...(bank === null ? [] : [`Bank: ${bank}`]),
  ];
  return letter("topup-announced", `How to send your transfer of ${amount}`, [
    lines.join("\n"),
    "Write the reference into the transfer exactly. Without it we cannot match the money with your account.",
    "Send it from an account in your own name. You get another e-mail when it is credited.",
  ]);
}

/** E-mail that money is in the wallet. */
export function creditedLetter(of: { micros: bigint; method: MethodId; reference: string }): Letter {
  const amount = `${usd(of.micros)} USD`;
  return letter("topup-credited", `Your balance was credited: ${amount}`, [
    `${amount} were added to your balance.\nWay: ${WAYS[of.method]}\nReference: ${of.reference}`,
    "You can buy a plan with it in the console; what the ledger holds of it is listed in your statement there.",
  ]);
}

/** E-mail that a transfer will not be credited, and why. */
export function rejectedLetter(of: { amount: string; reference: string; reason: string }): Letter {
  return letter("topup-rejected", `Your transfer was rejected: ${of.reason}`, [
    `Your transfer of ${of.amount} with the reference ${of.reference} was not added to your balance.\nReason: ${of.reason}`,
    "Please do not send it again before you know what was wrong. If you think that this is a mistake, write to the operator of this service, with the reference above.",
  ]);
}
