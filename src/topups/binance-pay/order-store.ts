import type { Queryable, Transaction } from "../../db/client.ts";
import { cut } from "../../text.ts";
import type { MadeOrder } from "./responses.ts";
import { ORDER_MINUTES } from "./method.ts";

/** The size of the column. */
const LONGEST_ERROR = 300;

/** The stored state of an order at the payment app. */
export interface AppOrder {
  topupId: bigint;
  accountId: bigint;
  tradeNo: string;
  micros: bigint;
  /** `new`: to be created. `open`: can be paid. `strange`: paid, but not as ordered. */
  state: "new" | "open" | "paid" | "strange" | "closed";
  attempts: number;
  prepayId: string | null;
  checkoutUrl: string | null;
  qrContent: string | null;
  expiresAt: Date | null;
  /** Whether its time to be paid has passed, by the database clock. */
  isOver: boolean;
  /** Whether that was a week ago. */
  isLongOver: boolean;
  lastError: string | null;
}

/** Stores an order to be created by the worker's next run. */
export async function saveNewOrder(
  tx: Transaction,
  order: { topupId: bigint; tradeNo: string; micros: bigint },
): Promise<void> {
  await tx`
    insert into payment_app_orders (topup_id, trade_no, amount_micros, ask_at)
    values (${order.topupId}, ${order.tradeNo}, ${order.micros}, clock_timestamp())`;
}

/** Returns top-ups whose order is due for processing, the longest overdue first. */
export async function listDueOrders(sql: Queryable, limit: number): Promise<bigint[]> {
  const rows = await sql<{ id: bigint }[]>`
    select topup_id as id
    from payment_app_orders
    where ask_at <= clock_timestamp()
    order by ask_at
    limit ${limit}`;
  return rows.map(({ id }) => id);
}

/** Returns the order of a top-up; null if there is none. With `isHeld` it is locked until the transaction ends. */
export async function findOrder(
  sql: Queryable,
  topupId: bigint,
  { isHeld = false }: { isHeld?: boolean } = {},
): Promise<AppOrder | null> {
  const [found] = await sql<AppOrder[]>`
    select
      o.topup_id as "topupId",
      t.account_id as "accountId",
      o.trade_no as "tradeNo",
      o.amount_micros as micros,
      o.state,
      o.attempts,
      o.prepay_id as "prepayId",
      o.checkout_url as "checkoutUrl",
      o.qr_content as "qrContent",
      o.expires_at as "expiresAt",
      coalesce(o.expires_at <= clock_timestamp(), false) as "isOver",
      coalesce(o.expires_at <= clock_timestamp() - interval '7 days', false) as "isLongOver",
      o.last_error as "lastError"
    from payment_app_orders o
    join topups t on t.id = o.topup_id
    where o.topup_id = ${topupId}
    ${isHeld ? sql`for no key update of o` : sql``}`;
  return found ?? null;
}

/** The lease of an order: when a worker dies, another takes the order after this time. */
const LEASE_SECONDS = 60;

/** Leases an order that is due, so that no other worker processes it. Returns false if it is not due. */
export async function leaseOrder(sql: Queryable, topupId: bigint): Promise<boolean> {
  const taken = await sql`
    update payment_app_orders
    set ask_at = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where topup_id = ${topupId}
      and ask_at <= clock_timestamp()`;
  return taken.count === 1;
}

/** Seconds until the next attempt to create an order, multiplied by the attempts so far. */
const AGAIN_SECONDS = 10;

/**
 * Begins an attempt to create an order, under a name that no earlier attempt had. Returns when the order expires, in
 * milliseconds since 1970; null if it is created already or another process began at the same time.
 */
export async function beginAttempt(
  sql: Queryable,
  order: AppOrder,
  tradeNo: string,
): Promise<{ expiresAtMs: number } | null> {
  const [begun] = await sql<{ expiresAtMs: number }[]>`
    update payment_app_orders
    set
      attempts = attempts + 1,
      trade_no = ${tradeNo},
      asked_at = clock_timestamp(),
      ask_at = clock_timestamp() + make_interval(secs => ${AGAIN_SECONDS * (order.attempts + 1)})
    where topup_id = ${order.topupId}
      and state = 'new'
      and attempts = ${order.attempts}
    returning (extract(epoch from clock_timestamp() + make_interval(mins => ${ORDER_MINUTES})) * 1000)::float8 as "expiresAtMs"`;
  return begun === undefined ? null : { expiresAtMs: Math.floor(begun.expiresAtMs) };
}

/** Stores what the payment app created in an attempt; from now on the order can be paid. */
export async function saveMadeOrder(
  tx: Transaction,
  { topupId, tradeNo }: { topupId: bigint; tradeNo: string },
  made: MadeOrder,
): Promise<boolean> {
  const saved = await tx`
    update payment_app_orders
    set
      state = 'open',
      prepay_id = ${made.prepayId},
      checkout_url = ${made.checkoutUrl},
      qr_content = ${made.qrContent},
      expires_at = to_timestamp(${made.expireTime}::float8 / 1000),
      last_error = null,
      ask_at = clock_timestamp() + interval '5 minutes'
    where topup_id = ${topupId}
      and trade_no = ${tradeNo}
      and state = 'new'`;
  return saved.count === 1;
}

/** The next step of an order: `askInSeconds` until it is processed again, null for never. */
export interface OrderStep {
  /** The state when the step was decided; if it has changed since, the step is dropped. */
  from: AppOrder["state"];
  state: AppOrder["state"];
  askInSeconds: number | null;
  providerStatus?: string | null;
  error?: string | null;
}

/** Stores the next step of an order. If a notification arrived during the lease, the order is due again immediately. */
export async function saveOrderStep(sql: Queryable, topupId: bigint, step: OrderStep): Promise<void> {
  await sql`
    update payment_app_orders
    set
      state = ${step.state},
      ask_at = case
        when ${step.state} <> 'paid' and ask_at <= clock_timestamp() then ask_at
        else clock_timestamp() + make_interval(secs => ${step.askInSeconds})
      end,
      asked_at = clock_timestamp(),
      provider_status = coalesce(${step.providerStatus ?? null}, provider_status),
      last_error = ${step.error == null ? null : cut(step.error, LONGEST_ERROR)}
    where topup_id = ${topupId}
      and state = ${step.from}`;
}
