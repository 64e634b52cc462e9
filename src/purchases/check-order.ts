import { legalText } from "../accounts/legal.ts";
import { usd } from "../money.ts";
import { isOffer, offerOf, type HeldPlan, type Offer, type PlanForSale } from "./offer.ts";
import { isSameOffer, type Quote, QUOTE_HOLDS } from "./quote.ts";

/** What decides what an account may buy, and for how much. */
export interface Buyer {
  id: bigint;
  email: string;
  isSuspended: boolean;
  isClosed: boolean;
  balanceMicros: bigint;
  /** In the order in which they are offered. */
  plans: PlanForSale[];
  /** Plans that have not ended, in the order of their starts. */
  held: HeldPlan[];
  /** The database's clock, in microseconds since 1970: all of this holds then. */
  now: bigint;
}

/** What somebody has sent to buy a plan. */
export interface Order {
  accountId: bigint;
  /** What they saw. */
  quote: Quote;
  /** Made for the form, so that a form that is sent twice buys once; 1 to 100 characters. */
  key: string;
  /** The versions of the two texts that they agreed to. */
  agreed: { startNow: string; noWithdrawal: string };
  address: string;
  userAgent: string;
  requestId: string;
}

/** What came of an order. Refused means that nothing was bought, paid or changed. */
export type Purchased = { ok: true; purchaseId: bigint; isReplay: boolean } | Refused;

/** Why an order was not taken; nothing came of it. */
export interface Refused {
  ok: false;
  reason: RefusedOrder;
  message: string;
}

/** `changed`: it is offered, but not as it was seen. */
export type RefusedOrder = "not-yours" | "suspended" | "other-request" | "not-offered" | "balance" | "changed";

/**
 * The offer that an order buys, or why it does not. Money that is missing is said before that something has changed: of
 * many orders at once with money for one, the others are told that.
 */
export function checkOrder(buyer: Buyer, { quote, agreed }: Order): Offer | Refused {
  const { now, balanceMicros } = buyer;
  if (buyer.isSuspended) return refuse("suspended", "the account is suspended, so nothing can be bought for it");
  const plan = buyer.plans.find(({ name }) => name === quote.plan);
  if (plan === undefined) return refuse("not-offered", `there is no plan ${quote.plan}`);
  const isTimely = quote.asOf <= now && quote.asOf >= now - QUOTE_HOLDS;
  const offer = offerOf(plan, buyer.held, { now, asOf: isTimely ? quote.asOf : now });
  if (!isOffer(offer)) return refuse("not-offered", offer.message);
  if (offer.paidMicros > balanceMicros) {
    const missing = usd(offer.paidMicros - balanceMicros);
    const message = `${plan.name} comes to ${usd(offer.paidMicros)} USD and your balance is ${usd(balanceMicros)} USD: ${missing} USD are missing`;
    return refuse("balance", message);
  }
  if (!isTimely) return refuse("changed", "what you saw was worked out more than half an hour ago");
  if (!isSameOffer(quote, offer)) return refuse("changed", "the offer has changed since you opened the page");
  const areRead =
    agreed.startNow === legalText("start-now").version && agreed.noWithdrawal === legalText("no-withdrawal").version;
  if (!areRead) return refuse("changed", "the texts that you agreed to have changed");
  return offer;
}

/** An order that was not taken. */
export function refuse(reason: RefusedOrder, message: string): Refused {
  return { ok: false, reason, message };
}
