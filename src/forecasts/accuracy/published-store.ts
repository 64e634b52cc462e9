import type { Queryable } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import type { DeclaredOdds } from "./figures/theory.ts";
import { hourNumber, shownHour } from "./mark-store.ts";
import { PERIODS, type Period, periodEnd, periodStart } from "./periods.ts";
import { type FeatureSums, featureSums, type LateRounds, lateRoundsOf, withLateRounds } from "./published.ts";
import { addSums, decodeSums, encodeSums, type SumVector } from "./sum-vector.ts";

/**
 * The published accuracy of a feature of a table over a period. Of a replaced model `sums` and `references` are decoded at
 * each use, and a copy by spreading has neither.
 */
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
  /** The number of the change of the table's accuracy that changed the row last. */
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
 * A model that was replaced has no row over a period in which it has no forecasts, but always one over `all`.
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
      floor(extract(epoch from ${shownHour(sql)}) / 3600)::integer as hour,
      floor(extract(epoch from a.first_hour) / 3600)::integer as "firstHour",
      utc_text(r.received_at) as "asOf", r.round_id as "asOfRoundId", x.version,
      m.round_seq::float8 as "asOfSeq", extract(epoch from m.updated_at)::float8 * 1000 as "changedMs"
    from (
      select table_id, model, feature, period, sums, version
      from accuracy_periods
      where table_id = any(${ids}::integer[])
        and period = any(${[...periods]}::text[])
      union all
      select h.table_id, h.model, h.feature, null, h.sums, m.version
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

/** Late rounds by model and period. */
type LateByPeriod = Map<string, LateRounds>;

/** @param rows those of a table, the newest model last, next_color of a model before its windows */
function publishedOfTable(
  rows: readonly Row[],
  periods: readonly Period[],
  open: ReadonlyMap<string, readonly OpenForecasts[]>,
): PublishedAccuracy[] {
  const late: LateByPeriod = new Map();
  const newest = rows.at(-1)?.model;
  return [...Map.groupBy(rows, ({ tableId, model, code }) => `${tableId} ${code} ${model}`)].flatMap(([key, own]) =>
    publishedOf(own, periods, { open: open.get(key) ?? [], late, isReplaced: own[0]?.model !== newest }),
  );
}

/**
 * @param open unsettled forecasts, also those that are not counted yet
 * @param late next_color adds those of its table, windows read them
 * @param isReplaced another model forecasts since: periods in which it has nothing are left out
 */
function publishedOf(
  rows: readonly Row[],
  periods: readonly Period[],
  { open, late, isReplaced }: { open: readonly OpenForecasts[]; late: LateByPeriod; isReplaced: boolean },
): PublishedAccuracy[] {
  const [first] = rows;
  if (first === undefined) return [];
  const { tableId, model, feature, code, hour, firstHour, asOf, asOfRoundId, asOfSeq, changedMs } = first;
  const { thresholds, edge } = first;
  const running: SumVector = new Map();
  for (const row of rows) if (row.period === null) addSums(running, decodeSums(row.sums));
  const decode = decoderOf(running);
  const rowOf = isReplaced ? (place: Place, parts: Parts) => new ReplacedRow(place, parts) : decodedOnce();
  return periods.flatMap((period) => {
    const folded = rows.find((row) => row.period === period)?.sums ?? NOTHING;
    const vector = decode(folded);
    const start = periodStart(period, hour);
    const pending = open.reduce((sum, one) => (one.hour >= (start ?? -Infinity) ? sum + one.count : sum), 0n);
    if (code === 0) late.set(`${model} ${period}`, lateRoundsOf(vector));
    if (isReplaced && period !== "all" && vector.size === 0 && pending === 0n) return [];
    const changes = rows.filter((row) => row.period === period || row.period === null).map((row) => row.version);
    const place = {
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
      version: changes.reduce((newest, version) => (version > newest ? version : newest), 0n),
    };
    const lateRounds = code === 0 ? null : (late.get(`${model} ${period}`) ?? null);
    return [rowOf(place, { code, vector, odds: { thresholds, edge }, pending, lateRounds })];
  });
}

/** Decodes the folded sums of a series and adds those of its running hours; equal ones once. */
function decoderOf(running: SumVector): (folded: Uint8Array) => SumVector {
  const known: { folded: Uint8Array; vector: SumVector }[] = [];
  return (folded) => {
    const same = known.find((one) => Buffer.compare(one.folded, folded) === 0);
    if (same !== undefined) return same.vector;
    const vector = decodeSums(folded);
    addSums(vector, running);
    known.push({ folded, vector });
    return vector;
  };
}

/** A row without its sums. */
type Place = Omit<PublishedAccuracy, keyof FeatureSums>;

/** What the sums of a row are made of. */
interface Parts {
  code: number;
  vector: SumVector;
  odds: DeclaredOdds;
  pending: bigint;
  /** Null for next_color. */
  lateRounds: LateRounds | null;
}

function sumsOf({ code, vector, odds, pending, lateRounds }: Parts): FeatureSums {
  const own = featureSums(code, vector, odds);
  if (own.sums.pending < pending) own.sums.pending = pending;
  return lateRounds === null ? own : withLateRounds(own, lateRounds);
}

/** Makes rows of a series. Equal sums are one object, as most are in the first month: an API holds them for each table. */
function decodedOnce(): (place: Place, parts: Parts) => PublishedAccuracy {
  const known: { parts: Parts; sums: FeatureSums }[] = [];
  return (place, parts) => {
    const isSame = ({ vector, pending, lateRounds }: Parts) =>
      vector === parts.vector &&
      pending === parts.pending &&
      lateRounds?.lateRounds === parts.lateRounds?.lateRounds &&
      lateRounds?.settledRounds === parts.lateRounds?.settledRounds;
    let own = known.find((one) => isSame(one.parts));
    if (own === undefined) known.push((own = { parts, sums: sumsOf(parts) }));
    return { ...place, ...own.sums };
  };
}

/**
 * A row of a replaced model. A table may have many such models and few ask for them, so that an API holds the sums as bytes
 * outside of the heap, a tenth of the objects, and decodes them at each use.
 */
class ReplacedRow implements PublishedAccuracy {
  readonly tableId: number;
  readonly model: string;
  readonly feature: string;
  readonly period: Period;
  readonly start: string;
  readonly end: string;
  readonly asOf: string | null;
  readonly asOfRoundId: string | null;
  readonly asOfSeq: number;
  readonly changedMs: number;
  readonly version: bigint;
  readonly #parts: Omit<Parts, "vector">;
  readonly #bytes: Uint8Array;

  constructor(place: Place, { vector, ...parts }: Parts) {
    this.tableId = place.tableId;
    this.model = place.model;
    this.feature = place.feature;
    this.period = place.period;
    this.start = place.start;
    this.end = place.end;
    this.asOf = place.asOf;
    this.asOfRoundId = place.asOfRoundId;
    this.asOfSeq = place.asOfSeq;
    this.changedMs = place.changedMs;
    this.version = place.version;
    this.#parts = parts;
    this.#bytes = new Uint8Array(encodeSums(vector)); // a copy: a small buffer keeps the 8 kB that it is a part of
    sumsOf({ ...parts, vector }); // damaged sums are found when they are read
  }

  get sums() {
    return this.#decode().sums;
  }

  get references() {
    return this.#decode().references;
  }

  #decode(): FeatureSums {
    return sumsOf({ ...this.#parts, vector: decodeSums(this.#bytes) });
  }
}

/** The start of an hour, written as the database writes times. */
function timeOf(hour: number): string {
  return new Date(hour * 3_600_000).toISOString().replace(".000Z", ".0000000Z");
}
