import type { Queryable } from "../../db/client.ts";
import { listEndpoints } from "./endpoint-store.ts";
import { endpointTrouble, disputeTrouble, type Trouble } from "./troubles.ts";
import { type Usdt } from "../../config/usdt.ts";

/** Reorganizations make endpoints differ for seconds; what lasts longer is for people. */
const DISPUTED_MINUTES = 2;

/** What people should look at: endpoints that are not read, and deposits on which they differ. Nothing where USDT is not taken. */
export async function findUsdtTroubles(sql: Queryable, usdt: Usdt | null): Promise<Trouble[]> {
  if (usdt === null) return [];
  const [endpoints, disputed, now] = await Promise.all([
    listEndpoints(sql, usdt),
    listDisputed(sql, usdt),
    readClock(sql),
  ]);
  return [
    ...endpoints.flatMap((endpoint) => endpointTrouble(usdt.chain.name, endpoint, now) ?? []),
    ...disputed.map(disputeTrouble),
  ];
}

/** Deposits on which endpoints have differed for minutes, the oldest first. */
function listDisputed(sql: Queryable, { chain }: Usdt) {
  return sql<{ txHash: string; position: number; since: Date; text: string }[]>`
    select
      tx_hash as "txHash",
      position,
      disputed_since as since,
      dispute as text
    from chain_deposits
    where chain_id = ${chain.id}
      and token = ${chain.token.toLowerCase()}
      and state = 'pending'
      and disputed_since < clock_timestamp() - make_interval(mins => ${DISPUTED_MINUTES})
    order by disputed_since
    limit 20`;
}

async function readClock(sql: Queryable): Promise<Date> {
  const [row] = await sql<{ now: Date }[]>`select clock_timestamp() as now`;
  if (row === undefined) throw new Error("the database has no clock");
  return row.now;
}
