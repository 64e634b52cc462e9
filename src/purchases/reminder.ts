import { letter, type Letter } from "../mail/letter.ts";
import { timeOf } from "./receipt.ts";

/** A plan that ends, or has ended. */
export interface Ending {
  plan: string;
  /** In the format of all JSON times. */
  endsAt: string;
}

/** Days between the reminder and the end of a plan: time for a bank transfer to arrive. */
export const REMIND_DAYS = 3;

/**
 * The e-mail some days before a plan ends without a following one.
 * @param site the public address without a trailing slash; null if unknown
 */
export function endsSoon({ plan, endsAt }: Ending, site: string | null): Letter {
  return letter("plan-ends", `Your plan ${plan} ends on ${timeOf(endsAt)}`, [
    `Your plan ${plan} ends on ${timeOf(endsAt)}, and no other follows it.`,
    "Nothing renews by itself. If you renew it before then, the new time begins where this one ends. If you do nothing, calls with your keys get plan_expired (402) from then on. Your keys and your balance stay as they are.",
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
