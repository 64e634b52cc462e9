import type { Queryable, Transaction } from "../../db/client.ts";
import type { ScoreStatus } from "../score/judge.ts";
import { type TouchedHour } from "../score/score-store.ts";
import { type MarkedSpan, spansToJson } from "../score/tables-to-score-store.ts";

/** One forecast of an hour and what became of it; `status` is null while it waits for its rounds. */
export interface HourForecast {
  seq: bigint;
  feature: string;
  hash: string;
  cutoffSeq: bigint;
  horizon: number;
  pPpm: number[];
  basePpm: number[];
  status: ScoreStatus | null;
  outcome: number | null;
}

/** An hour of a table under a model, and those of its features that are asked for. */
export type AskedHour = Omit<TouchedHour, "feature"> & { features: readonly string[] };

/**
 * Every forecast of each hour with its newest score, in the order of the chain; with `asOf` the newest score that was
 * made before that time. Shared by the job that sums hours and by whoever checks them: both see the same facts.
 */
export async function listHourForecasts(
  sql: Queryable,
  hours: readonly AskedHour[],
  asOf: string | null = null,
): Promise<HourForecast[][]> {
  if (hours.length === 0) return [];
  // the order inside keeps the planner to one look-up by index an hour
  const rows = await sql<(HourForecast & { place: number })[]>`
    select asked.place, f.*
    from jsonb_to_recordset(${sql.json(askedToJson(hours))})
      as asked (place integer, table_id integer, model text, hour timestamptz, features text[])
    cross join lateral (
      ${forecastsWithScores(sql, asOf)}
      where f.table_id = asked.table_id
        and f.model = asked.model
        and f.feature = any(asked.features)
        and f.issue_hour = asked.hour
      order by f.seq
    ) f
    order by asked.place, f.seq`;
  return byPlace(hours, rows);
}

/** An hour of a feature, and the cutoff up to which its forecasts are known already. */
export type LaterPart = TouchedHour & { afterCutoff: bigint };

/** The forecasts of hours after a cutoff each with their newest scores, in the order of the chain. */
export async function listLaterForecasts(tx: Transaction, parts: readonly LaterPart[]): Promise<HourForecast[][]> {
  if (parts.length === 0) return [];
  const asked = parts.map(({ tableId, model, feature, hour, afterCutoff }, place) => ({
    place,
    table_id: tableId,
    model,
    feature,
    hour,
    after_cutoff: String(afterCutoff),
  }));
  // the order inside keeps the planner to the cutoffs of a feature, of which there are few after the last one known
  const rows = await tx<(HourForecast & { place: number })[]>`
    select asked.place, f.*
    from jsonb_to_recordset(${tx.json(asked)})
      as asked (place integer, table_id integer, model text, feature text, hour timestamptz, after_cutoff bigint)
    cross join lateral (
      ${forecastsWithScores(tx)}
      where f.table_id = asked.table_id
        and f.model = asked.model
        and f.feature = asked.feature
        and f.cutoff_seq > asked.after_cutoff
        and f.issue_hour = asked.hour
      order by f.cutoff_seq
    ) f
    order by asked.place, f.seq`;
  return byPlace(parts, rows);
}

/** Forecasts `f`, each with its newest score, or the newest made before `asOf`. */
function forecastsWithScores(sql: Queryable, asOf: string | null = null) {
  return sql`
    select
      f.seq, f.feature, f.hash, f.cutoff_seq as "cutoffSeq", f.horizon, f.p_ppm as "pPpm", f.base_ppm as "basePpm",
      s.status, s.outcome
    from forecasts f
    left join lateral (
      select status, outcome
      from scores
      where table_id = f.table_id
        and forecast_seq = f.seq
        ${asOf === null ? sql`` : sql`and scored_at < ${asOf}::text::timestamptz`}
      order by rev desc
      limit 1
    ) s on true`;
}

/** Hours as a statement takes them, with the place of each. */
export function askedToJson(hours: readonly AskedHour[]) {
  return hours.map(({ tableId, model, hour, features }, place) => ({
    place,
    table_id: tableId,
    model,
    hour,
    features: [...features],
  }));
}

/** Rows in lists of their own, one for each that was asked for. */
function byPlace<Row>(asked: readonly unknown[], rows: readonly (Row & { place: number })[]): Omit<Row, "place">[][] {
  const lists = asked.map((): Omit<Row, "place">[] => []);
  for (const { place, ...row } of rows) lists[place]?.push(row);
  return lists;
}

/** An on-time round, and whether its forecast was issued: one after the on-time round before it. */
export interface ReceivedRound {
  seq: bigint;
  issued: boolean;
}

/**
 * Of each hour the on-time rounds received in it while its model was live, after the table's first forecast and after
 * `afterSeq`, in seq order.
 */
export async function listReceivedRounds(
  sql: Queryable,
  hours: readonly (TouchedHour & { afterSeq?: bigint })[],
): Promise<ReceivedRound[][]> {
  if (hours.length === 0) return [];
  const asked = hours.map(({ tableId, model, feature, hour, afterSeq = 0n }, place) => ({
    place,
    table_id: tableId,
    model,
    feature,
    hour,
    after_seq: String(afterSeq),
  }));
  // the orders keep the planner to the time of receipt and to cutoffs, and away from all rounds and forecasts there ever were
  const rows = await sql<(ReceivedRound & { place: number })[]>`
    select asked.place, received.seq, received.issued
    from jsonb_to_recordset(${sql.json(asked)})
      as asked (place integer, table_id integer, model text, feature text, hour timestamptz, after_seq bigint)
    join tables t on t.id = asked.table_id
    cross join lateral (
      select
        r.seq,
        (
          select f.cutoff_seq
          from forecasts f
          where f.table_id = asked.table_id
            and f.model = asked.model
            and f.feature = asked.feature
            and f.cutoff_seq >= before.seq
          order by f.cutoff_seq
          limit 1
        ) is not distinct from before.seq as issued
      from (
        select seq
        from rounds
        where table_id = asked.table_id
          and not late
          and received_at >= asked.hour
          and received_at < asked.hour + interval '1 hour'
          and seq > asked.after_seq
          and seq > t.first_forecast_after_seq
        order by received_at, seq
        offset 0
      ) r
      cross join lateral (
        select seq
        from rounds
        where table_id = asked.table_id
          and not late
          and seq < r.seq
        order by seq desc
        limit 1
      ) before
      where live_model(asked.table_id, r.seq) = asked.model
    ) received
    order by asked.place, received.seq`;
  return byPlace(hours, rows);
}

/** The UTC hours in which the on-time rounds of spans were received, and the model that was live for them. */
export async function listReceivedHours(
  tx: Transaction,
  spans: readonly MarkedSpan[],
): Promise<{ tableId: number; model: string; hour: string }[]> {
  return tx<{ tableId: number; model: string; hour: string }[]>`
    select span.table_id as "tableId", r.model, utc_text(r.hour) as hour
    from jsonb_to_recordset(${tx.json(spansToJson(spans))}) as span (table_id integer, after_seq bigint, up_to_seq bigint)
    cross join lateral (
      select distinct live_model(table_id, seq) as model, date_trunc('hour', received_at, 'UTC') as hour
      from rounds
      where table_id = span.table_id
        and seq > span.after_seq
        and seq <= span.up_to_seq
        and not late
    ) r`;
}
