import type { Queryable, Sql, Transaction } from "../../db/client.ts";
import { togetherBy } from "../../db/together.ts";
import type { ReferenceSumsJson } from "./reference-sums.ts";
import type { SumsJson } from "./sums-json.ts";

/** A published row is made anew at most this often. */
export const LEAST_SECONDS = 10;

/** And at most once in this many seconds for each hour it sums, so that years of hours cost no more than weeks: a day as often as may be. */
const SECONDS_PER_HOUR_SUMMED = LEAST_SECONDS / 24;

/** The periods that are published: whole UTC days including today, or, for 24h, the current UTC hour and the 23 before. */
export const PERIODS = ["24h", "7d", "30d", "90d", "all"] as const;

export type Period = (typeof PERIODS)[number];

/** A published row that is due: the span of its period by the database clock, and the first hour there is to sum. */
export interface DuePeriod {
  tableId: number;
  model: string;
  feature: string;
  period: Period;
  start: string;
  end: string;
  firstHour: string;
}

/** Houses that are looked at by one statement. */
const HOUSES_AT_ONCE = 100;

const listTogether = togetherBy<Sql, string, number[]>(listTablesOf, { items: HOUSES_AT_ONCE });

/** Tables of a house with hours to sum or published rows that are due; houses asked for at once are looked up together. */
export function listTablesToPublish(sql: Sql, house: string): Promise<number[]> {
  return listTogether(sql, house);
}

async function listTablesOf(sql: Sql, houses: readonly string[]): Promise<number[][]> {
  const rows = await sql<{ id: number; house: string }[]>`
    select t.id, t.house_id as house
    from tables t
    where t.house_id = any(${[...houses]}::text[])
      and (
        exists (select from accuracy_series s where s.table_id = t.id and s.due_at <= now())
        or (${isToBeSummed(sql)})
      )
    order by t.id`;
  const byHouse = Map.groupBy(rows, ({ house }) => house);
  return houses.map((house) => (byHouse.get(house) ?? []).map(({ id }) => id));
}

/** The table `t` has noted hours, and none of its rows was published a moment ago: summing them now serves somebody. */
export function isToBeSummed(sql: Queryable) {
  return sql`
    exists (select from hours_to_sum where table_id = t.id)
      and not exists (
        select
        from accuracy_series
        where table_id = t.id
          and published_at > now() - ${LEAST_SECONDS} * interval '1 second'
      )`;
}

/**
 * The published rows of tables that are missing, whose period has moved on, or whose hours have changed and which are
 * older than they need be; those of one table together.
 */
export async function listDuePeriods(tx: Transaction, tableIds: readonly number[]): Promise<DuePeriod[]> {
  const ids = [...tableIds];
  // naming the tables on both sides spares a look at all published rows there are
  return tx<DuePeriod[]>`
    select
      s.table_id as "tableId", s.model, s.feature, span.period,
      utc_text(span.starts) as start,
      utc_text(span.ends) as "end",
      utc_text(s.first_hour) as "firstHour"
    from accuracy_series s
    cross join lateral (
      select
        '24h' as period,
        date_trunc('hour', now(), 'UTC') - interval '23 hours' as starts,
        date_trunc('hour', now(), 'UTC') + interval '1 hour' as ends
      union all
      select
        period,
        coalesce(date_trunc('day', now(), 'UTC') - (days - 1) * interval '24 hours', s.first_hour),
        date_trunc('day', now(), 'UTC') + interval '24 hours'
      from (values ('7d', 7), ('30d', 30), ('90d', 90), ('all', null)) as d (period, days)
    ) span
    left join published_accuracy p
      on p.table_id = s.table_id
      and p.model = s.model
      and p.feature = s.feature
      and p.period = span.period
      and p.table_id = any(${ids}::integer[])
    where s.table_id = any(${ids}::integer[])
      and (
        p.table_id is null
        or p.period_end <> span.ends
        or (p.updated_at < s.changed_at and p.updated_at + ${leastAge(tx)} <= now())
      )
    order by s.table_id, s.model, s.feature`;
}

/** How old a published row `p` of the series `s` must be before it is made anew. */
function leastAge(tx: Transaction) {
  return tx`greatest(
    ${LEAST_SECONDS} * interval '1 second',
    (p.period_end - greatest(p.period_start, s.first_hour)) * ${SECONDS_PER_HOUR_SUMMED / 3600}::float8
  )`;
}

/** A period, and what its hours sum up to. */
export interface PeriodSums {
  due: DuePeriod;
  sums: SumsJson;
  references: ReferenceSumsJson;
}

/** A row of a long period is some ten thousand characters. */
const ROWS_PER_STATEMENT = 100;

/** Shows the sums of periods to callers. */
export async function publishPeriods(tx: Transaction, periods: readonly PeriodSums[]): Promise<void> {
  for (let at = 0; at < periods.length; at += ROWS_PER_STATEMENT) {
    const rows = periods.slice(at, at + ROWS_PER_STATEMENT).map(({ due, sums, references }) => ({
      table_id: due.tableId,
      model: due.model,
      feature: due.feature,
      period: due.period,
      period_start: due.start,
      period_end: due.end,
      sums,
      reference_sums: references,
    }));
    await tx`
      insert into published_accuracy (
        table_id, model, feature, period, period_start, period_end, sums, reference_sums
      )
      select table_id, model, feature, period, period_start, period_end, sums, reference_sums
      from jsonb_to_recordset(${tx.json(rows)}) as x (
        table_id integer, model text, feature text, period text, period_start timestamptz, period_end timestamptz,
        sums jsonb, reference_sums jsonb
      )
      on conflict (table_id, model, feature, period) do update
      set
        period_start = excluded.period_start,
        period_end = excluded.period_end,
        sums = excluded.sums,
        reference_sums = excluded.reference_sums,
        updated_at = clock_timestamp()`;
  }
}

/** Notes when the published rows of tables are due next: when a period ends, or where hours have changed since. */
export async function savePublished(tx: Transaction, tableIds: readonly number[]): Promise<void> {
  const ids = [...tableIds];
  await tx`
    update accuracy_series s
    set
      published_at = clock_timestamp(),
      due_at = next.due_at
    from (
      select
        s.table_id,
        s.model,
        s.feature,
        min(least(p.period_end, case when p.updated_at < s.changed_at then p.updated_at + ${leastAge(tx)} end)) as due_at
      from accuracy_series s
      join published_accuracy p on p.table_id = s.table_id and p.model = s.model and p.feature = s.feature
      where s.table_id = any(${ids}::integer[])
        and p.table_id = any(${ids}::integer[])
      group by s.table_id, s.model, s.feature
    ) next
    where s.table_id = next.table_id
      and s.model = next.model
      and s.feature = next.feature`;
}

/**
 * The share of on-time rounds of the last 24 published hours for which a next-color forecast was issued in time, by
 * table as `house/game/market`; a table without such rounds is not in it.
 */
export async function readCoverage(sql: Queryable): Promise<Map<string, number>> {
  const rows = await sql<{ table: string; coverage: number }[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as "table",
      1 - (p.sums -> 'counts' ->> 'not_issued')::float8 / (p.sums -> 'counts' ->> 'on_time_rounds')::float8 as coverage
    from published_accuracy p
    join tables t on t.id = p.table_id
    where p.feature = 'next_color'
      and p.period = '24h'
      and (p.sums -> 'counts' ->> 'on_time_rounds')::bigint > 0`;
  return new Map(rows.map(({ table, coverage }) => [table, coverage]));
}
