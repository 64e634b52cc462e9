import { unusedMicros } from "./unused.ts";

/** The kind of a purchase: a first plan, the same plan again, a higher plan now, or a lower plan later. */
export type PurchaseKind = "buy" | "renew" | "upgrade" | "downgrade";

/** A plan as sold. Amounts are micro-units. */
export interface PlanForSale {
  name: string;
  /** Its rank among the plans: an upgrade is to a higher one. */
  position: number;
  priceMicros: bigint;
  days: number;
  isOnSale: boolean;
  /** Changes with every change of the plan. */
  revision: bigint;
}

/**
 * A current or future plan of an account. Times are microseconds since 1970; without an end it was granted permanently.
 */
export interface HeldPlan {
  entitlementId: bigint;
  plan: string;
  position: number;
  startsAt: bigint;
  endsAt: bigint | null;
  /**
   * Its purchase, and that purchase's value: the amount paid and not reversed, plus the credit from replaced purchases.
   */
  purchase: { id: bigint; valueMicros: bigint } | null;
}

/** The remaining value of one purchase that an upgrade replaces. */
export interface Credit {
  purchaseId: bigint;
  micros: bigint;
}

/** The terms of a plan for one account at one moment. */
export interface Offer {
  kind: PurchaseKind;
  plan: PlanForSale;
  /** The remaining value of the plans that an upgrade replaces; otherwise zero. */
  discountMicros: bigint;
  /** The price less the discount, at least zero. */
  paidMicros: bigint;
  credits: Credit[];
  /** The start, in microseconds since 1970; null for immediately. */
  startsAt: bigint | null;
  /** The duration, in microseconds. */
  lastsMicroseconds: bigint;
  /** The plan that it ends (an upgrade) or follows (the others). */
  after: { plan: string; endsAt: bigint } | null;
}

/** Why an account cannot buy a plan now. */
export interface Refusal {
  message: string;
}

const DAY = 86_400_000_000n;
/** Plans of one account that have not ended: a year of months; more is probably a mistake. */
const MOST_HELD = 12;
/** The longest duration of an upgrade from a plan of much higher value, in days. */
const LONGEST_DAYS = 3_660n;

/**
 * Returns the terms of a plan for the holder of `held` plans (not ended, by start): kind, price, discount and period.
 * `now` is the time of the purchase, `asOf` the moment of the price, both in microseconds since 1970.
 *
 * An upgrade begins immediately and ends the current and future plans. Their remaining value is a discount: the value
 * of each purchase times the remaining share of its period, rounded down. If the discount exceeds the price, nothing is
 * paid and the new plan lasts proportionally longer, so that no value is lost or paid out.
 */
export function offerOf(
  plan: PlanForSale,
  held: readonly HeldPlan[],
  { now, asOf = now }: { now: bigint; asOf?: bigint },
): Offer | Refusal {
  if (!plan.isOnSale) return { message: `${plan.name} is not on sale now` };
  const endless = held.find(({ endsAt }) => endsAt === null);
  if (endless !== undefined) {
    const message = `you have ${endless.plan} without an end, which was given to you, so no plan can be bought. Ask the operator of this service to end it first`;
    return { message };
  }
  const [current, last] = [held[0], held.at(-1)];
  if (current === undefined || last === undefined) return fixed("buy", plan, null);
  if (current.startsAt > now) {
    return { message: `${current.plan} has not begun; a plan can be bought once it has` };
  }
  if (plan.position > current.position && plan.name !== last.plan) return upgrade(plan, held, { now, asOf });
  if (plan.name !== last.plan && last.plan !== current.plan) {
    const message = `${last.plan} follows ${current.plan} already, and only one change can wait. Once ${last.plan} has begun, you can change again; a higher plan than ${current.plan} can begin immediately`;
    return { message };
  }
  if (held.length >= MOST_HELD) {
    return { message: `${held.length} plans are paid ahead, the most there may be; wait until one has ended` };
  }
  return fixed(plan.name === last.plan ? "renew" : "downgrade", plan, last);
}

/** Whether the plan can be bought. */
export function isOffer(offer: Offer | Refusal): offer is Offer {
  return "kind" in offer;
}

function fixed(kind: PurchaseKind, plan: PlanForSale, last: HeldPlan | null): Offer {
  const endsAt = last?.endsAt ?? null;
  return {
    kind,
    plan,
    discountMicros: 0n,
    paidMicros: plan.priceMicros,
    credits: [],
    startsAt: endsAt,
    lastsMicroseconds: BigInt(plan.days) * DAY,
    after: last === null || endsAt === null ? null : { plan: last.plan, endsAt },
  };
}

function upgrade(
  plan: PlanForSale,
  held: readonly HeldPlan[],
  { now, asOf }: { now: bigint; asOf: bigint },
): Offer | Refusal {
  const credits = held.flatMap(({ purchase, startsAt, endsAt }) =>
    purchase === null || endsAt === null
      ? []
      : [{ purchaseId: purchase.id, micros: unusedMicros(purchase.valueMicros, { startsAt, endsAt }, asOf) }],
  );
  const unused = credits.reduce((sum, { micros }) => sum + micros, 0n);
  const price = plan.priceMicros;
  const [current] = held;
  const replaced = current?.plan ?? "";
  const usual = BigInt(plan.days) * DAY;
  if (unused > price && (price === 0n || (usual * unused) / price > LONGEST_DAYS * DAY)) {
    const message = `what is left of ${replaced} is worth so much more than ${plan.name} that most of it would be lost; take ${plan.name} once ${replaced} has ended`;
    return { message };
  }
  return {
    kind: "upgrade",
    plan,
    discountMicros: unused,
    paidMicros: unused > price ? 0n : price - unused,
    credits,
    startsAt: null,
    lastsMicroseconds: unused > price ? (usual * unused) / price : usual,
    after: { plan: replaced, endsAt: now },
  };
}
