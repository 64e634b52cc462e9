import type { Queryable } from "../../db/client.ts";
import type { Usdt } from "../../config/usdt.ts";

/** State of a deposit: see `sql/0022_usdt.sql`. */
export type DepositState = "pending" | "below_min" | "credited" | "orphaned";

/** A deposit as people see it. */
export interface Deposit {
  id: bigint;
  chainId: bigint;
  accountId: bigint;
  email: string;
  txHash: string;
  position: number;
  sender: string;
  /** In 1e-6 USD. */
  micros: bigint;
  blockNumber: bigint;
  state: DepositState;
  seenAt: Date;
  changedAt: Date;
  /** Why it is not credited though it is deep enough. */
  dispute: string | null;
  /** Since when the credited deposit is no longer on the chain; null if it is. */
  missingSince: Date | null;
  topupId: bigint | null;
  /** When its credit was reversed; null if it was not. */
  reversedAt: Date | null;
}

/** Returns deposits, newest first: of one account or all, in one state or any, before an id. */
export async function listDeposits(
  sql: Queryable,
  filter: { accountId: bigint | null; state: DepositState | null; before: bigint | null; limit: number },
): Promise<Deposit[]> {
  const { accountId, state, before, limit } = filter;
  return sql<Deposit[]>`
    select
      d.id,
      d.chain_id as "chainId",
      d.account_id as "accountId",
      a.email,
      d.tx_hash as "txHash",
      d.position,
      d.sender,
      d.micros,
      d.block_number as "blockNumber",
      d.state,
      d.seen_at as "seenAt",
      d.changed_at as "changedAt",
      d.dispute,
      c.missing_since as "missingSince",
      d.topup_id as "topupId",
      reversed_at(t.transaction_id) as "reversedAt"
    from chain_deposits d
    join accounts a on a.id = d.account_id
    left join credited_deposits c on c.deposit_id = d.id
    left join topups t on t.id = d.topup_id
    where (${accountId}::bigint is null or d.account_id = ${accountId})
      and (${state}::text is null or d.state = ${state})
      and (${before}::bigint is null or d.id < ${before})
    order by d.id desc
    limit ${limit}`;
}

/** Returns the total of an account's deposits that are below the minimum, in 1e-6 USD. */
export async function smallMicros(sql: Queryable, { chain }: Usdt, accountId: bigint): Promise<bigint> {
  const [row] = await sql<{ micros: bigint }[]>`
    select coalesce(sum(micros), 0)::bigint as micros
    from chain_deposits
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and account_id = ${accountId}
      and state = 'below_min'`;
  return row?.micros ?? 0n;
}

/** Deposits of an account in one state that are not credited: their number and their total in 1e-6 USD. */
export interface UncreditedDeposits {
  state: "pending" | "below_min";
  n: number;
  micros: bigint;
}

/** Returns the deposits of an account that are pending or kept below the minimum, on any chain. */
export async function sumUncredited(sql: Queryable, accountId: bigint): Promise<UncreditedDeposits[]> {
  return sql<UncreditedDeposits[]>`
    select state, count(*)::integer as n, sum(micros)::bigint as micros
    from chain_deposits
    where account_id = ${accountId}
      and state in ('pending', 'below_min')
    group by state
    order by state desc`;
}

/** Returns the number and total of deposits per state, in 1e-6 USD. */
export async function sumDeposits(sql: Queryable): Promise<{ state: DepositState; n: bigint; micros: bigint }[]> {
  return sql<{ state: DepositState; n: bigint; micros: bigint }[]>`
    select state, count(*) as n, sum(micros)::bigint as micros
    from chain_deposits
    group by state
    order by state`;
}

/** An address with the total that it received. */
export interface AddressRow {
  index: number;
  address: string;
  accountId: bigint;
  email: string;
  isClosed: boolean;
  createdAt: Date;
  /** All deposits that stayed, credited or kept, in 1e-6 USD; not the current balance. */
  micros: bigint;
}

/** Returns addresses by index, after a given one. */
export async function listAddressRows(sql: Queryable, { after, limit }: { after: number; limit: number }) {
  return sql<AddressRow[]>`
    select
      d.address_index as index,
      d.address,
      d.account_id as "accountId",
      a.email,
      a.closed_at is not null as "isClosed",
      d.created_at as "createdAt",
      coalesce(
        (
          select sum(c.micros)
          from chain_deposits c
          where c.account_id = d.account_id
            and c.state in ('credited', 'below_min')
        ),
        0
      )::bigint as micros
    from deposit_addresses d
    join accounts a on a.id = d.account_id
    where d.address_index > ${after}
    order by d.address_index
    limit ${limit}`;
}
