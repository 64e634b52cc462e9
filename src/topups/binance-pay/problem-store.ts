import type { Queryable } from "../../db/client.ts";
import { usd } from "../../money.ts";

/**
 * The second failure to create an order comes ten seconds after the first: an alert within a minute, and none for one
 * hiccup.
 */
const TRIES_TO_REPORT = 2;
/** How long failed orders are reported. */
const GIVEN_UP_MINUTES = 60;
/** Keys are fetched daily; the previous ones stay valid until then. */
const KEYS_DAYS = 2;
/** How long fetching them fails before it is reported. */
const KEYS_FAILING_MINUTES = 5;
/** How long payments of unknown orders are reported, and how many are named. */
const UNKNOWN_DAYS = 7;
const NAMED_UNKNOWN = 5;

/** A problem, as an alert shows it. */
interface Problem {
  subject: string;
  text: string;
}

/**
 * Returns the problems with the payment app: orders that it does not create or report on, notification keys that it
 * does not return, payments of orders that are unknown here, and refunds of credited payments. If it is not configured,
 * orders that may be paid are a problem too, since an alert that is not reported ends.
 */
export async function findPaymentAppProblems(sql: Queryable, isConfigured: boolean): Promise<Problem[]> {
  const found = await Promise.all([
    isConfigured ? findServiceProblems(sql) : findUnsettledOrders(sql),
    findUnknownOrders(sql),
    findRefunds(sql),
  ]);
  return found.flat();
}

/** Returns the problem of orders that no worker settles; none if there are none. */
async function findUnsettledOrders(sql: Queryable): Promise<Problem[]> {
  const [unsettled] = await sql<{ n: number; since: string | null }[]>`
    select count(*)::integer as n, utc_text(min(created_at)) as since
    from payment_app_orders
    where ask_at is not null
      and state in ('new', 'open', 'strange')`;
  if (unsettled === undefined || unsettled.n === 0) return [];
  const { n, since } = unsettled;
  const text = `${n} ${n === 1 ? "order" : "orders"} at Binance Pay, the first of ${since}, can be paid and ${n === 1 ? "is" : "are"} neither credited nor closed while it is not configured: set BINANCE_PAY_KEY and BINANCE_PAY_SECRET again until each is, see /ops/payment-app`;
  return [{ subject: "orders not settled", text }];
}

/** Returns the problems with requests to the payment app. */
async function findServiceProblems(sql: Queryable): Promise<Problem[]> {
  const [[silent], [refused], [keys]] = await Promise.all([
    sql<{ n: number; why: string | null }[]>`
      select count(*)::integer as n, max(last_error) as why
      from payment_app_orders
      where ask_at is not null
        and state = 'open'
        and last_error is not null`,
    sql<{ n: number; why: string | null }[]>`
      select count(*)::integer as n, max(last_error) as why
      from payment_app_orders
      where prepay_id is null
        and asked_at > clock_timestamp() - make_interval(mins => ${GIVEN_UP_MINUTES})
        and (state = 'closed' or (state = 'new' and last_error is not null and attempts >= ${TRIES_TO_REPORT}))`,
    sql<{ since: Date | null }[]>`
      select certificates_at as since
      from payment_app_state
      where certificates_failing_since < clock_timestamp() - make_interval(mins => ${KEYS_FAILING_MINUTES})
        and (certificates_at is null or certificates_at < clock_timestamp() - make_interval(days => ${KEYS_DAYS}))`,
  ]);
  const problems: Problem[] = [];
  if (silent !== undefined && silent.n > 0) {
    const text = `Binance Pay does not report the state of ${silent.n} of our orders: it ${silent.why}; what was paid is credited once it does, see /ops/payment-app`;
    problems.push({ subject: "orders not reported", text });
  }
  if (refused !== undefined && refused.n > 0) {
    const text = `Binance Pay did not make ${refused.n} of our orders in the last hour: it ${refused.why ?? "did not respond"}; are BINANCE_PAY_KEY and BINANCE_PAY_SECRET still right?`;
    problems.push({ subject: "orders not made", text });
  }
  if (keys !== undefined) {
    const last = keys.since === null ? "never fetched" : `not fetched since ${keys.since.toISOString()}`;
    const text = `the keys of Binance Pay's notices were ${last}: orders are asked for every 5 minutes meanwhile`;
    problems.push({ subject: "keys", text });
  }
  return problems;
}

/** Credited payments that were refunded since, the oldest first, until the credit is reversed. */
async function findRefunds(sql: Queryable): Promise<Problem[]> {
  const refunds = await sql<
    { topupId: bigint; accountId: bigint; micros: bigint; transactionId: bigint; at: string }[]
  >`
    select
      o.topup_id as "topupId",
      t.account_id as "accountId",
      o.amount_micros as micros,
      t.transaction_id as "transactionId",
      utc_text(o.refund_reported_at) as at
    from payment_app_orders o
    join topups t on t.id = o.topup_id
    where o.refund_reported_at is not null
      and t.transaction_id is not null
      and reversed_at(t.transaction_id) is null
    order by o.refund_reported_at, o.topup_id
    limit 20`;
  return refunds.map(({ topupId, accountId, micros, transactionId, at }) => ({
    subject: `refund of top-up ${topupId}`,
    text: `Binance Pay reported at ${at} that a payment of ${usd(micros)} USD was refunded, which is still credited to account ${accountId} (/ops/top-ups/${topupId}): look at it in the merchant's portal, and propose the reversal of transaction ${transactionId} at /ops/ledger/transactions/${transactionId}; if only a part was refunded, enter the rest at /ops/bank after that`,
  }));
}

async function findUnknownOrders(sql: Queryable): Promise<Problem[]> {
  const orders = await sql<{ prepayId: string; at: string; n: number }[]>`
    select
      prepay_id as "prepayId",
      utc_text(seen_at) as at,
      (count(*) over ())::integer as n
    from payment_app_unknown_orders
    where seen_at > clock_timestamp() - make_interval(days => ${UNKNOWN_DAYS})
    order by seen_at desc, prepay_id
    limit ${NAMED_UNKNOWN}`;
  const [newest] = orders;
  if (newest === undefined) return [];
  const { prepayId, at, n } = newest;
  const more = n > orders.length ? ` and ${n - orders.length} more` : "";
  const paid = `${n === 1 ? "an order was" : `${n} orders were`} paid that ${n === 1 ? "is" : "are"} unknown here`;
  const names = `${orders.map((order) => order.prepayId).join(", ")}${more}`;
  // the text of an open alert does not change: a later order opens another one
  return [
    {
      subject: `unknown orders, newest ${prepayId}`,
      text: `Binance Pay reported that ${paid}, as after a restore, the last one at ${at}: ${names}; find each in the merchant's portal: if its merchant order number begins with RH, enter what was paid at /ops/bank, else another shop of the merchant made it`,
    },
  ];
}
