import type { Queryable, Transaction } from "../../../db/client.ts";
import type { Head } from "./on-chain.ts";
import type { Usdt } from "../../../config/usdt.ts";
import { cut } from "../../../text.ts";

/** The stored state of an endpoint, by its place in the setting. */
export interface EndpointState {
  place: number;
  host: string;
  rangeBlocks: number;
  /** Every block up to it was read permanently, except the held ones; null before the first read. */
  settledTo: bigint | null;
  /** Settled blocks that are read again until every transfer in them has its receipt, lowest first. */
  heldBlocks: bigint[];
  head: bigint | null;
  headAt: Date | null;
  finalized: bigint | null;
  lookedAt: Date;
  respondedAt: Date | null;
  failingSince: Date | null;
  /** Whether the last poll read every block up to the newest, except held ones. */
  isRead: boolean;
  lastError: string | null;
}

/** The identity of an endpoint. */
type Named = { place: number; host: string; urlHash: string };

/** The size of the column. */
const LONGEST_ERROR = 300;
/** How long a check of chain and token stays valid; a changed URL is checked immediately. */
const VERIFIED_HOURS = 1;

/** Stores that a poll of the endpoints begins, so that an endpoint that is never read is visible. */
export async function saveEndpoints(
  sql: Queryable,
  { chain }: Usdt,
  endpoints: readonly Pick<Named, "place" | "host">[],
) {
  await sql`
    insert into chain_endpoints (chain_id, token, place, host)
    select ${chain.id}, ${chain.token.toLowerCase()}, place, host
    from unnest(
      ${endpoints.map(({ place }) => place)}::integer[],
      ${endpoints.map(({ host }) => host)}::text[]
    ) as t (place, host)
    on conflict (chain_id, token, place) do update
    set host = excluded.host, looked_at = clock_timestamp()`;
}

/** Whether an endpoint's chain and token were confirmed within the last hour, at the same URL. */
export async function isVerified(sql: Queryable, { chain }: Usdt, { place, urlHash }: Named): Promise<boolean> {
  const found = await sql`
    select
    from chain_endpoints
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and place = ${place}
      and verified_url = ${urlHash}
      and verified_at > clock_timestamp() - make_interval(hours => ${VERIFIED_HOURS})`;
  return found.length > 0;
}

/** Records that an endpoint has the configured chain and token. */
export async function saveVerified(sql: Queryable, { chain }: Usdt, { place, urlHash }: Named): Promise<void> {
  await sql`
    update chain_endpoints
    set
      verified_at = clock_timestamp(),
      verified_url = ${urlHash}
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and place = ${place}`;
}

/**
 * Stores the newest block of an endpoint. Returns where to resume reading: after the last settled block. An endpoint
 * without one starts where the other is, with its held blocks; the first of all, `rescan` blocks before its newest.
 */
export async function saveHead(
  sql: Queryable,
  { chain }: Usdt,
  { place }: Pick<Named, "place">,
  head: Head,
): Promise<{ settledTo: bigint; heldBlocks: bigint[]; rangeBlocks: number }> {
  const begin = head.number - BigInt(chain.rescan);
  const [saved] = await sql<{ settledTo: bigint; heldBlocks: bigint[]; rangeBlocks: number }[]>`
    update chain_endpoints e
    set
      head = ${head.number},
      head_at = ${head.at.toISOString()}::text::timestamptz,
      finalized = ${head.finalized},
      settled_to = coalesce(
        e.settled_to,
        (
          select min(other.settled_to)
          from chain_endpoints other
          where other.chain_id = e.chain_id
            and other.token = e.token
        ),
        greatest(${begin}::bigint, -1)
      ),
      held_blocks = case
        when e.settled_to is null
        then array(
          select distinct block
          from chain_endpoints other, unnest(other.held_blocks) as block
          where other.chain_id = e.chain_id
            and other.token = e.token
          order by block
        )
        else e.held_blocks
      end
    where e.chain_id = ${chain.id}
      and e.token = ${chain.token.toLowerCase()}
      and e.place = ${place}
    returning settled_to as "settledTo", held_blocks as "heldBlocks", range_blocks as "rangeBlocks"`;
  if (saved === undefined)
    throw new Error(`endpoint ${place} of chain ${chain.id} was not written down before it was read`);
  return saved;
}

/**
 * Marks blocks of an endpoint as settled, and some of them as held; only as polled if it is meanwhile to be read again
 * from an earlier block.
 */
export async function saveSettled(
  sql: Queryable,
  { chain }: Usdt,
  place: number,
  { from, to, held }: { from: bigint; to: bigint; held: readonly bigint[] },
): Promise<void> {
  await sql`
    update chain_endpoints e
    set
      looked_at = clock_timestamp(),
      settled_to = case when moved.is_so then ${to} else e.settled_to end,
      held_blocks = case
        when moved.is_so
        then array(
          select distinct block
          from unnest(e.held_blocks || ${held.map(String)}::bigint[]) as block
          order by block
        )
        else e.held_blocks
      end
    from (
      select chain_id, token, place, settled_to >= ${from - 1n} and settled_to < ${to} as is_so
      from chain_endpoints
      where chain_id = ${chain.id}
        and token = ${chain.token.toLowerCase()}
        and place = ${place}
      for no key update
    ) moved
    where (e.chain_id, e.token, e.place) = (moved.chain_id, moved.token, moved.place)`;
}

/** Releases a held block of an endpoint: every transfer in it is stored. */
export async function releaseHeld(sql: Queryable, { chain }: Usdt, place: number, block: bigint): Promise<void> {
  await sql`
    update chain_endpoints
    set held_blocks = array_remove(held_blocks, ${block}::bigint)
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and place = ${place}`;
}

/** Stores that the poll of an endpoint continues. */
export async function savePolled(sql: Queryable, { chain }: Usdt, place: number): Promise<void> {
  await sql`
    update chain_endpoints
    set looked_at = clock_timestamp()
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and place = ${place}`;
}

/** The blocks that can be requested again: how far any endpoint was read, and how far all were, in blocks that exist. */
interface Reread {
  highest: bigint;
  lowest: bigint;
}

/**
 * Returns how far the configured endpoints were read; null if none was read yet. Locks them until the transaction ends.
 */
export async function lockReread(tx: Transaction, { chain, rpcUrls }: Usdt): Promise<Reread | null> {
  const [found] = await tx<{ highest: bigint | null; lowest: bigint | null }[]>`
    with held as (
      select head, settled_to
      from chain_endpoints
      where chain_id = ${chain.id}
        and token = ${chain.token.toLowerCase()}
        and place <= ${rpcUrls.length}
        and settled_to is not null
      order by place
      for no key update
    )
    select max(settled_to) as highest, min(least(settled_to, head)) as lowest
    from held`;
  if (found === undefined || found.highest === null || found.lowest === null) return null;
  return { highest: found.highest, lowest: found.lowest };
}

/**
 * Makes the configured endpoints resume from a block, if they were read up to it: none is moved forward. Returns their
 * number. Credits are not changed.
 */
export async function saveReread(tx: Transaction, { chain, rpcUrls }: Usdt, block: bigint): Promise<number> {
  const moved = await tx`
    update chain_endpoints
    set settled_to = ${block - 1n}
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and place <= ${rpcUrls.length}
      and settled_to >= ${block}`;
  return moved.count;
}

/** Stores how a poll of an endpoint ended: `isRead` if it was read up to its newest block, except held blocks. */
export async function savePoll(
  sql: Queryable,
  { chain }: Usdt,
  poll: { place: number; rangeBlocks: number | null; isRead: boolean; error: string | null },
): Promise<void> {
  const { place, rangeBlocks, isRead, error } = poll;
  await sql`
    update chain_endpoints
    set
      looked_at = clock_timestamp(),
      is_read = ${isRead},
      range_blocks = coalesce(${rangeBlocks}, range_blocks),
      responded_at = case when ${error}::text is null then clock_timestamp() else responded_at end,
      failing_since = case when ${error}::text is null then null else coalesce(failing_since, clock_timestamp()) end,
      last_error = ${error === null ? null : cut(error, LONGEST_ERROR)}
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and place = ${place}`;
}

/** Returns the endpoints of the configured chain as last seen. */
export async function listEndpoints(sql: Queryable, { chain, rpcUrls }: Usdt): Promise<EndpointState[]> {
  return sql<EndpointState[]>`
    select
      place::integer as place,
      host,
      range_blocks as "rangeBlocks",
      settled_to as "settledTo",
      held_blocks as "heldBlocks",
      head,
      head_at as "headAt",
      finalized,
      looked_at as "lookedAt",
      responded_at as "respondedAt",
      failing_since as "failingSince",
      is_read as "isRead",
      last_error as "lastError"
    from chain_endpoints
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and place <= ${rpcUrls.length}
    order by place`;
}

/** Whether every endpoint was read once: deposits from now on are seen. */
export async function isWatched(sql: Queryable, usdt: Usdt): Promise<boolean> {
  const endpoints = await listEndpoints(sql, usdt);
  return endpoints.length === usdt.rpcUrls.length && endpoints.every(({ settledTo }) => settledTo !== null);
}
