import { saveConsent } from "../accounts/holders/consent-store.ts";
import { appendAudit } from "../audit/store.ts";
import { announce } from "../callers/key-store.ts";
import type { Sql, Transaction } from "../db/client.ts";
import { usd } from "../money.ts";
import { post } from "../ledger/store.ts";
import { queueMail } from "../mail/outbox-store.ts";
import { findPurchase, type Purchase } from "./history-store.ts";
import { checkOrder, refuse, type Buyer, type Order, type Purchased, type Refused } from "./check-order.ts";
import type { Offer } from "./offer.ts";
import { receipt } from "./receipt.ts";
import { atMicros, lockBuyer } from "./state-store.ts";
import { readUsedLimit } from "./used-limit-store.ts";
import { usedLimitText } from "./used-limit.ts";

/**
 * Buys, renews or changes a plan from the balance: money, access, both consents, the receipt e-mail and the audit entry
 * are one transaction. Access is valid from the next call on, in every process.
 *
 * Orders of one account run one after another. A repeated key returns its first purchase; another order with the same
 * key is refused. If price, discount, start or the plan differ from the quote, nothing is bought.
 */
export async function purchase(sql: Sql, order: Order): Promise<Purchased> {
  return sql.begin(async (tx) => {
    const buyer = await lockBuyer(tx, { accountId: order.accountId, plan: order.quote.plan });
    if (buyer === null || buyer.isClosed) return refuse("not-yours", "there is no such account, or it is closed");
    const known = await findByKey(tx, order);
    if (known !== null) return known;
    const offer = checkOrder(buyer, order);
    if ("ok" in offer) return offer;
    const paid = await pay(tx, order, offer);
    if (!paid.ok) return paid;
    const { transactionId } = paid;
    const purchaseId = await savePurchase(tx, { buyer, order, offer, transactionId });
    await giveAccess(tx, purchaseId, { buyer, offer });
    const origin = { accountId: buyer.id, address: order.address, userAgent: order.userAgent };
    await saveConsent(tx, { ...origin, kind: "start-now" });
    await saveConsent(tx, { ...origin, kind: "no-withdrawal" });
    await notify(tx, { buyer, order, offer, purchaseId });
    return { ok: true, purchaseId, isReplay: false };
  });
}

async function findByKey(tx: Transaction, { accountId, key, quote }: Order): Promise<Purchased | null> {
  const [known] = await tx<{ id: bigint; isSame: boolean }[]>`
    select
      id,
      kind = ${quote.kind}
        and plan = ${quote.plan}
        and plan_revision = ${String(quote.revision)}::bigint
        and listed_micros = ${String(quote.listedMicros)}::bigint
        and discount_micros = ${String(quote.discountMicros)}::bigint as "isSame"
    from purchases
    where account_id = ${accountId}
      and idempotency_key = ${key}`;
  if (known === undefined) return null;
  if (known.isSame) return { ok: true, purchaseId: known.id, isReplay: true };
  return refuse(
    "other-request",
    `this form has bought something else already (purchase ${known.id}); open the plan's page again for another purchase`,
  );
}

/** Posts the payment. Returns null if nothing is to be paid, and a refusal if the balance is too low. */
async function pay(
  tx: Transaction,
  { accountId, key }: Order,
  { plan, kind, paidMicros }: Offer,
): Promise<{ ok: true; transactionId: bigint | null } | Refused> {
  if (paidMicros === 0n) return { ok: true, transactionId: null };
  const posted = await post(tx, {
    kind: "purchase",
    key: `purchase:${accountId}:${key}`,
    legs: [
      { side: { kind: "wallet", owner: accountId }, micros: -paidMicros },
      { side: { kind: "revenue" }, micros: paidMicros },
    ],
    meta: { plan: plan.name, purchase: kind },
  });
  if (!posted.ok) return refuse(posted.reason === "overdraft" ? "balance" : "other-request", posted.message);
  return { ok: true, transactionId: posted.transactionId };
}

async function savePurchase(
  tx: Transaction,
  { buyer, order, offer, transactionId }: { buyer: Buyer; order: Order; offer: Offer; transactionId: bigint | null },
): Promise<bigint> {
  const { kind, plan, discountMicros, paidMicros, credits } = offer;
  const startsAt = offer.startsAt ?? buyer.now;
  const [saved] = await tx<{ id: bigint }[]>`
    insert into purchases (
      account_id, idempotency_key, kind, plan, plan_revision, listed_micros, discount_micros, paid_micros, days,
      day_limit, month_limit, burst_per_second, burst, houses, starts_at, ends_at, start_now_version,
      no_withdrawal_version, transaction_id
    )
    select
      ${buyer.id}, ${order.key}, ${kind}, ${plan.name}, ${plan.revision}, ${plan.priceMicros}, ${discountMicros},
      ${paidMicros}, ${plan.days}, p.day_limit, p.month_limit, p.burst_per_second, p.burst,
      case
        when not p.all_houses then array(select house_id from plan_houses where plan = p.name order by house_id)
      end,
      ${atMicros(tx, startsAt)}, ${atMicros(tx, startsAt + offer.lastsMicroseconds)}, ${order.agreed.startNow},
      ${order.agreed.noWithdrawal}, ${transactionId}
    from plans p
    where p.name = ${plan.name}
    returning id`;
  if (saved === undefined) throw new Error("expected the new purchase's id, got nothing");
  if (credits.length > 0) {
    await tx`
      insert into purchase_credits (purchase_id, of_purchase, micros)
      select ${saved.id}, of_purchase, micros
      from unnest(
        ${credits.map(({ purchaseId }) => String(purchaseId))}::bigint[],
        ${credits.map(({ micros }) => String(micros))}::bigint[]
      ) as credit (of_purchase, micros)`;
  }
  return saved.id;
}

/** An upgrade ends the current plan, and replaces the future ones. */
async function giveAccess(
  tx: Transaction,
  purchaseId: bigint,
  { buyer, offer }: { buyer: Buyer; offer: Offer },
): Promise<void> {
  if (offer.kind === "upgrade") {
    const held = buyer.held.map(({ entitlementId }) => String(entitlementId));
    const now = atMicros(tx, buyer.now);
    await tx`
      delete from entitlements
      where id = any(${held}::bigint[])
        and starts_at >= ${now}`;
    await tx`
      update entitlements
      set ends_at = ${now}
      where id = any(${held}::bigint[])`;
  }
  // a plan that is followed by another needs no reminder; marking it skips it in later runs
  await tx`
    update entitlements
    set
      reminded_at = coalesce(reminded_at, clock_timestamp()),
      end_notified_at = clock_timestamp()
    where account_id = ${buyer.id}
      and end_notified_at is null`;
  await tx`
    insert into entitlements (account_id, plan, starts_at, ends_at, purchase_id)
    select account_id, plan, starts_at, ends_at, id
    from purchases
    where id = ${purchaseId}`;
}

async function notify(
  tx: Transaction,
  { buyer, order, offer, purchaseId }: { buyer: Buyer; order: Order; offer: Offer; purchaseId: bigint },
): Promise<void> {
  const made = await findPurchase(tx, buyer.id, purchaseId);
  if (made === null) throw new Error(`purchase ${purchaseId} was made and is gone`);
  const usedLimit = await readUsedLimit(tx, { accountId: buyer.id, plan: made.plan, startsAt: offer.startsAt });
  await queueMail(tx, {
    ...receipt(made, usedLimit && usedLimitText(usedLimit)),
    recipient: buyer.email,
    dedupKey: `purchase ${purchaseId}`,
  });
  await announce(tx);
  const who = `account ${buyer.id}`;
  await appendAudit(tx, {
    surface: "console",
    actor: who,
    role: null,
    action: `plan.${made.kind}`,
    target: who,
    before: { plan: buyer.held[0]?.plan ?? null, balance: usd(buyer.balanceMicros) },
    after: factsOf(made, buyer.balanceMicros),
    reason: null,
    requestId: order.requestId,
    address: order.address,
  });
}

function factsOf({ id, plan, paidMicros, discountMicros, startsAt, endsAt }: Purchase, balanceMicros: bigint): object {
  return {
    purchase: id,
    plan,
    paid: usd(paidMicros),
    discount: usd(discountMicros),
    startsAt,
    endsAt,
    balance: usd(balanceMicros - paidMicros),
  };
}
