import { letter, type Letter } from "../mail/letter.ts";
import { timeOf } from "./receipt.ts";

/** A plan that ends, or has ended. */
export interface Ending {
  plan: string;
  /** In the format of all JSON times. */
  endsAt: string;
  /** Whether any plan is on sale. */
  isAnyOnSale: boolean;
}

/** A plan that ends, as its reminder states it. */
export interface EndingSoon extends Ending {
  /** Whether it can be renewed. */
  isOnSale: boolean;
  /** Whole days until its end. */
  daysLeft: number;
}

/** A plan of so many days or more is announced to end so many days before. */
interface Notice {
  lastsDays: number;
  days: number;
}

/** One to five working days from bank to bank, then a check on a working day. */
const BANK_DAYS = 10;

/** When the end of a plan is announced, the longest plans first; a plan of less than four days has no such notice. */
export function noticesOf(hasBank: boolean): Notice[] {
  return [...(hasBank ? [{ lastsDays: 2 * BANK_DAYS, days: BANK_DAYS }] : []), { lastsDays: 4, days: 3 }];
}

/**
 * Days before the end of a plan from which its holder is warned, by mail and on the dashboard; 0 if never.
 *
 * @example
 * remindDays(30, { hasBank: true }); // => 10
 * remindDays(14, { hasBank: true }); // => 3
 * remindDays(30, { hasBank: false }); // => 3
 * remindDays(3, { hasBank: false }); // => 0
 */
export function remindDays(lastsDays: number, { hasBank }: { hasBank: boolean }): number {
  return noticesOf(hasBank).find((notice) => lastsDays >= notice.lastsDays)?.days ?? 0;
}

/**
 * The e-mail some days before a plan ends without a following one.
 * @param site the public address without a trailing slash; null if unknown
 */
export function endsSoon(
  { plan, endsAt, isOnSale, isAnyOnSale, daysLeft }: EndingSoon,
  { site, hasBank }: { site: string | null; hasBank: boolean },
): Letter {
  const renewal = isOnSale
    ? "If you renew it before then, the new time begins where this one ends."
    : `${plan} is no longer on sale, so it cannot be renewed. ${isAnyOnSale ? "You can buy a plan that is on sale." : NONE_ON_SALE}`;
  return letter("plan-ends", `Your plan ${plan} ends on ${timeOf(endsAt)}`, [
    `Your plan ${plan} ends on ${timeOf(endsAt)}, and no other follows it.`,
    `Nothing renews by itself. ${renewal} If you do nothing, calls with your keys get plan_expired (402) from then on. Your keys and your balance stay as they are.`,
    ...(hasBank && isAnyOnSale ? [bankText(daysLeft)] : []),
    ...(isAnyOnSale ? [where(site)] : []),
  ]);
}

/** The e-mail after it has ended. */
export function hasEnded({ plan, endsAt, isAnyOnSale }: Ending, site: string | null): Letter {
  return letter("plan-ended", `Your plan ${plan} has ended`, [
    `Your plan ${plan} ended on ${timeOf(endsAt)}, and no other follows it. Calls with your keys get plan_expired (402) until you have a plan again.`,
    "Your keys and your balance stay as they are, and this is the last mail about it.",
    isAnyOnSale ? where(site) : NONE_ON_SALE,
  ]);
}

const NONE_ON_SALE = "No plan is on sale now. Ask the operator of this service if you need one.";

function bankText(daysLeft: number): string {
  const takes = "A bank transfer takes one to five working days, and then it is checked.";
  return daysLeft < BANK_DAYS - 1
    ? `${takes} One that you send now may arrive after the end. Calls are then refused until it is credited and you have bought a plan.`
    : `${takes} If you top up that way, send it soon.`;
}

function where(site: string | null): string {
  return site === null
    ? 'You find the plans in the console, under "Plans".'
    : `You find the plans here:\n${site}/console/plans`;
}
