import type { Sql } from "../../db/client.ts";

/** A table as the board lists it; ages and rates by the database's clock. */
export interface TableFacts {
  id: number;
  house: string;
  game: string;
  market: string;
  shard: number;
  enabled: boolean;
  createdAt: Date;
  newestRoundId: string | null;
  newestRoundAt: Date | null;
  /** Since the newest polled round; null before the first. */
  lagSeconds: number | null;
  rounds: number;
  /** On-time rounds received in the last ten minutes. */
  recentRounds: number;
  provenNumber: string | null;
  newestNumber: string | null;
  /** Rounds counted by the newest audit, those of them that are proven, and items that failed their proof. */
  audited: number | null;
  proven: number | null;
  proofsFailed: number | null;
  /** ln of the e-value against the declared edge, micro-nats; null where none is declared or nothing was tested. */
  lnE: number | null;
  isRejected: boolean;
  forecastAt: Date | null;
  calibrationVersion: number | null;
  calibratedAt: string | null;
}

/** Forecasts of a table's next color that were issued in the last day: scored, hits among them, stated chances in ppm. */
export interface HitFacts {
  tableId: number;
  scored: number;
  hits: number;
  sumP: number;
}

/** All tables, in the order of houses and places in the houses file. */
export async function readTables(sql: Sql): Promise<TableFacts[]> {
  return sql<TableFacts[]>`
    select ${tableColumns(sql)}
    from tables t
    join houses h on h.id = t.house_id
    ${tableJoins(sql)}
    order by t.house_id, t.position, t.id`;
}

/** One table; null where there is none of this name. */
export async function readTable(
  sql: Sql,
  { house, game, market }: { house: string; game: string; market: string },
): Promise<TableFacts | null> {
  const [row] = await sql<TableFacts[]>`
    select ${tableColumns(sql)}
    from tables t
    join houses h on h.id = t.house_id
    ${tableJoins(sql)}
    where t.house_id = ${house}
      and t.game = ${game}
      and t.market = ${market}`;
  return row ?? null;
}

/** How the forecasts of tables did in the last day, or of all tables (null): a row is large, and is taken apart once. */
export async function readHits(sql: Sql, tableIds: readonly number[] | null): Promise<HitFacts[]> {
  const ids = tableIds === null ? null : [...tableIds];
  return sql<HitFacts[]>`
    select
      table_id as "tableId",
      (counts ->> 'n')::float8 as scored,
      (counts ->> 'hits')::float8 as hits,
      (counts ->> 'sum_p')::float8 as "sumP"
    from (
      select acc.table_id, acc.sums -> 'counts' as counts
      from published_accuracy acc
      join tables t on t.id = acc.table_id and t.model = acc.model
      where acc.feature = 'next_color'
        and acc.period = '24h'
        and (${ids}::integer[] is null or acc.table_id = any(${ids}::integer[]))
      offset 0
    ) counted`;
}

function tableColumns(sql: Sql) {
  return sql`
    t.id,
    t.house_id as house,
    t.game,
    t.market,
    t.shard,
    t.enabled and h.enabled as enabled,
    t.created_at as "createdAt",
    t.newest_round_id as "newestRoundId",
    t.last_polled_round_at as "newestRoundAt",
    extract(epoch from clock_timestamp() - t.last_polled_round_at)::float8 as "lagSeconds",
    t.rounds::float8 as rounds,
    recent.rounds as "recentRounds",
    t.proof_number::text as "provenNumber",
    t.newest_number::text as "newestNumber",
    a.rounds::float8 as audited,
    a.proven::float8 as proven,
    a.proofs_failed::float8 as "proofsFailed",
    case when a.tested > 0 then a.ln_e::float8 end as "lnE",
    a.rejected_seq is not null as "isRejected",
    f.issued_at as "forecastAt",
    (p.calibration ->> 'version')::integer as "calibrationVersion",
    p.calibration ->> 'as_of' as "calibratedAt"`;
}

function tableJoins(sql: Sql) {
  return sql`
    left join published_now p on p.table_id = t.id
    left join lateral (
      -- by its key, table by table: a join would read all partitions
      select issued_at
      from forecasts
      where table_id = t.id
        and seq = t.forecast_seq
      limit 1
    ) f on true
    left join lateral (
      select rounds, proven, proofs_failed, tested, ln_e, rejected_seq
      from house_audits
      where table_id = t.id
      order by hour desc
      limit 1
    ) a on true
    cross join lateral (
      select count(*)::integer as rounds
      from rounds r
      where r.table_id = t.id
        and r.received_at > now() - interval '10 minutes'
        and not r.late
    ) recent`;
}
