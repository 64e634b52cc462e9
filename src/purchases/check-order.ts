import { legalText } from "../accounts/legal.ts";
import { usd } from "../money.ts";
import { isOffer, offerOf, type HeldPlan, type Offer, type PlanForSale } from "./offer.ts";
import { isSameOffer, type Quote, QUOTE_HOLDS } from "./quote.ts";

/** The state that decides what an account may buy, and at what price. */
export interface Buyer {
  id: bigint;
  email: string;
  isSuspended: boolean;
  isClosed: boolean;
  balanceMicros: bigint;
  /** In the order in which they are offered. */
  plans: PlanForSale[];
  /** Plans that have not ended, by start. */
  held: HeldPlan[];
  /** The database clock at the time of this state, in microseconds since 1970. */
  now: bigint;
}

/** A submitted order for a plan. */
export interface Order {
  accountId: bigint;
  /** The offer that was shown. */
  quote: Quote;
  /** The idempotency key, made for the form; 1 to 100 characters. */
  key: string;
  /** The accepted versions of the two texts. */
  agreed: { startNow: string; noWithdrawal: string };
  address: string;
  userAgent: string;
  requestId: string;
}

/** The result of an order. If refused, nothing was bought, paid or changed. */
export type Purchased = { ok: true; purchaseId: bigint; isReplay: boolean } | Refused;

/** Why an order was refused. */
export interface Refused {
  ok: false;
  reason: RefusedOrder;
  message: string;
}

/** `changed`: it is offered, but not as shown. */
export type RefusedOrder = "not-yours" | "suspended" | "other-request" | "not-offered" | "balance" | "changed";

/**
 * Returns the offer that an order buys, or the refusal. Insufficient balance is reported before a changed offer, so
 * that of concurrent orders with money for one, the others get that reason.
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
    const message = `${plan.name} costs ${usd(offer.paidMicros)} USD and your balance is ${usd(balanceMicros)} USD: you need ${missing} USD more`;
    return refuse("balance", message);
  }
  if (!isTimely) return refuse("changed", "the quote is older than half an hour; open the page again");
  if (!isSameOffer(quote, offer)) return refuse("changed", "the offer has changed since you opened the page");
  const areRead =
    agreed.startNow === legalText("start-now").version && agreed.noWithdrawal === legalText("no-withdrawal").version;
  if (!areRead) return refuse("changed", "the texts that you agreed to have changed");
  return offer;
}

/** Makes a refusal. */
export function refuse(reason: RefusedOrder, message: string): Refused {
  return { ok: false, reason, message };
}
