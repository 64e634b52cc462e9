import { letter, type Letter } from "../mail/letter.ts";
import { timeOf } from "./receipt.ts";

/** A plan that ends, or has ended. */
export interface Ending {
  plan: string;
  /** In the format of all JSON times. */
  endsAt: string;
}

/** A plan that ends, as its reminder states it. */
export interface EndingSoon extends Ending {
  /** Whether it can be renewed. */
  isOnSale: boolean;
}

/** Days between the reminder and the end of a plan. */
export const REMIND_DAYS = 3;
/** The same if bank transfers are offered: one to five working days from bank to bank, then a check on a working day. */
export const BANK_REMIND_DAYS = 10;

/**
 * The e-mail some days before a plan ends without a following one.
 * @param site the public address without a trailing slash; null if unknown
 */
export function endsSoon(
  { plan, endsAt, isOnSale }: EndingSoon,
  { site, hasBank }: { site: string | null; hasBank: boolean },
): Letter {
  const renewal = isOnSale
    ? "If you renew it before then, the new time begins where this one ends."
    : `${plan} is no longer on sale, so it cannot be renewed. You can buy a plan that is on sale.`;
  return letter("plan-ends", `Your plan ${plan} ends on ${timeOf(endsAt)}`, [
    `Your plan ${plan} ends on ${timeOf(endsAt)}, and no other follows it.`,
    `Nothing renews by itself. ${renewal} If you do nothing, calls with your keys get plan_expired (402) from then on. Your keys and your balance stay as they are.`,
    ...(hasBank
      ? [
          "A bank transfer takes one to five working days, and then it is checked. If you top up that way, send it soon.",
        ]
      : []),
    where(site),
  ]);
}

/** The e-mail after it has ended. */
export function hasEnded({ plan, endsAt }: Ending, site: string | null): Letter {
  return letter("plan-ended", `Your plan ${plan} has ended`, [
    `Your plan ${plan} ended on ${timeOf(endsAt)}, and no other follows it. Calls with your keys get plan_expired (402) until you have a plan again.`,
    "Your keys and your balance stay as they are, and this is the last mail about it.",
    where(site),
  ]);
}

function where(site: string | null): string {
  return site === null
    ? 'You find the plans in the console, under "Plans".'
    : `You find the plans here:\n${site}/console/plans`;
}
