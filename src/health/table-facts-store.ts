import { joinLiveCalibration } from "../calibration/live-calibration-store.ts";
import type { Queryable } from "../db/client.ts";
import { rejectedFrom } from "../forecasts/readings/audit-store.ts";

/** The health of a table as its head has it; ages by the database's clock. */
interface TableHead {
  id: number;
  house: string;
  game: string;
  market: string;
  enabled: boolean;
  newestRoundId: string | null;
  /** When its newest round was received or imported. */
  lastRoundAt: string | null;
  /** Since the newest polled round; null before the first. An import does not change it. */
  lagSeconds: number | null;
  rounds: number;
}

/** The health of a table with its rates, audits, forecasts and calibrations. */
export interface TableFacts extends TableHead {
  shard: number;
  createdAt: Date;
  newestRoundAt: Date | null;
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
  /** ln of the e-value against the declared edge, micro-nats; null if none is declared or nothing was tested. */
  lnE: number | null;
  isRejected: boolean;
  forecastAt: Date | null;
  calibrationVersion: number | null;
  calibratedAt: Date | null;
}

/** The open gaps of a table. */
export interface OpenGaps {
  tableId: number;
  gaps: number;
}

/** What is open of a table. */
export interface OpenFacts extends OpenGaps {
  missing: number;
  gapSince: Date | null;
  attempts: number;
  nextAttemptAt: Date | null;
  quarantine: number;
  conflicts: number;
}

/** What is known of one table, besides its health. */
interface TableDetail {
  colors: { name: string; below?: number }[];
  model: string;
  roundIds: string;
  pauseMs: number;
  /** Rounds that arrived on time; only these can be forecast. */
  onTime: number;
  forecasts: number;
  /** Start of the request since which newer rounds are known to be new; null before the first. */
  lastRequestAt: string | null;
  unreadPayloads: number;
}

/** The tables to read: of one house, or one by its id; all if neither is given. */
interface TableScope {
  house?: string | undefined;
  id?: number | undefined;
}

const RECENT_MINUTES = 10;
/** The newest rounds of a table of which those of ten minutes are counted: one per second. More are not counted. */
const RECENT_ROUNDS_MAX = 600;

/** What every surface calls a table. */
export function tableName({ house, game, market }: Pick<TableFacts, "house" | "game" | "market">): string {
  return `${house}/${game}/${market}`;
}

/** Tables in the order of houses and places in the houses file. */
export async function readTables(sql: Queryable, scope: TableScope): Promise<TableFacts[]> {
  return sql<TableFacts[]>`
    select ${headColumns(sql)}, ${factColumns(sql)}
    from tables t
    join houses h on h.id = t.house_id
    join table_heads d on d.table_id = t.id
    ${factJoins(sql)}
    ${inScope(sql, scope)}`;
}

/** Like {@link readTables}, but only what the heads have: reads no rounds, audits, forecasts or calibrations. */
export async function readTableHeads(sql: Queryable, scope: TableScope): Promise<TableHead[]> {
  return sql<TableHead[]>`
    select ${headColumns(sql)}
    from tables t
    join houses h on h.id = t.house_id
    join table_heads d on d.table_id = t.id
    ${inScope(sql, scope)}`;
}

function inScope(sql: Queryable, { house, id }: TableScope) {
  return sql`
    where true
      ${house === undefined ? sql`` : sql`and t.house_id = ${house}`}
      ${id === undefined ? sql`` : sql`and t.id = ${id}`}
    order by t.house_id, t.position, t.id`;
}

/** The open gaps of the tables that have any. */
export async function readOpenGaps(sql: Queryable): Promise<OpenGaps[]> {
  return sql<OpenGaps[]>`
    select table_id as "tableId", count(*)::float8 as gaps
    from gaps
    where state = 'open'
    group by table_id`;
}

/** What is open, of the tables that have anything open. */
export async function readOpen(sql: Queryable, { house, id }: TableScope): Promise<OpenFacts[]> {
  const ofHouse =
    house === undefined ? sql`` : sql`and table_id = any(array(select id from tables where house_id = ${house}))`;
  const own = id === undefined ? ofHouse : sql`and table_id = ${id}`;
  return sql<OpenFacts[]>`
    with found as (
      select
        table_id, count(*) as gaps, coalesce(sum(missing - filled), 0) as missing, min(opened_at) as gap_since,
        max(attempts) as attempts, min(next_attempt_at) as next_attempt_at, 0 as quarantine, 0 as conflicts
      from gaps
      where state = 'open' ${own}
      group by table_id
      union all
      select table_id, 0, 0, null, 0, null, count(*), 0
      from quarantine
      where state = 'open' ${own}
      group by table_id
      union all
      select table_id, 0, 0, null, 0, null, 0, count(*)
      from conflicts
      where decided_at is null ${own}
      group by table_id
    )
    select
      table_id as "tableId",
      sum(gaps)::float8 as gaps,
      sum(missing)::float8 as missing,
      max(gap_since) as "gapSince",
      max(attempts)::integer as attempts,
      max(next_attempt_at) as "nextAttemptAt",
      sum(quarantine)::float8 as quarantine,
      sum(conflicts)::float8 as conflicts
    from found
    group by table_id`;
}

/** What pages and commands show of one table only; null if there is none. */
export async function findTableDetail(sql: Queryable, tableId: number): Promise<TableDetail | null> {
  const [row] = await sql<TableDetail[]>`
    select
      t.colors,
      d.model,
      t.round_ids as "roundIds",
      t.pause_ms as "pauseMs",
      d.last_ordinal::float8 as "onTime",
      d.forecast_seq::float8 as forecasts,
      utc_text(d.responded_at) as "lastRequestAt",
      (select count(*)::float8 from payloads p where p.table_id = t.id and p.state = 'unread') as "unreadPayloads"
    from tables t
    join table_heads d on d.table_id = t.id
    where t.id = ${tableId}`;
  return row ?? null;
}

function headColumns(sql: Queryable) {
  return sql`
    t.id,
    t.house_id as house,
    t.game,
    t.market,
    t.enabled and h.enabled as enabled,
    d.newest_round_id as "newestRoundId",
    utc_text(d.last_round_at) as "lastRoundAt",
    extract(epoch from clock_timestamp() - d.last_polled_round_at)::float8 as "lagSeconds",
    d.last_seq::float8 as rounds`;
}

function factColumns(sql: Queryable) {
  return sql`
    t.shard,
    t.created_at as "createdAt",
    d.last_polled_round_at as "newestRoundAt",
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
    c.created_at as "calibratedAt"`;
}

function factJoins(sql: Queryable) {
  return sql`
    left join forecast_sets f on f.table_id = t.id and f.cutoff_seq = d.set_seq
    ${joinLiveCalibration(sql)}
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
