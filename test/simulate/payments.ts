import { createAccount } from "../../src/callers/account-store.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { usdtOf } from "../../src/config/usdt.ts";
import type { Sql } from "../../src/db/client.ts";
import { walletMicros } from "../../src/ledger/store.ts";
import { beginOrder } from "../../src/topups/binance-pay/begin.ts";
import { addressOf } from "../../src/topups/usdt/address.ts";
import { startChain, startProxy, usdtVariables } from "../support/chain.ts";
import { KEY, SECRET, startProvider } from "../support/payment-app.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { type ChainLie, LIES } from "./chain-lies.ts";
import { waitUntil } from "./wait-until.ts";

/** The payment app and the chain of a simulated day, with one account that pays with both. */
export interface Payments {
  /** Environment variables that make processes use them. */
  env: Record<string, string>;
  /**
   * Waits until earlier orders are decided, creates others, makes the payment app unavailable, pays one of them, and waits
   * until workers have requested the status of each.
   */
  stopApp(sql: Sql): Promise<void>;
  /** Lets the payment app respond again. */
  resumeApp(): void;
  /** Transfers USDT to the account; from then on the first endpoint of the chain returns false data. */
  lie(sql: Sql, lie: ChainLie): Promise<void>;
  /** Lets the first endpoint return correct data again. */
  stopLying(): void;
  /**
   * Waits until every payment is credited.
   * @throws InvariantViolation if one is not, or if the balance differs from the sum of the payments
   */
  check(sql: Sql): Promise<void>;
  close(): Promise<void>;
}

const EMAIL = "payer@example.com";
const ORDERS = 3;
const ORDER_MICROS = 20_000_000n;
const TRANSFER_MICROS = 7_000_000n;
const CONFIRMATIONS = 3;
/** Orders are swept every few seconds, and the chain is read every ten. */
const WITHIN_MS = 90_000;

/** Starts a payment app, and a chain with two endpoints. */
export async function startPayments(): Promise<Payments> {
  const [app, chain] = await Promise.all([startProvider(), startChain()]);
  const [first, second] = await Promise.all([startProxy(chain.url), startProxy(chain.url)]);
  const env = {
    BINANCE_PAY_URL: app.url,
    BINANCE_PAY_KEY: KEY,
    BINANCE_PAY_SECRET: SECRET,
    ...usdtVariables(chain, { urls: [first.url, second.url], confirmations: CONFIRMATIONS }),
  };
  const usdt = usdtOf(loadSettings(env))!;
  let account: bigint | null = null;
  let paidMicros = 0n;

  async function accountOf(sql: Sql): Promise<bigint> {
    if (account !== null) return account;
    const created = await createAccount(sql, EMAIL);
    if (!created.ok) throw new Error(created.problem);
    return (account = created.id);
  }

  return {
    env,
    async stopApp(sql) {
      const accountId = await accountOf(sql);
      await waitUntil("an order of the payment app is not decided", WITHIN_MS, async () => {
        await makeOrdersDue(sql);
        return !(await hasOpenOrder(sql)); // an account may have few that are open
      });
      const ids: bigint[] = [];
      for (let n = 0; n < ORDERS; n++) {
        const order = await sql.begin((tx) => beginOrder(tx, { accountId, micros: ORDER_MICROS }));
        if (!order.ok) throw new Error(order.reason);
        ids.push(order.topupId);
      }
      let prepayIds: string[] = [];
      await waitUntil("the payment app got no orders", WITHIN_MS, async () => {
        const rows = await sql<{ id: string }[]>`
          select prepay_id as id
          from payment_app_orders
          where topup_id = any(${ids.map(String)}::bigint[])
            and prepay_id is not null`;
        prepayIds = rows.map(({ id }) => id);
        return prepayIds.length === ORDERS;
      });
      app.isAway = true;
      const [paid, ...unpaid] = prepayIds.map((id) => app.orders.get(id));
      if (paid === undefined) throw new Error(`expected order ${prepayIds[0]} at the payment app, found none`);
      paid.status = "PAID";
      paidMicros += ORDER_MICROS;
      for (const order of unpaid) if (order !== undefined) order.status = "EXPIRED";
      await waitUntil("no worker requested an order of the unavailable payment app", WITHIN_MS, async () => {
        await makeOrdersDue(sql);
        return (await countRequested(sql, ids)) === ORDERS;
      });
    },
    resumeApp() {
      app.isAway = false;
    },
    async lie(sql, lie) {
      const accountId = await accountOf(sql);
      let address: `0x${string}` | null = null;
      await waitUntil("the account got no address", WITHIN_MS, async () => {
        const found = await addressOf(sql, usdt, accountId);
        if (found.ok) address = found.address;
        return found.ok;
      });
      first.say = LIES[lie];
      await chain.transfer(address!, TRANSFER_MICROS);
      await chain.mine(CONFIRMATIONS);
      paidMicros += TRANSFER_MICROS;
    },
    stopLying() {
      first.say = null;
    },
    async check(sql) {
      if (account === null) return;
      const accountId = account;
      let balance = 0n;
      const read = async () => (balance = await walletMicros(sql, accountId));
      await waitUntil("a payment is not credited", WITHIN_MS, async () => {
        await makeOrdersDue(sql);
        return (await read()) >= paidMicros && !(await hasOpen(sql));
      });
      if ((await read()) !== paidMicros) {
        throw new InvariantViolation(`${EMAIL} paid ${paidMicros} micro-dollars, but ${balance} are credited`);
      }
    },
    async close() {
      await Promise.all([app.close(), first.close(), second.close()]);
      await chain.stop();
    },
  };
}

/** Makes every order due now instead of in up to five minutes. */
async function makeOrdersDue(sql: Sql): Promise<void> {
  await sql`update payment_app_orders set ask_at = clock_timestamp() where ask_at is not null`;
}

/** How many of these orders were requested in vain since they were made, or are closed. */
async function countRequested(sql: Sql, ids: readonly bigint[]): Promise<number> {
  const rows = await sql`
    select topup_id
    from payment_app_orders
    where topup_id = any(${ids.map(String)}::bigint[])
      and (last_error is not null or state = 'closed')`;
  return rows.length;
}

/** Whether an order or a deposit is not decided yet. */
async function hasOpen(sql: Sql): Promise<boolean> {
  const deposits = await sql`select 1 as one from chain_deposits where state = 'pending' limit 1`;
  return deposits.length > 0 || (await hasOpenOrder(sql));
}

async function hasOpenOrder(sql: Sql): Promise<boolean> {
  const orders = await sql`select 1 as one from payment_app_orders where state in ('new', 'open', 'strange') limit 1`;
  return orders.length > 0;
}
