import type { Queryable } from "../../../db/client.ts";
import type { Usdt } from "../../../config/usdt.ts";

/** How long a block that was left out for an account is reported, after it was last refused. */
const REPORTED_DAYS = 7;
/** Each is read in a range of its own, and a poll has a hundred. */
const MOST_BLOCKS = 40;

/** Stores addresses whose transfers in a block are too many for a response. */
export async function saveLeftOut(
  sql: Queryable,
  { chain }: Usdt,
  block: bigint,
  addresses: readonly string[],
): Promise<void> {
  if (addresses.length === 0) return;
  await sql`
    insert into chain_left_out (chain_id, token, block_number, account_id)
    select ${chain.id}, ${chain.token.toLowerCase()}, ${block}, account_id
    from deposit_addresses
    where lower(address) = any (${addresses.map((address) => address.toLowerCase())}::text[])
    order by account_id
    on conflict (chain_id, token, block_number, account_id) do update
    set seen_at = clock_timestamp()`;
}

/** Returns the lowest blocks from one on that were left out for any address. */
export async function listLeftOutBlocks(sql: Queryable, { chain }: Usdt, from: bigint): Promise<bigint[]> {
  const rows = await sql<{ block: bigint }[]>`
    select distinct block_number as block
    from chain_left_out
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and block_number >= ${from}
    order by block_number
    limit ${MOST_BLOCKS}`;
  return rows.map(({ block }) => block);
}

/** Blocks that were left out for the address of an account. */
export interface LeftOut {
  chainId: bigint;
  accountId: bigint;
  address: string;
  /** Up to five, the newest first. */
  blocks: bigint[];
  n: number;
  since: Date;
}

/** Returns the accounts with blocks that were left out in the last week, on any chain, the latest first. */
export async function listLeftOut(sql: Queryable): Promise<LeftOut[]> {
  return sql<LeftOut[]>`
    select
      l.chain_id as "chainId",
      l.account_id as "accountId",
      a.address,
      (array_agg(l.block_number order by l.block_number desc))[:5] as blocks,
      count(*)::integer as n,
      max(l.seen_at) as since
    from chain_left_out l
    join deposit_addresses a on a.account_id = l.account_id
    where l.seen_at > clock_timestamp() - make_interval(days => ${REPORTED_DAYS})
    group by l.chain_id, l.account_id, a.address
    order by max(l.seen_at) desc, l.account_id
    limit 20`;
}
