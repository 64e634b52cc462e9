import type { Queryable } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { hourNumber } from "./mark-store.ts";
import { PERIODS, type Period, periodEnd, periodStart } from "./periods.ts";
import type { Sums } from "./figures/sums.ts";
import { type FeatureSums, featureSums, withLateRounds } from "./published.ts";
import { addSums, decodeSums, encodeSums, type SumVector } from "./sum-vector.ts";

/** The published accuracy of a feature of a table over a period. */
export interface PublishedAccuracy extends FeatureSums {
  tableId: number;
  model: string;
  feature: string;
  period: Period;
  /** ISO times: the first moment of the period, and the first after it. */
  start: string;
  end: string;
  /** When the newest counted round was received, and its id; null if it is not stored. */
  asOf: string | null;
  asOfRoundId: string | null;
  asOfSeq: number;
  /** When the sums last changed, in milliseconds since 1970. */
  changedMs: number;
  /** The number of changes of the table's accuracy so far. */
  version: bigint;
}

/** A table whose sums cannot be decoded, so they were changed. */
export interface DamagedAccuracy {
  tableId: number;
  reason: string;
}

/** Filter of rows; an absent field does not filter. */
export interface PublishedFilter {
  tableIds: readonly number[];
  periods?: readonly Period[];
  feature?: string;
}

interface Row {
  tableId: number;
  model: string;
  code: number;
  thresholds: number[];
  edge: number | null;
  feature: string;
  /** Null for an hour that is not folded. */
  period: Period | null;
  sums: Uint8Array;
  hour: number;
  firstHour: number;
  asOf: string | null;
  asOfRoundId: string | null;
  asOfSeq: number;
  changedMs: number;
  version: bigint;
}

/**
 * The accuracy of tables, of each model and feature they were forecast with: folded periods and the hours since, in one
 * snapshot. The order is that of tables, models with the live one last, feature codes with next_color first, and `PERIODS`.
 * A table with damaged sums has no rows; it does not stop the others.
 */
export async function listPublished(
  sql: Queryable,
  { tableIds, periods = PERIODS, feature }: PublishedFilter,
): Promise<{ rows: PublishedAccuracy[]; damaged: DamagedAccuracy[] }> {
  const ids = [...tableIds];
  const stored = await sql<Row[]>`
    select
      x.table_id as "tableId", x.model, coalesce(d.thresholds, '{}') as thresholds, d.edge, x.feature as code, feature_name(x.feature, p.bands) as feature, x.period, x.sums,
      floor(extract(epoch from m.hour) / 3600)::integer as hour,
      floor(extract(epoch from a.first_hour) / 3600)::integer as "firstHour",
      utc_text(r.received_at) as "asOf", r.round_id as "asOfRoundId", m.version,
      m.round_seq::float8 as "asOfSeq", extract(epoch from m.updated_at)::float8 * 1000 as "changedMs"
    from (
      select table_id, model, feature, period, sums
      from accuracy_periods
      where table_id = any(${ids}::integer[])
        and period = any(${[...periods]}::text[])
      union all
      select h.table_id, h.model, h.feature, null, h.sums
      from accuracy_marks m
      join accuracy_hours h on h.table_id = m.table_id and h.hour >= m.hour - interval '1 hour'
      where m.table_id = any(${ids}::integer[])
    ) x
    join accuracy_marks m on m.table_id = x.table_id
    left join rounds r on r.table_id = m.table_id and r.seq = m.round_seq
    join accuracy_models a on a.table_id = x.table_id and a.model = x.model
    join palettes p on p.id = a.palette
    left join models d on d.name = x.model
    join table_heads h on h.table_id = x.table_id
    where ${feature ?? null}::text is null
      -- its late rounds are those of the windows, too
      or x.feature = 0
      or feature_name(x.feature, p.bands) = ${feature ?? null}::text
    order by x.table_id, x.model = h.model, a.first_hour, x.model, x.feature`;
  const open = await countOpen(sql, ids);
  const rows: PublishedAccuracy[] = [];
  const damaged: DamagedAccuracy[] = [];
  for (const [tableId, own] of Map.groupBy(stored, (row) => row.tableId)) {
    try {
      const published = publishedOfTable(own, periods, open);
      rows.push(...published.filter((row) => feature === undefined || row.feature === feature));
    } catch (error) {
      damaged.push({ tableId, reason: reasonOf(error) });
    }
  }
  return { rows, damaged };
}

/** Unsettled forecasts of a series that were issued in an hour. */
interface OpenForecasts {
  hour: number;
  count: bigint;
}

/** Unsettled forecasts by series, for tables in which one ended while settling was paused. */
async function countOpen(sql: Queryable, ids: readonly number[]): Promise<Map<string, OpenForecasts[]>> {
  const rows = await sql<(OpenForecasts & { series: string })[]>`
    select
      format('%s %s %s', s.table_id, f.code, s.model) as series,
      ${hourNumber(sql, "s.issued_at")} as hour,
      count(*) as count
    from table_heads h
    cross join lateral unnest(h.open_sets) as open (cutoff_seq)
    join forecast_sets s on s.table_id = h.table_id and s.cutoff_seq = open.cutoff_seq
    cross join lateral unnest(s.features) with ordinality as f (code, place)
    where h.table_id = any(${[...ids]}::integer[])
      and h.has_ended
      and not exists (
        select
        from score_sets o
        where o.table_id = s.table_id
          and o.settled_seq > s.cutoff_seq
          and s.first_seq + f.place - 1 = any (o.forecast_seqs)
      )
    group by s.table_id, f.code, s.model, 2`;
  return Map.groupBy(rows, ({ series }) => series);
}

/** The sums of a period without a stored row. */
const NOTHING = encodeSums(new Map());

/** @param rows those of a table, next_color of a model before its windows */
function publishedOfTable(
  rows: readonly Row[],
  periods: readonly Period[],
  open: ReadonlyMap<string, readonly OpenForecasts[]>,
): PublishedAccuracy[] {
  const published: PublishedAccuracy[] = [];
  const nextColors = new Map<string, Sums>();
  for (const [key, own] of Map.groupBy(rows, ({ tableId, model, code }) => `${tableId} ${code} ${model}`)) {
    const series = publishedOf(own, periods, { open: open.get(key) ?? [], nextColors });
    for (const { model, feature, period, sums } of series) {
      if (feature === "next_color") nextColors.set(`${model} ${period}`, sums);
    }
    published.push(...series);
  }
  return published;
}

/**
 * @param open unsettled forecasts, also those that are not counted yet
 * @param nextColors for windows, the sums of next_color by model and period
 */
function publishedOf(
  rows: readonly Row[],
  periods: readonly Period[],
  { open, nextColors }: { open: readonly OpenForecasts[]; nextColors: ReadonlyMap<string, Sums> },
): PublishedAccuracy[] {
  const [first] = rows;
  if (first === undefined) return [];
  const { tableId, model, feature, code, hour, firstHour, asOf, asOfRoundId, asOfSeq, changedMs, version } = first;
  const running: SumVector = new Map();
  for (const row of rows) if (row.period === null) addSums(running, decodeSums(row.sums));
  // computed once for periods with equal sums, as most are in the first month: an API holds them for each table
  const known: { folded: Uint8Array; nextColor: Sums | undefined; pending: bigint; named: FeatureSums }[] = [];
  const namedOf = (folded: Uint8Array, nextColor: Sums | undefined, pending: bigint): FeatureSums => {
    const same = known.find(
      (one) => one.nextColor === nextColor && one.pending === pending && Buffer.compare(one.folded, folded) === 0,
    );
    if (same !== undefined) return same.named;
    const sums = decodeSums(folded);
    addSums(sums, running);
    const own = featureSums(code, sums, first);
    if (own.sums.pending < pending) own.sums.pending = pending;
    const named = nextColor === undefined ? own : withLateRounds(own, nextColor);
    known.push({ folded, nextColor, pending, named });
    return named;
  };
  return periods.map((period) => {
    const folded = rows.find((row) => row.period === period)?.sums ?? NOTHING;
    const start = periodStart(period, hour);
    const pending = open.reduce((sum, one) => (one.hour >= (start ?? -Infinity) ? sum + one.count : sum), 0n);
    const named = namedOf(folded, nextColors.get(`${model} ${period}`), pending);
    return {
      tableId,
      model,
      feature,
      period,
      start: timeOf(start ?? firstHour),
      end: timeOf(periodEnd(period, hour)),
      asOf,
      asOfRoundId,
      asOfSeq,
      changedMs,
      version,
      ...named,
    };
  });
}

/** The start of an hour, written as the database writes times. */
function timeOf(hour: number): string {
  return new Date(hour * 3_600_000).toISOString().replace(".000Z", ".0000000Z");
}
