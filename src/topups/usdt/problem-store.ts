import type { Queryable } from "../../db/client.ts";
import { usd } from "../../money.ts";
import { listEndpoints } from "./endpoints/endpoint-store.ts";
import { listLeftOut } from "./endpoints/left-out-store.ts";
import { listReorganized } from "./credited-store.ts";
import {
  endpointProblem,
  disputeProblem,
  leftOutProblem,
  reorganizedProblem,
  strandedProblem,
  undecidedProblem,
  type Problem,
} from "./problems.ts";
import { type Usdt } from "../../config/usdt.ts";

/** Reorganizations and lagging nodes make endpoints differ for seconds; a longer difference needs a person. */
const DISPUTED_SECONDS = 30;
/** A deposit that is deep enough is decided on by the next poll, ten seconds later. */
const UNDECIDED_MINUTES = 5;

/**
 * Returns the problems that people should check: endpoints that are not read, deposits on which they differ, and those
 * that nothing credits. Deposits are reported whatever is configured, since an alert that is not reported ends.
 */
export async function findUsdtProblems(sql: Queryable, usdt: Usdt | null): Promise<Problem[]> {
  const [configured, disputed, leftOut, reorganized, stranded] = await Promise.all([
    usdt === null ? [] : findWatchProblems(sql, usdt),
    listDisputed(sql),
    listLeftOut(sql),
    listReorganized(sql),
    sumStranded(sql, usdt),
  ]);
  return [
    ...configured,
    ...disputed.map(disputeProblem),
    ...leftOut.map(leftOutProblem),
    ...reorganized.map((deposit) => reorganizedProblem({ ...deposit, amount: usd(deposit.micros) })),
    ...stranded.map((sum) => strandedProblem(usdt?.chain ?? null, { ...sum, amount: usd(sum.micros) })),
  ];
}

/** Returns the problems of reading and deciding on the configured chain. */
async function findWatchProblems(sql: Queryable, usdt: Usdt): Promise<Problem[]> {
  const [endpoints, undecided, now] = await Promise.all([
    listEndpoints(sql, usdt),
    sumUndecided(sql, usdt),
    readClock(sql),
  ]);
  return [
    ...endpoints.flatMap((endpoint) => endpointProblem(usdt.chain.name, endpoint, now) ?? []),
    ...undecided.map((sum) => undecidedProblem({ ...sum, amount: usd(sum.micros) })),
  ];
}

/** Returns deposits of any chain that have been disputed for longer than a reorganization, oldest first. */
function listDisputed(sql: Queryable) {
  return sql<{ txHash: string; position: number; since: Date; text: string }[]>`
    select
      tx_hash as "txHash",
      position,
      disputed_since as since,
      dispute as text
    from chain_deposits
    where state = 'pending'
      and disputed_since < clock_timestamp() - make_interval(secs => ${DISPUTED_SECONDS})
    order by disputed_since
    limit 20`;
}

/** Returns the number and total of deposits that were deep enough minutes ago and are still pending; none if there are none. */
function sumUndecided(sql: Queryable, { chain, minMicros, rpcUrls }: Usdt) {
  const blocks = chain.confirmations + Math.ceil((UNDECIDED_MINUTES * 60_000) / chain.blockMs);
  return sql<{ n: number; reached: number; micros: bigint; since: Date }[]>`
    select
      count(*)::integer as n,
      (count(*) filter (where micros >= ${minMicros}))::integer as reached,
      sum(micros)::bigint as micros,
      min(changed_at) as since
    from chain_deposits
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and state = 'pending'
      and disputed_since is null
      and changed_at < clock_timestamp() - make_interval(mins => ${UNDECIDED_MINUTES})
      and block_number <= (
        select min(head)
        from chain_endpoints
        where chain_id = ${chain.id}
          and token = ${chain.token.toLowerCase()}
          and place <= ${rpcUrls.length}
      ) - ${blocks}
    having count(*) > 0`;
}

/**
 * Returns the number and total of deposits that are not credited, for each chain and token that is not configured.
 * Small ones count once those of an address reach the minimum: anybody can send dust, which nothing would ever credit.
 * Without USDT the minimum is unknown, so small ones do not count: such an alert could never end.
 */
function sumStranded(sql: Queryable, usdt: Usdt | null) {
  const isOther =
    usdt === null
      ? sql`true`
      : sql`(chain_id, token) <> (${usdt.chain.id}::bigint, ${usdt.chain.token.toLowerCase()}::text)`;
  const isEnough = usdt === null ? sql`false` : sql`sum(micros) >= ${usdt.minMicros}`;
  return sql<{ chainId: bigint; token: string; n: number; micros: bigint }[]>`
    with waiting as (
      select
        chain_id,
        token,
        count(*) as n,
        sum(micros) as micros
      from chain_deposits
      where state in ('pending', 'below_min')
        and micros > 0
        and ${isOther}
      group by chain_id, token, account_id, state
      having state = 'pending' or ${isEnough}
    )
    select
      chain_id as "chainId",
      token,
      sum(n)::integer as n,
      sum(micros)::bigint as micros
    from waiting
    group by chain_id, token
    order by chain_id, token`;
}

async function readClock(sql: Queryable): Promise<Date> {
  const [row] = await sql<{ now: Date }[]>`select clock_timestamp() as now`;
  if (row === undefined) throw new Error("the database has no clock");
  return row.now;
}
