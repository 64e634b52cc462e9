import { unusedMicros } from "./unused.ts";

/** What somebody may do with a plan: begin, go on with the same one, change now to a higher one, or later to another. */
export type PurchaseKind = "buy" | "renew" | "upgrade" | "downgrade";

/** A plan as far as buying it goes. Amounts are micro-units. */
export interface PlanForSale {
  name: string;
  /** Its place among the plans: an upgrade goes to a higher one. */
  position: number;
  priceMicros: bigint;
  days: number;
  isOnSale: boolean;
  /** Changes with every change of the plan. */
  revision: bigint;
}

/** A plan that an account has now or later. Times are microseconds since 1970; no end means granted without end. */
export interface HeldPlan {
  entitlementId: bigint;
  plan: string;
  position: number;
  startsAt: bigint;
  endsAt: bigint | null;
  /** What it was bought with, and its worth: what was paid and not given back, and what of others went into it. */
  purchase: { id: bigint; valueMicros: bigint } | null;
}

/** What is left of one purchase that an upgrade replaces. */
export interface Credit {
  purchaseId: bigint;
  micros: bigint;
}

/** What a plan comes to for one account at one moment. */
export interface Offer {
  kind: PurchaseKind;
  plan: PlanForSale;
  /** What is left of what it replaces; only an upgrade has any. */
  discountMicros: bigint;
  /** The price less the discount, and never below nothing. */
  paidMicros: bigint;
  credits: Credit[];
  /** When it begins, in microseconds since 1970; null = with the purchase. */
  startsAt: bigint | null;
  /** How long it lasts, in microseconds. */
  lastsMicroseconds: bigint;
  /** What it ends (an upgrade) or follows (the others). */
  after: { plan: string; endsAt: bigint } | null;
}

/** Why a plan cannot be bought by an account now. */
export interface Refusal {
  reason: "off-sale" | "endless" | "later" | "queued-change" | "too-many" | "worth-more";
  message: string;
}

const DAY = 86_400_000_000n;
/** Plans of one account that have not ended: a year of months; whoever wants more has mistaken a button. */
const MOST_HELD = 12;
/** An upgrade from something worth a lot more lasts this long at most, in days. */
const LONGEST_DAYS = 3_660n;

/**
 * What a plan comes to for whoever holds these (not ended, in the order of their starts): its kind, price, discount and
 * time. `now` is when it would be bought, `asOf` the moment for which its price holds, both in microseconds since 1970.
 *
 * An upgrade begins at once and ends what runs and what follows. What is left of that is a discount: the value of each
 * purchase, by the share of its time that is left, rounded down. Where that is more than the new plan costs, nothing is
 * paid and the new plan lasts longer in the same proportion, so that nothing is lost and nothing is paid out.
 */
export function offerOf(
  plan: PlanForSale,
  held: readonly HeldPlan[],
  { now, asOf = now }: { now: bigint; asOf?: bigint },
): Offer | Refusal {
  if (!plan.isOnSale) return refuse("off-sale", `${plan.name} is not on sale now`);
  const endless = held.find(({ endsAt }) => endsAt === null);
  if (endless !== undefined) {
    const message = `you have ${endless.plan} without an end, which was given to you; nothing can be bought beside it. Ask whoever runs this service to end it first`;
    return refuse("endless", message);
  }
  const [current, last] = [held[0], held.at(-1)];
  if (current === undefined || last === undefined) return fixed("buy", plan, null);
  if (current.startsAt > now) {
    return refuse("later", `${current.plan} was given to you and has not begun; a plan can be bought once it has`);
  }
  if (plan.position > current.position && plan.name !== last.plan) return upgrade(plan, held, { now, asOf });
  if (plan.name !== last.plan && last.plan !== current.plan) {
    const message = `${last.plan} follows ${current.plan} already, and only one change can wait. Once ${last.plan} has begun, you can change again; a higher plan than ${current.plan} can be had at once`;
    return refuse("queued-change", message);
  }
  if (held.length >= MOST_HELD) {
    return refuse("too-many", `${held.length} plans are paid ahead, the most there may be; wait until one has ended`);
  }
  return fixed(plan.name === last.plan ? "renew" : "downgrade", plan, last);
}

/** Whether it can be bought. */
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
    return refuse("worth-more", message);
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

function refuse(reason: Refusal["reason"], message: string): Refusal {
  return { reason, message };
}
