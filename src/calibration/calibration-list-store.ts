import type { Queryable } from "../db/client.ts";
import { type ListPage, type PageWanted, readListPage } from "../db/list-page.ts";
import type { CalibrationKind } from "./calibration-store.ts";

/** Rolling records grow without limit: a list sorts and counts only this many of the newest matching ones. */
export const LOOKED_AT = 2000;

/** A record as a line of a list, with the sums behind its losses. */
export interface ListedCalibration {
  id: string;
  table: string;
  model: string;
  version: number;
  kind: CalibrationKind;
  rounds: bigint;
  fromRoundId: string | null;
  toRoundId: string | null;
  createdAt: string;
  /** Null if nothing was compared. */
  metLiveState: boolean | null;
  /** The newest record of the live model of its table. */
  isLive: boolean;
  /** Who promoted it or requested its run, and why; null if a worker or a command created it. */
  by: string | null;
  reason: string | null;
  /** Of the run that created it. */
  note: string | null;
  tags: string[];
  sampleSize: bigint;
  /** Nats per round; null if nothing was scored. */
  logLoss: number | null;
  baselineLogLoss: number | null;
  brier: number | null;
}

/** Filter of a list of records. */
export interface RecordFilter {
  tableIds: readonly number[] | null;
  /** `hand`: all except rolling ones. */
  kind: CalibrationKind | "hand" | null;
  model: string | null;
  /** A tag of the run that created it. */
  tag: string | null;
}

/** Sort keys of records. */
export type RecordSort = "id" | "table" | "rounds" | "log_loss" | "brier";

/** Returns a page of the matching records among the newest {@link LOOKED_AT}; the last page if there are fewer. */
export async function findCalibrationPage(
  sql: Queryable,
  filter: RecordFilter,
  { sort, isDown, ...wanted }: { sort: RecordSort; isDown: boolean } & PageWanted,
): Promise<ListPage<ListedCalibration>> {
  const order = {
    id: sql`id`,
    table: sql`"table"`,
    rounds: sql`rounds`,
    log_loss: sql`"logLoss"`,
    brier: sql`brier`,
  }[sort];
  return readListPage<ListedCalibration>(
    wanted,
    ({ limit, offset }) => sql<(ListedCalibration & { total: number })[]>`
    with matching as (${matchingRecords(sql, filter)}),
    ${withFigures(sql)},
    page as (
      select *
      from figures
      order by ${order} ${isDown ? sql`desc nulls last` : sql`asc nulls last`}, id desc
      limit ${limit}
      offset ${offset}
    )
    select
      p.id::text as id,
      p."table", p.model, p.version, p.kind, p.rounds,
      case
        when p.seen_seq is null then (select round_id from rounds r where r.table_id = p.table_id and r.seq = p.begin_seq)
        else p.begin_seq::text
      end as "fromRoundId",
      case
        when p.seen_seq is null then (select round_id from rounds r where r.table_id = p.table_id and r.seq = p.to_seq)
        else p.to_seq::text
      end as "toRoundId",
      utc_text(p.created_at) as "createdAt",
      case when p.live_state_hash is not null then p.live_state_hash = p.state_hash end as "metLiveState",
      p.kind <> 'manual' and p.model = p.live_model and p.version = (
        select max(version)
        from calibrations
        where table_id = p.table_id
          and model = p.model
          and kind <> 'manual'
      ) as "isLive",
      coalesce(p.decided_by, asked.by) as by,
      coalesce(p.reason, asked.why) as reason,
      asked.note,
      coalesce(asked.tags, '{}') as tags,
      p."sampleSize", p."logLoss", p."baselineLogLoss", p.brier,
      p.total
    from page p
    left join lateral (
      select asked_by as by, asked_why as why, note, tags
      from calibration_runs
      where calibration_id = p.id
      limit 1
    ) asked on p.kind = 'manual'
    order by ${order} ${isDown ? sql`desc nulls last` : sql`asc nulls last`}, p.id desc`,
  );
}

function matchingRecords(sql: Queryable, filter: RecordFilter) {
  return sql`
    select *
    from calibrations c
    where true
      ${filter.tableIds === null ? sql`` : sql`and c.table_id = any(${[...filter.tableIds]}::integer[])`}
      ${
        filter.kind === null
          ? sql``
          : filter.kind === "hand"
            ? sql`and c.kind <> 'rolling'`
            : sql`and c.kind = ${filter.kind}`
      }
      ${
        filter.tag === null
          ? sql``
          : sql`
            and c.id in (
              select calibration_id
              from calibration_runs
              where tags <> '{}'
                and tags @> array[${filter.tag}]::text[]
            )`
      }
      ${filter.model === null ? sql`` : sql`and ${filter.model} in (c.model, split_part(c.model, '-', 1))`}
    order by c.id desc
    limit ${LOOKED_AT}`;
}

/** The parts `shown` and `figures` of the query, after `matching`. */
function withFigures(sql: Queryable) {
  return sql`
    shown as (
      select
        c.*,
        t.house_id || '/' || t.game || '/' || t.market as "table",
        h.model as live_model,
        jsonb_path_query_first(c.sums, '$[*] ? (@.feature == "next_color").sums.counts') as counts
      from matching c
      join tables t on t.id = c.table_id
      join table_heads h on h.table_id = c.table_id
    ),
    figures as (
      select
        *,
        coalesce((counts ->> 'n')::bigint, 0) as "sampleSize",
        ((counts ->> 'sum_ll')::numeric / nullif((counts ->> 'n')::numeric, 0) / 1e6)::float8 as "logLoss",
        ((counts ->> 'sum_ll_base')::numeric / nullif((counts ->> 'n')::numeric, 0) / 1e6)::float8 as "baselineLogLoss",
        ((counts ->> 'sum_brier')::numeric / nullif((counts ->> 'n')::numeric, 0) / 1e12)::float8 as brier,
        count(*) over ()::integer as total
      from shown
    )`;
}
