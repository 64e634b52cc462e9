import type { Queryable } from "../../db/client.ts";
import type { TransferLog } from "./endpoints/on-chain.ts";
import type { Usdt } from "../../config/usdt.ts";

/** A transfer to one of our addresses, ready to store. */
export interface FoundDeposit extends TransferLog {
  position: number;
  /** In lower case. */
  to: string;
  sender: string;
  units: bigint;
  micros: bigint;
  restUnits: bigint;
}

/** Returns the watched addresses in the order of assignment: those of every existing account. */
export async function listWatched(sql: Queryable): Promise<`0x${string}`[]> {
  const rows = await sql<{ address: `0x${string}` }[]>`
    select address
    from deposit_addresses
    order by address_index`;
  return rows.map(({ address }) => address);
}

/** Returns the logs that are not stored as they are: new ones, those in another block, and those that were orphaned. */
export async function listUnknown(
  sql: Queryable,
  { chain }: Usdt,
  logs: readonly TransferLog[],
): Promise<TransferLog[]> {
  if (logs.length === 0) return [];
  const unknown = await sql<{ place: number }[]>`
    select place::integer - 1 as place
    from unnest(
      ${logs.map(({ txHash }) => txHash)}::text[],
      ${logs.map(({ blockHash }) => blockHash)}::text[],
      ${logs.map(({ logIndex }) => logIndex)}::integer[]
    ) with ordinality as log (tx_hash, block_hash, log_index, place)
    where not exists (
      select
      from chain_deposits d
      where d.chain_id = ${chain.id}
        and d.token = ${chain.token.toLowerCase()}
        and d.tx_hash = log.tx_hash
        and d.block_hash = log.block_hash
        and d.log_index = log.log_index
        and d.state <> 'orphaned'
    )
    order by place`;
  return unknown.flatMap(({ place }) => logs[place] ?? []);
}

/**
 * Stores deposits to our addresses. A known deposit that changed or was orphaned becomes pending again; a credited one
 * is not changed. Returns how many rows were added or changed.
 */
export async function saveDeposits(sql: Queryable, { chain }: Usdt, found: readonly FoundDeposit[]): Promise<number> {
  if (found.length === 0) return 0;
  const saved = await sql`
    insert into chain_deposits (
      chain_id, token, tx_hash, position, account_id, sender, units, micros, rest_units, block_number, block_hash, log_index
    )
    select
      ${chain.id}, ${chain.token.toLowerCase()}, f.tx_hash, f.position, a.account_id, f.sender, f.units, f.micros,
      f.rest_units, f.block_number, f.block_hash, f.log_index
    from unnest(
      ${found.map(({ txHash }) => txHash)}::text[],
      ${found.map(({ position }) => position)}::integer[],
      ${found.map(({ to }) => to)}::text[],
      ${found.map(({ sender }) => sender)}::text[],
      ${found.map(({ units }) => String(units))}::numeric[],
      ${found.map(({ micros }) => String(micros))}::bigint[],
      ${found.map(({ restUnits }) => String(restUnits))}::numeric[],
      ${found.map(({ blockNumber }) => String(blockNumber))}::bigint[],
      ${found.map(({ blockHash }) => blockHash)}::text[],
      ${found.map(({ logIndex }) => logIndex)}::integer[]
    ) as f (tx_hash, position, recipient, sender, units, micros, rest_units, block_number, block_hash, log_index)
    join deposit_addresses a on lower(a.address) = f.recipient
    order by f.tx_hash, f.position -- one order of locks, whatever an endpoint lists
    on conflict (chain_id, tx_hash, position) do update
    set
      account_id = excluded.account_id,
      sender = excluded.sender,
      units = excluded.units,
      micros = excluded.micros,
      rest_units = excluded.rest_units,
      block_number = excluded.block_number,
      block_hash = excluded.block_hash,
      log_index = excluded.log_index,
      state = 'pending',
      changed_at = clock_timestamp()
    where chain_deposits.state <> 'credited'
      and chain_deposits.token = excluded.token
      and (
        chain_deposits.state = 'orphaned'
        or chain_deposits.account_id <> excluded.account_id
        or chain_deposits.block_hash <> excluded.block_hash
        or chain_deposits.block_number <> excluded.block_number
        or chain_deposits.units <> excluded.units
      )
    returning id`;
  return saved.length;
}
