import watchJob from "../../jobs/watch-deposits.ts";
import { loadSettings, type Settings } from "../../src/config/environment.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { walletMicros } from "../../src/ledger/store.ts";
import { addressOf } from "../../src/topups/usdt/address.ts";
import { type Usdt, usdtOf } from "../../src/config/usdt.ts";
import { startChain, startProxy, type Proxy, type TestChain, usdtVariables } from "../support/chain.ts";
import { testContext } from "../support/context.ts";
import { createDatabase } from "../support/database.ts";

/** Blocks that confirm a deposit in these tests. */
export const CONFIRMATIONS = 5;

/** A deposit as it is stored. */
export interface Row {
  state: string;
  micros: bigint;
  position: number;
  dispute: string | null;
}

/** A chain with two endpoints in front of it, a database, and the watcher between. */
export interface UsdtWorld {
  sql: Sql;
  databaseUrl: string;
  chain: TestChain;
  first: Proxy;
  second: Proxy;
  /** Variables of the environment with both endpoints. */
  variables: Record<string, string>;
  settings: Settings;
  usdt: Usdt;
  /** One turn of the watcher; gives its counts. */
  turn(changed?: Record<string, string>): Promise<Record<string, number>>;
  /** A new account with its address. */
  account(): Promise<{ id: bigint; address: `0x${string}`; index: number }>;
  deposits(accountId: bigint): Promise<Row[]>;
  wallet(accountId: bigint): Promise<bigint>;
  close(): Promise<void>;
}

export async function openUsdtWorld(changed: Record<string, string> = {}): Promise<UsdtWorld> {
  const [database, chain] = await Promise.all([createDatabase(), startChain()]);
  const [first, second] = await Promise.all([startProxy(chain.url), startProxy(chain.url)]);
  const sql = connect(database.url, { name: "test usdt", max: 8 });
  const variables = {
    ...usdtVariables(chain, { urls: [first.url, second.url], confirmations: CONFIRMATIONS }),
    USDT_MIN: "5",
    ...changed,
  };
  const settings = loadSettings(variables);
  const usdt = usdtOf(settings)!;
  let made = 0;

  async function turn(other: Record<string, string> = {}) {
    const { context } = testContext(sql, { env: { ...variables, ...other } });
    return watchJob.run({ chain: String(chain.id) }, context);
  }
  await turn();
  return {
    sql,
    databaseUrl: database.url,
    chain,
    first,
    second,
    variables,
    settings,
    usdt,
    turn,
    async account() {
      made += 1;
      const [row] = await sql<{ id: bigint }[]>`
        insert into accounts (email, verified_at) values (${`caller-${made}@example.com`}, now()) returning id`;
      const found = await addressOf(sql, usdt, row!.id);
      if (!found.ok) throw new Error(`no address: ${found.reason}`);
      return { id: row!.id, address: found.address, index: found.index };
    },
    deposits: (accountId) => sql<Row[]>`
      select state, micros, position, dispute
      from chain_deposits
      where account_id = ${accountId}
      order by id`,
    wallet: (accountId) => walletMicros(sql, accountId),
    async close() {
      await sql.end();
      await Promise.all([first.close(), second.close()]);
      await Promise.all([chain.stop(), database.drop()]);
    },
  };
}
