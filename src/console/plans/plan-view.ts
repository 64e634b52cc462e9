import { thousands, usd } from "../../money.ts";
import { isOffer, offerOf, type Offer, type PurchaseKind } from "../../purchases/offer.ts";
import type { Buyer } from "../../purchases/check-order.ts";

const DAY = 86_400_000_000;

/** The offer of a plan to a buyer, as pages show it: times as dates. */
export interface OfferView {
  kind: PurchaseKind;
  /** Label of the button. */
  verb: string;
  price: string;
  /** Amounts in 1e-6 USD: a part of a plan is worth a fraction of a cent. */
  discount: bigint | null;
  pay: bigint;
  isFree: boolean;
  startsAt: Date | null;
  endsAt: Date;
  /** Days that the plan lasts, with at most one decimal. */
  lasts: string;
  /** Whether the unused part of the previous plan is worth more than this plan costs, so that it lasts longer. */
  isLonger: boolean;
  days: number;
  /** The plan that this one ends (upgrade) or follows (all other kinds). */
  after: { plan: string; endsAt: Date } | null;
  /** Plans that an upgrade replaces, with the value of their unused part; `worth` is null for granted plans. */
  replaced: { plan: string; isRunning: boolean; endsAt: Date; worth: bigint | null }[];
  /** Amount missing from the balance in 1e-6 USD; null if it is enough. */
  missing: bigint | null;
  balanceAfter: bigint;
}

/** A plan for a buyer: the offer, or the reason why it is not available. */
export type PlanView =
  { isHeld: boolean; offer: OfferView; made: Offer; refusal: null } | { isHeld: boolean; offer: null; refusal: string };

const VERBS: Record<PurchaseKind, (plan: string) => string> = {
  buy: (plan) => `Buy ${plan}`,
  renew: (plan) => `Renew ${plan}`,
  upgrade: (plan) => `Change to ${plan} now`,
  downgrade: (plan) => `Change to ${plan} later`,
};

/** The view of a plan for a buyer; null if there is no plan with this name. */
export function planView(buyer: Buyer, name: string): PlanView | null {
  const plan = buyer.plans.find((one) => one.name === name);
  if (plan === undefined) return null;
  const { held, now } = buyer;
  const isHeld = held.some((one) => one.plan === name);
  const made = offerOf(plan, held, { now });
  if (!isOffer(made)) return { isHeld, offer: null, refusal: made.message };
  return { isHeld, offer: offerView(buyer, made), made, refusal: null };
}

function offerView({ held, now, balanceMicros }: Buyer, made: Offer): OfferView {
  const { kind, plan, discountMicros, paidMicros, startsAt, lastsMicroseconds, credits, after } = made;
  const worthOf = new Map(credits.map(({ purchaseId, micros }) => [purchaseId, micros]));
  const missing = paidMicros - balanceMicros;
  return {
    kind,
    verb: VERBS[kind](plan.name),
    price: thousands(usd(plan.priceMicros)),
    discount: discountMicros > 0n ? discountMicros : null,
    pay: paidMicros,
    isFree: paidMicros === 0n,
    startsAt: startsAt === null ? null : dateOf(startsAt),
    endsAt: dateOf((startsAt ?? now) + lastsMicroseconds),
    lasts: (Math.floor((Number(lastsMicroseconds) / DAY) * 10) / 10).toString(),
    isLonger: discountMicros > plan.priceMicros,
    days: plan.days,
    after: after && { plan: after.plan, endsAt: dateOf(after.endsAt) },
    replaced:
      kind !== "upgrade"
        ? []
        : held.map((one) => ({
            plan: one.plan,
            isRunning: one.startsAt <= now,
            endsAt: dateOf(one.endsAt ?? now),
            worth: one.purchase === null ? null : (worthOf.get(one.purchase.id) ?? 0n),
          })),
    missing: missing > 0n ? missing : null,
    balanceAfter: balanceMicros - paidMicros,
  };
}

function dateOf(micros: bigint): Date {
  return new Date(Number(micros / 1_000n));
}
