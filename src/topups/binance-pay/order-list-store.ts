import type { Queryable } from "../../db/client.ts";
import type { AppOrder } from "./order-store.ts";

/** An order as operators see it. */
export interface ListedOrder {
  topupId: bigint;
  accountId: bigint;
  email: string;
  tradeNo: string;
  prepayId: string | null;
  micros: bigint;
  state: AppOrder["state"];
  attempts: number;
  providerStatus: string | null;
  lastError: string | null;
  createdAt: Date;
  askedAt: Date | null;
  askAt: Date | null;
  transactionId: bigint | null;
}

/** Returns orders at the payment app, newest first: of one state or of all, from the newest or before a given one. */
export async function listOrders(
  sql: Queryable,
  { state, before, limit }: { state: AppOrder["state"] | null; before: bigint | null; limit: number },
): Promise<ListedOrder[]> {
  return sql<ListedOrder[]>`
    select
      o.topup_id as "topupId",
      t.account_id as "accountId",
      a.email,
      o.trade_no as "tradeNo",
      o.prepay_id as "prepayId",
      o.amount_micros as micros,
      o.state,
      o.attempts,
      o.provider_status as "providerStatus",
      o.last_error as "lastError",
      o.created_at as "createdAt",
      o.asked_at as "askedAt",
      o.ask_at as "askAt",
      t.transaction_id as "transactionId"
    from payment_app_orders o
    join topups t on t.id = o.topup_id
    join accounts a on a.id = t.account_id
    where true
      ${state === null ? sql`` : sql`and o.state = ${state}`}
      ${before === null ? sql`` : sql`and o.topup_id < ${before}`}
    order by o.topup_id desc
    limit ${limit}`;
}

/** Returns when the notification keys were fetched, and their number. */
export async function findKeyFacts(
  sql: Queryable,
): Promise<{ fetchedAt: Date | null; triedAt: Date | null; keys: number }> {
  const [facts] = await sql<{ fetchedAt: Date | null; triedAt: Date | null; keys: number }[]>`
    select
      certificates_at as "fetchedAt",
      certificates_tried_at as "triedAt",
      (select count(*) from payment_app_certificates)::integer as keys
    from payment_app_state`;
  return facts ?? { fetchedAt: null, triedAt: null, keys: 0 };
}

/** Schedules an immediate query of an order that was created and is not credited. Returns false if there is none. */
export async function scheduleQuery(sql: Queryable, topupId: bigint): Promise<boolean> {
  const rows = await sql`
    update payment_app_orders
    set ask_at = clock_timestamp()
    where topup_id = ${topupId}
      and prepay_id is not null
      and state <> 'paid'`;
  return rows.count > 0;
}
