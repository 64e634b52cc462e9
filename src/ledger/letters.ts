import { letter, type Letter } from "../mail/letter.ts";
import { usd } from "../money.ts";

/** E-mail that a transaction was reversed. `micros` is the change of the balance, in 1e-6 USD. */
export function reversedLetter({ micros, transactionId }: { micros: bigint; transactionId: bigint }): Letter {
  const amount = `${usd(micros < 0n ? -micros : micros)} USD`;
  const [subject, moved] =
    micros < 0n
      ? [`Taken back from your balance: ${amount}`, "taken back from your balance"]
      : [`Returned to your balance: ${amount}`, "returned to your balance"];
  return letter("balance-reversed", subject, [
    `${amount} were ${moved}: transaction ${transactionId} was reversed. Your statement in the console lists both.`,
    "If you do not know why, write to the operator of this service.",
  ]);
}
