import type { Queryable } from "../db/client.ts";
import { type ListPage, type PageWanted, readListPage } from "../db/list-page.ts";
import type { LedgerSide, Posting } from "./posting.ts";

/** The total balance of the accounts of a kind. */
export interface SideSum {
  kind: LedgerSide["kind"];
  accounts: number;
  micros: bigint;
}

/** Balances by kind: cash, then wallets, then our own accounts. Their sum is 0. */
export async function listSideSums(sql: Queryable): Promise<SideSum[]> {
  return sql<SideSum[]>`
    select kind, count(*)::integer as accounts, sum(balance)::bigint as micros
    from ledger_accounts
    group by kind
    order by kind like 'cash\\_%' desc, kind <> 'wallet', kind`;
}

/** One side of a transaction; `owner` is the account id of a wallet. */
export interface SideMoved {
  kind: LedgerSide["kind"];
  owner: string | null;
  /** In micro-units, as text, because it is read from JSON. */
  micros: string;
}

/** A transaction in a list. */
export interface ListedTransaction {
  id: bigint;
  at: Date;
  kind: Posting["kind"];
  key: string;
  meta: Readonly<Record<string, string>>;
  reverses: bigint | null;
  reversedBy: bigint | null;
  sides: SideMoved[];
}

/** Filters of a list of transactions. */
export interface TransactionSearch {
  kind: Posting["kind"] | null;
  /** Only transactions of this account's wallet. */
  owner: bigint | null;
  /** Only transactions before this id. */
  before: bigint | null;
  limit: number;
}

/** Transactions, newest first. */
export async function listTransactions(sql: Queryable, search: TransactionSearch): Promise<ListedTransaction[]> {
  const { kind, owner, before, limit } = search;
  return sql<ListedTransaction[]>`
    with found as (
      select t.*
      from ledger_transactions t
      where true
        ${kind === null ? sql`` : sql`and t.kind = ${kind}`}
        ${before === null ? sql`` : sql`and t.id < ${before}`}
        ${
          owner === null
            ? sql``
            : sql`and t.id in (
                select e.transaction_id
                from ledger_entries e
                join ledger_accounts a on a.id = e.account_id
                where a.kind = 'wallet'
                  and a.owner_id = ${owner}
              )`
        }
      order by t.id desc
      limit ${limit}
    )
    select ${columns(sql)}
    from found t
    ${joined(sql)}
    order by t.id desc`;
}

/** One entry of a transaction. */
export interface MovedSide {
  kind: LedgerSide["kind"];
  owner: bigint | null;
  email: string | null;
  micros: bigint;
  balanceAfter: bigint;
}

/** One transaction with its entries; null if there is none. */
export async function findTransaction(
  sql: Queryable,
  id: bigint,
): Promise<(ListedTransaction & { requestHash: string; entries: MovedSide[] }) | null> {
  const [found] = await sql<(ListedTransaction & { requestHash: string })[]>`
    select ${columns(sql)}, t.request_hash as "requestHash"
    from ledger_transactions t
    ${joined(sql)}
    where t.id = ${id}`;
  if (found === undefined) return null;
  const entries = await sql<MovedSide[]>`
    select a.kind, a.owner_id as owner, owners.email, e.amount as micros, e.balance_after as "balanceAfter"
    from ledger_entries e
    join ledger_accounts a on a.id = e.account_id
    left join accounts owners on owners.id = a.owner_id
    where e.transaction_id = ${id}
    order by e.seq`;
  return { ...found, entries };
}

/** A wallet and its owner. */
export interface Wallet {
  owner: bigint;
  email: string;
  micros: bigint;
  /** Time of the last transaction; null if there is none. */
  movedAt: Date | null;
}

/** Returns a page of wallets by balance, highest first; the last page if there are fewer. */
export async function listWallets(sql: Queryable, wanted: PageWanted): Promise<ListPage<Wallet>> {
  return readListPage<Wallet>(
    wanted,
    ({ limit, offset }) => sql<(Wallet & { total: number })[]>`
    with found as (
      select id, owner_id, balance, count(*) over ()::integer as total
      from ledger_accounts
      where kind = 'wallet'
      order by balance desc, owner_id
      limit ${limit}
      offset ${offset}
    )
    select f.owner_id as owner, a.email, f.balance as micros, newest.at as "movedAt", f.total
    from found f
    join accounts a on a.id = f.owner_id
    left join lateral (
      select t.created_at as at
      from ledger_entries e
      join ledger_transactions t on t.id = e.transaction_id
      where e.account_id = f.id
      order by e.transaction_id desc
      limit 1
    ) newest on true
    order by f.balance desc, f.owner_id`,
  );
}

function columns(sql: Queryable) {
  return sql`
    t.id,
    t.created_at as at,
    t.kind,
    t.idempotency_key as key,
    t.meta,
    t.reverses,
    r.id as "reversedBy",
    moved.sides`;
}

function joined(sql: Queryable) {
  return sql`
    left join ledger_transactions r on r.reverses = t.id
    cross join lateral (
      select jsonb_agg(
        jsonb_build_object('kind', a.kind, 'owner', a.owner_id::text, 'micros', e.amount::text)
        order by e.seq
      ) as sides
      from ledger_entries e
      join ledger_accounts a on a.id = e.account_id
      where e.transaction_id = t.id
    ) moved`;
}
