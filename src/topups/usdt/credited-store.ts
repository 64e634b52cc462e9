import type { Queryable } from "../../db/client.ts";
import type { Usdt } from "../../config/usdt.ts";
import { type PendingDeposit, readDeposits, selectDeposits } from "./pending-store.ts";

/** Deposits are watched for a day at most: no reorganization of an operating chain went back so far. */
const WATCHED_HOURS = 24;
/** Reorganizations after so many confirmations are rare, and each check costs a request per endpoint. */
const EVERY_SECONDS = 30;

/** Returns credited deposits that a reorganization can still remove, the least recently checked first. */
export async function listCredited(sql: Queryable, { chain }: Usdt, limit: number): Promise<PendingDeposit[]> {
  return readDeposits(sql`
    ${selectDeposits(sql)}
    join credited_deposits c on c.deposit_id = d.id
    where d.chain_id = ${chain.id}
      and d.token = ${chain.token.toLowerCase()}
      and (c.checked_at is null or c.checked_at < clock_timestamp() - make_interval(secs => ${EVERY_SECONDS}))
    order by c.checked_at nulls first, c.deposit_id
    limit ${limit}`);
}

/** The combined view of all endpoints on a credited deposit; `unclear` if they differ or one is behind. */
export type CreditedState = "there" | "final" | "gone" | "unclear";

/**
 * Stores the state of credited deposits, by id. A deposit that is final, or still there a day after its credit, is no
 * longer watched; one that is gone stays reported until it is there again.
 */
export async function saveCreditedStates(sql: Queryable, states: ReadonlyMap<bigint, CreditedState>): Promise<void> {
  if (states.size === 0) return;
  const seen = sql`
    unnest(${[...states.keys()].map(String)}::bigint[], ${[...states.values()]}::text[]) as seen (id, state)`;
  await sql`
    update credited_deposits c
    set
      checked_at = clock_timestamp(),
      missing_since = case seen.state
        when 'gone' then coalesce(c.missing_since, clock_timestamp())
        when 'unclear' then c.missing_since
      end
    from ${seen}
    where c.deposit_id = seen.id`;
  await sql`
    delete from credited_deposits c
    using ${seen}
    where c.deposit_id = seen.id
      and c.missing_since is null
      and (
        seen.state = 'final'
        or seen.state = 'there' and c.credited_at < clock_timestamp() - make_interval(hours => ${WATCHED_HOURS})
      )`;
}

/** Returns credited deposits of any chain that are no longer on it, oldest first, until their top-up is reversed. */
export async function listReorganized(sql: Queryable) {
  return sql<{ txHash: string; position: number; micros: bigint; accountId: bigint; since: Date }[]>`
    select
      d.tx_hash as "txHash",
      d.position,
      d.micros,
      d.account_id as "accountId",
      c.missing_since as since
    from credited_deposits c
    join chain_deposits d on d.id = c.deposit_id
    join topups t on t.id = d.topup_id
    where c.missing_since is not null
      and reversed_at(t.transaction_id) is null
    order by c.missing_since
    limit 20`;
}
