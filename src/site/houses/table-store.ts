import type { Transaction } from "../../db/client.ts";

/** The database's facts for the page of a table. */
export interface TableFacts {
  /** The edge that the house declares; null for none. */
  edge: number | null;
  /** The scheme that proves its rounds; null if there is none. */
  scheme: string | null;
  /** The number of rounds counted, and of those at or above each threshold, in the given order. */
  rounds: number;
  atLeast: number[];
  verified: number;
  failed: number;
}

/** Returns facts of the newest `rounds` rounds of a table; thresholds are in hundredths. */
export async function readTableFacts(
  tx: Transaction,
  tableId: number,
  { rounds, thresholds }: { rounds: number; thresholds: readonly number[] },
): Promise<TableFacts | null> {
  const [facts] = await tx<TableFacts[]>`
    with newest as materialized (
      select hundredths, verified
      from rounds
      where table_id = ${tableId}
      order by seq desc
      limit ${rounds}
    )
    select
      (t.settings ->> 'house_edge')::float8 as edge,
      t.settings -> 'fairness' ->> 'scheme' as scheme,
      (select count(*)::integer from newest) as rounds,
      array(
        select (select count(*)::integer from newest where hundredths >= x)
        from unnest(${[...thresholds]}::bigint[]) with ordinality as wanted (x, place)
        order by place
      ) as "atLeast",
      (select count(*)::integer from newest where verified) as verified,
      (select count(*)::integer from newest where not verified) as failed
    from tables t
    where t.id = ${tableId}`;
  return facts ?? null;
}

/** A past forecast of the next color, and its score. */
export interface PastForecast {
  issuedAt: Date;
  afterRoundId: string;
  colors: string[];
  pPpm: number[];
  basePpm: number[];
  /** The color of its round, as an index; null if it is void. */
  outcome: number | null;
  /** The round that settled it; null if that round is not stored. */
  multiplier: string | null;
  /** Why it is void, such as `gap`; empty if it was scored. */
  reason: string;
}

/** Returns the newest settled forecast of a table that is followed by `rounds` rounds and older than `seconds`. */
export async function readPastForecast(
  tx: Transaction,
  tableId: number,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<PastForecast | null> {
  const [past] = await tx<PastForecast[]>`
    select
      s.issued_at as "issuedAt",
      s.cutoff_round_id as "afterRoundId",
      p.colors,
      s.p_ppm[1:cardinality(p.colors)] as "pPpm",
      s.base_ppm[1:cardinality(p.colors)] as "basePpm",
      o.outcome::integer as outcome,
      o.reason,
      to_char(r.hundredths / 100.0, 'FM999999999990.00') as multiplier
    from forecast_sets s
    join rounds c on c.table_id = s.table_id and c.seq = s.cutoff_seq
    join lateral (
      select array(select band ->> 'name' from jsonb_array_elements(bands) as band) as colors
      from palettes
      where id = c.palette
    ) p on true
    join lateral (
      select outcome, reason, settled_seq
      from scores
      where table_id = s.table_id
        and settled_seq > s.cutoff_seq
        and forecast_seq = s.first_seq
      order by rev desc
      limit 1
    ) o on true
    left join rounds r on r.table_id = s.table_id and r.seq = o.settled_seq
    where s.table_id = ${tableId}
      and s.issued_at < now() - ${seconds} * interval '1 second'
      and s.cutoff_seq <= (select max(cutoff_seq) from forecast_sets where table_id = ${tableId}) - ${rounds}::integer
    order by s.cutoff_seq desc
    limit 1`;
  return past ?? null;
}
