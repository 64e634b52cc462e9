import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { legalText } from "../../src/accounts/legal.ts";
import { walletMicros } from "../../src/ledger/store.ts";
import { isOffer, offerOf, type Offer, type Refusal } from "../../src/purchases/offer.ts";
import type { Order, Purchased } from "../../src/purchases/check-order.ts";
import { purchase } from "../../src/purchases/purchase-store.ts";
import { quoteOf } from "../../src/purchases/quote.ts";
import { readBuyer } from "../../src/purchases/state-store.ts";
import { fund } from "../support/fund.ts";
import { createDatabase } from "../support/database.ts";

const USD = 1_000_000n;

/** A database in which plans are bought. */
export interface PurchaseWorld {
  sql: Sql;
  databaseUrl: string;
  /** An account with so many USD. */
  makeHolder(usd?: bigint): Promise<bigint>;
  topUp(accountId: bigint, usd: bigint): Promise<void>;
  /** What a plan comes to for an account now. */
  offer(accountId: bigint, plan: string): Promise<{ offer: Offer | Refusal; now: bigint }>;
  /** The order that a form of now would send. */
  order(accountId: bigint, plan: string, changed?: Partial<Order>): Promise<Order>;
  /** Looks and buys. */
  buy(accountId: bigint, plan: string): Promise<Purchased>;
  /** Looks and buys; throws where it is refused. */
  bought(accountId: bigint, plan: string): Promise<bigint>;
  balance(accountId: bigint): Promise<bigint>;
  /** Lets so many days go by for the plans of an account. */
  age(accountId: bigint, days: number): Promise<void>;
  /** What an account has, in the order of time: plan, days from now to its start and its end, rounded to a thousandth. */
  held(accountId: bigint): Promise<[string, number, number | null][]>;
  close(): Promise<void>;
}

export async function openPurchaseWorld(): Promise<PurchaseWorld> {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 22 });

  async function topUp(accountId: bigint, usd: bigint): Promise<void> {
    await sql.begin((tx) => fund(tx, accountId, usd * USD));
  }
  async function offer(accountId: bigint, name: string) {
    const buyer = await readBuyer(sql, accountId);
    const plan = buyer?.plans.find((one) => one.name === name);
    if (buyer === null || plan === undefined) throw new Error(`there is no account ${accountId} or plan ${name}`);
    return { offer: offerOf(plan, buyer.held, { now: buyer.now }), now: buyer.now };
  }
  async function order(accountId: bigint, plan: string, changed: Partial<Order> = {}): Promise<Order> {
    const { offer: made, now } = await offer(accountId, plan);
    if (!isOffer(made)) throw new Error(made.message);
    return {
      accountId,
      quote: quoteOf(made, now),
      key: crypto.randomUUID(),
      agreed: { startNow: legalText("start-now").version, noWithdrawal: legalText("no-withdrawal").version },
      address: "198.51.100.7",
      userAgent: "a browser",
      requestId: crypto.randomUUID(),
      ...changed,
    };
  }
  const buy = async (accountId: bigint, plan: string) => purchase(sql, await order(accountId, plan));
  return {
    sql,
    databaseUrl: database.url,
    topUp,
    offer,
    order,
    buy,
    async makeHolder(usd = 0n) {
      const made = await createAccount(sql, `${crypto.randomUUID()}@example.com`);
      if (!made.ok) throw new Error(made.problem);
      if (usd > 0n) await topUp(made.id, usd);
      return made.id;
    },
    async bought(accountId, plan) {
      const done = await buy(accountId, plan);
      if (!done.ok) throw new Error(`${plan}: ${done.reason}: ${done.message}`);
      return done.purchaseId;
    },
    balance: (accountId) => walletMicros(sql, accountId),
    async age(accountId, days) {
      // the earliest first, so that no two ever overlap on the way
      await sql.begin(async (tx) => {
        const rows = await tx<{ id: bigint }[]>`
          select id from entitlements where account_id = ${accountId} order by starts_at`;
        for (const { id } of rows) {
          await tx`
            update entitlements
            set starts_at = starts_at - ${days} * interval '1 day', ends_at = ends_at - ${days} * interval '1 day'
            where id = ${id}`;
        }
      });
    },
    async held(accountId) {
      const rows = await sql<{ plan: string; starts: number; ends: number | null }[]>`
        select
          plan,
          round(extract(epoch from starts_at - now()) / 86400, 3)::float8 as starts,
          round(extract(epoch from ends_at - now()) / 86400, 3)::float8 as ends
        from entitlements
        where account_id = ${accountId}
        order by starts_at`;
      return rows.map(({ plan, starts, ends }) => [plan, starts + 0, ends && ends + 0]); // no -0
    },
    async close() {
      await sql.end();
      await database.drop();
    },
  };
}

/** A key of an account, made without giving it a plan. */
export async function makeKeyOnly(sql: Sql, accountId: bigint): Promise<string> {
  const [account] = await sql<{ email: string }[]>`select email from accounts where id = ${accountId}`;
  const made = await createKey(sql, { email: account?.email ?? "", plan: "Pro" });
  if (!made.ok) throw new Error(made.problem);
  await sql`delete from entitlements where account_id = ${accountId}`;
  return made.key;
}
