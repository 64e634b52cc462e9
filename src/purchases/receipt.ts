import { usd } from "../money.ts";
import { letter, type Letter } from "../mail/letter.ts";
import type { Purchase } from "./history-store.ts";

/** Short names for what a purchase did. */
export const KIND_WORDS = {
  buy: "plan bought",
  renew: "plan renewed",
  upgrade: "changed to a higher plan",
  downgrade: "change to another plan",
} as const;

/**
 * The e-mail that confirms a purchase: the plan, the payment, and both accepted texts, on a durable medium (Directive
 * 2011/83/EU, Art. 8(7) and 16(m)).
 * @param usedLimit what to state about a limit of the plan that earlier calls already reach; null if there is none
 */
export function receipt(made: Purchase, usedLimit: string | null): Letter {
  const { id, kind, plan, startsAt, endsAt, listedMicros, discountMicros, paidMicros, startNow, noWithdrawal } = made;
  const amounts = [
    `Price of ${plan}: ${usd(listedMicros)} USD`,
    ...(discountMicros > 0n ? [`What was left of what it replaces: ${usd(discountMicros)} USD`] : []),
    `Paid from your balance: ${usd(paidMicros)} USD`,
  ];
  return letter("receipt", `Receipt ${id}: ${plan}, ${usd(paidMicros)} USD`, [
    "Thank you for your purchase.",
    [
      `Receipt ${id}, ${timeOf(made.madeAt)}`,
      `What: ${KIND_WORDS[kind]}: ${plan}`,
      ...amounts,
      `Included: ${includedText(made)}`,
    ].join("\n"),
    `${plan} ${kind === "buy" || kind === "upgrade" ? "began" : "begins"} on ${timeOf(startsAt)} and ends on ${timeOf(endsAt)}. It does not renew by itself.`,
    ...(usedLimit === null ? [] : [usedLimit]),
    ...(discountMicros > listedMicros
      ? [
          `What was left was worth more than ${plan} costs, so nothing was paid and ${plan} lasts longer than its ${made.days} days.`,
        ]
      : []),
    "When you bought it you agreed to these two texts:",
    `(1) ${startNow.text} (version ${startNow.version})`,
    `(2) ${noWithdrawal.text} (version ${noWithdrawal.version})`,
    "Keep this mail: it is your copy of both.",
  ]);
}

/**
 * What a plan included when it was bought.
 *
 * @example
 * includedText({ dayLimit: 20000n, monthLimit: null, perSecond: 2, burst: 5, houses: null }); // => "20,000 calls per day, no fixed number of calls per month, 2 calls per second, in bursts of up to 5; all houses"
 * includedText({ dayLimit: null, monthLimit: 9n, perSecond: 2, burst: 5, houses: ["Alpha", "Beta"] }); // => "no fixed number of calls per day, 9 calls per month, 2 calls per second, in bursts of up to 5; Alpha, Beta"
 */
export function includedText({
  dayLimit,
  monthLimit,
  perSecond,
  burst,
  houses,
}: Pick<Purchase, "dayLimit" | "monthLimit" | "perSecond" | "burst" | "houses">): string {
  const calls = (limit: bigint | null, period: string) =>
    `${limit === null ? "no fixed number of" : limit.toLocaleString("en-US")} calls per ${period}`;
  const rate = `${perSecond} calls per second, in bursts of up to ${burst}`;
  return `${calls(dayLimit, "day")}, ${calls(monthLimit, "month")}, ${rate}; ${houses?.join(", ") ?? "all houses"}`;
}

/**
 * Formats a time for e-mails.
 *
 * @example
 * timeOf("2026-11-21T04:00:12.1234560Z"); // => "2026-11-21 04:00 UTC"
 */
export function timeOf(at: string): string {
  return `${at.slice(0, 16).replace("T", " ")} UTC`;
}
