import { lockAccount } from "../callers/lock-store.ts";
import type { Queryable, Transaction } from "../db/client.ts";
import { walletMicros } from "../ledger/store.ts";
import type { Buyer } from "./check-order.ts";
import type { HeldPlan, PlanForSale } from "./offer.ts";

/** Reads the state that decides what an account may buy; null if there is no such account. */
export async function readBuyer(sql: Queryable, accountId: bigint): Promise<Buyer | null> {
  const [account] = await sql<Pick<Buyer, "id" | "email" | "isSuspended" | "isClosed" | "now">[]>`
    select
      id,
      email,
      suspended_at is not null as "isSuspended",
      closed_at is not null as "isClosed",
      (extract(epoch from clock_timestamp()) * 1000000)::bigint as now
    from accounts
    where id = ${accountId}`;
  if (account === undefined) return null;
  const plans = await sql<PlanForSale[]>`
    select name, position, price_micros as "priceMicros", days, on_sale as "isOnSale", revision
    from plans
    order by position, name`;
  const held = await listHeld(sql, accountId, account.now);
  return { ...account, balanceMicros: await walletMicros(sql, accountId), plans, held };
}

/**
 * The same, with the account's row and the plan's locked: no concurrent purchase, suspension, closing or change of the
 * plan until the transaction ends.
 */
export async function lockBuyer(
  tx: Transaction,
  { accountId, plan }: { accountId: bigint; plan: string },
): Promise<Buyer | null> {
  await lockAccount(tx, accountId);
  await tx`
    select
    from plans
    where name = ${plan}
    for share`;
  return readBuyer(tx, accountId); // a later statement sees what the last holders of the locks committed
}

/** Reversed payments have no value towards another plan; credits from replaced purchases still have. */
async function listHeld(sql: Queryable, accountId: bigint, now: bigint): Promise<HeldPlan[]> {
  const rows = await sql<(Omit<HeldPlan, "purchase"> & { purchaseId: bigint | null; valueMicros: bigint | null })[]>`
    select
      e.id as "entitlementId",
      e.plan,
      p.position,
      (extract(epoch from e.starts_at) * 1000000)::bigint as "startsAt",
      (extract(epoch from e.ends_at) * 1000000)::bigint as "endsAt",
      b.id as "purchaseId",
      b.discount_micros
        + case when reversed_at(b.transaction_id) is null then b.paid_micros else 0 end as "valueMicros"
    from entitlements e
    join plans p on p.name = e.plan
    left join purchases b on b.id = e.purchase_id
    where e.account_id = ${accountId}
      and (e.ends_at is null or e.ends_at > ${atMicros(sql, now)})
    order by e.starts_at`;
  return rows.map(({ purchaseId, valueMicros, ...row }) => ({
    ...row,
    purchase: purchaseId === null || valueMicros === null ? null : { id: purchaseId, valueMicros },
  }));
}

/** Converts microseconds since 1970 into a database time. */
export function atMicros(sql: Queryable, micros: bigint) {
  // doubles, which the multiplication uses, represent every microsecond up to 2255
  return sql`('epoch'::timestamptz + ${String(micros)}::bigint * interval '1 microsecond')`;
}
