import type { Queryable, Transaction } from "../../db/client.ts";
import type { Usdt } from "../../config/usdt.ts";

/** A pending deposit, with the address that received it. */
export interface PendingDeposit {
  id: bigint;
  accountId: bigint;
  txHash: `0x${string}`;
  position: number;
  address: string;
  addressIndex: number;
  /** `address` in lower case. */
  to: string;
  units: bigint;
  micros: bigint;
  blockHash: string;
  blockNumber: bigint;
}

/**
 * Returns pending deposits, the least recently checked first; those that reach the minimum before all others, which cost
 * their sender next to nothing.
 */
export async function listPending(
  sql: Queryable,
  { chain, minMicros }: Usdt,
  limit: number,
): Promise<PendingDeposit[]> {
  return readDeposits(sql`
    ${selectDeposits(sql)}
    where d.chain_id = ${chain.id}
      and d.token = ${chain.token.toLowerCase()}
      and d.state = 'pending'
    order by d.micros < ${minMicros}, coalesce(d.checked_at, d.seen_at), d.id
    limit ${limit}`);
}

/** Selects deposits `d` with their addresses `a`, for {@link readDeposits}. */
export function selectDeposits(sql: Queryable) {
  return sql`
    select
      d.id,
      d.account_id as "accountId",
      d.tx_hash as "txHash",
      d.position,
      a.address,
      a.address_index as "addressIndex",
      lower(a.address) as to,
      d.units::text as units,
      d.micros,
      d.block_hash as "blockHash",
      d.block_number as "blockNumber"
    from chain_deposits d
    join deposit_addresses a on a.account_id = d.account_id`;
}

/** Returns the deposits of a query that begins with {@link selectDeposits}. */
export async function readDeposits(query: PromiseLike<readonly object[]>): Promise<PendingDeposit[]> {
  const rows = (await query) as (Omit<PendingDeposit, "units"> & { units: string })[];
  return rows.map((row) => ({ ...row, units: BigInt(row.units) }));
}

/** Records that deposits were checked, and which are disputed, by id; resolved disputes are cleared. */
export async function saveChecked(
  sql: Queryable,
  ids: readonly bigint[],
  disputes: ReadonlyMap<bigint, string>,
): Promise<void> {
  await sql`
    update chain_deposits d
    set
      checked_at = clock_timestamp(),
      dispute = checked.dispute,
      disputed_since = case when checked.dispute is null then null else coalesce(d.disputed_since, clock_timestamp()) end
    from unnest(
      ${ids.map(String)}::bigint[],
      ${ids.map((id) => disputes.get(id) ?? null)}::text[]
    ) as checked (id, dispute)
    where d.id = checked.id
      and d.state = 'pending'`;
}

/**
 * Marks a deposit as orphaned because every endpoint shows that it is not on the chain; it becomes pending again if its
 * transfer is read again. Returns false if it changed meanwhile.
 */
export async function saveOrphaned(sql: Queryable, { id, blockHash }: PendingDeposit): Promise<boolean> {
  const saved = await sql`
    update chain_deposits
    set
      state = 'orphaned',
      changed_at = clock_timestamp(),
      disputed_since = null,
      dispute = null
    where id = ${id}
      and block_hash = ${blockHash}
      and state = 'pending'
    returning id`;
  return saved.length > 0;
}

/** Locks a deposit until the transaction ends; null if it is no longer pending, or not what was checked. */
export async function lockPending(tx: Transaction, deposit: PendingDeposit): Promise<{ id: bigint } | null> {
  const { id, accountId, blockHash, blockNumber, micros } = deposit;
  const [held] = await tx<{ id: bigint }[]>`
    select id
    from chain_deposits
    where id = ${id}
      and account_id = ${accountId}
      and block_hash = ${blockHash}
      and block_number = ${blockNumber}
      and micros = ${micros}
      and state = 'pending'
    for no key update`;
  return held ?? null;
}

/** Marks a deposit as below the minimum. */
export async function saveBelowMin(tx: Transaction, id: bigint): Promise<void> {
  await tx`
    update chain_deposits
    set
      state = 'below_min',
      changed_at = clock_timestamp(),
      disputed_since = null,
      dispute = null
    where id = ${id}`;
}

/** Stores the top-up that credited deposits, permanently, and schedules checks of them until their blocks are final. */
export async function saveCredited(tx: Transaction, ids: readonly bigint[], topupId: bigint): Promise<void> {
  await tx`
    update chain_deposits
    set
      state = 'credited',
      topup_id = ${topupId},
      changed_at = clock_timestamp(),
      disputed_since = null,
      dispute = null
    where id = any (${ids.map(String)}::bigint[])`;
  await tx`
    insert into credited_deposits (deposit_id)
    select id from unnest(${ids.map(String)}::bigint[]) as credited (id)`;
}

/** Returns accounts whose small deposits together reach the minimum. */
export async function listSmallAccounts(sql: Queryable, { chain, minMicros }: Usdt): Promise<bigint[]> {
  const rows = await sql<{ accountId: bigint }[]>`
    select account_id as "accountId"
    from chain_deposits
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and state = 'below_min'
    group by account_id
    having sum(micros) >= ${minMicros}
    order by account_id
    limit 100`;
  return rows.map(({ accountId }) => accountId);
}

/** Returns the small deposits of an account, locked until the transaction ends. */
export async function lockSmall(tx: Transaction, { chain }: Usdt, accountId: bigint) {
  return tx<{ id: bigint; txHash: `0x${string}`; position: number; micros: bigint }[]>`
    select id, tx_hash as "txHash", position, micros
    from chain_deposits
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and account_id = ${accountId}
      and state = 'below_min'
    order by id
    for no key update`;
}
