import { hasTooManyVoids } from "../../forecasts/accuracy/figures/figures.ts";
import { listMeasuredOrDamaged } from "../../forecasts/accuracy/measured-store.ts";
import type { Queryable, Sql } from "../../db/client.ts";
import { rejectedFrom } from "../../forecasts/readings/audit-store.ts";

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
  /** On-time rounds received in the last ten minutes, or since the first response, whose own rounds are older. */
  recentRounds: number;
  /** The minutes of {@link recentRounds}: 10; fewer for a new table, and at least 1. */
  recentMinutes: number;
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
  /** Too many are void or late to publish an interval. */
  isWithheld: boolean;
}

const RECENT_MINUTES = 10;
/** The newest rounds of a table of which those of ten minutes are counted: one per second. More are not counted. */
const RECENT_ROUNDS_MAX = 600;

/** Tables in the order of houses and places in the houses file; of one house if given. */
export async function readTables(sql: Sql, house: string | null = null): Promise<TableFacts[]> {
  return sql<TableFacts[]>`
    select ${tableColumns(sql)}
    from tables t
    join houses h on h.id = t.house_id
    ${tableJoins(sql)}
    where ${house}::text is null
      or t.house_id = ${house}
    order by t.house_id, t.position, t.id`;
}

/** One table; null where there is none of this name. */
export async function readTable(
  sql: Queryable,
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

/** How the forecasts of tables did in the last day, of all tables when null is given; those with damaged sums are left out. */
export async function readHits(sql: Sql, tableIds: readonly number[] | null): Promise<HitFacts[]> {
  const filter = { period: "24h", feature: "next_color", tableIds: tableIds ?? undefined } as const;
  const rows = await listMeasuredOrDamaged(sql, filter);
  return rows.flatMap((row) => {
    if ("damage" in row) return [];
    const { tableId, sums } = row;
    const isWithheld = hasTooManyVoids(sums);
    return [{ tableId, scored: Number(sums.n), hits: Number(sums.hits), sumP: Number(sums.sumP), isWithheld }];
  });
}

function tableColumns(sql: Queryable) {
  return sql`
    t.id,
    t.house_id as house,
    t.game,
    t.market,
    t.shard,
    t.enabled and h.enabled as enabled,
    t.created_at as "createdAt",
    d.newest_round_id as "newestRoundId",
    d.last_polled_round_at as "newestRoundAt",
    extract(epoch from clock_timestamp() - d.last_polled_round_at)::float8 as "lagSeconds",
    d.last_seq::float8 as rounds,
    recent.rounds as "recentRounds",
    coalesce(least(greatest(extract(epoch from now() - first.received_at) / 60, 1), ${RECENT_MINUTES}), ${RECENT_MINUTES})::float8
      as "recentMinutes",
    d.proof_number::text as "provenNumber",
    d.newest_number::text as "newestNumber",
    a.rounds::float8 as audited,
    a.proven::float8 as proven,
    a.proofs_failed::float8 as "proofsFailed",
    case when a.tested > 0 then a.ln_e::float8 end as "lnE",
    coalesce(a.ln_e_max >= ${rejectedFrom(sql)}, false) as "isRejected",
    f.issued_at as "forecastAt",
    c.version as "calibrationVersion",
    utc_text(c.created_at) as "calibratedAt"`;
}

function tableJoins(sql: Queryable) {
  return sql`
    join table_heads d on d.table_id = t.id
    left join forecast_sets f on f.table_id = t.id and f.cutoff_seq = d.set_seq
    left join lateral (
      select version, created_at
      from calibrations
      where table_id = t.id
        and model = d.model
        and kind <> 'manual'
        and live_state_hash = state_hash
      order by version desc
      limit 1
    ) c on true
    left join lateral (
      select rounds, proven, proofs_failed, tested, ln_e, ln_e_max
      from house_audits
      where table_id = t.id
      order by hour desc
      limit 1
    ) a on true
    left join lateral (
      select received_at
      from rounds
      where table_id = t.id
        and seq = 1
      limit 1
    ) first on true
    cross join lateral (
      select count(*)::integer as rounds
      from rounds r
      where r.table_id = t.id
        and r.seq > d.last_seq - ${RECENT_ROUNDS_MAX}
        and r.received_at > greatest(now() - ${RECENT_MINUTES} * interval '1 minute', first.received_at)
        and not r.late
    ) recent`;
}
