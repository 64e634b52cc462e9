import type { Queryable, Transaction } from "../../db/client.ts";
import { LEAST_SECONDS } from "./accuracy-store.ts";
import { portionsOf, type HourSpan } from "./hour-portions.ts";
import { referenceSumsFromJson, type ReferenceSums, type ReferenceSumsJson } from "./reference-sums.ts";
import { closesAt } from "./hour-marks-store.ts";
import type { TouchedHour } from "../score/score-store.ts";
import { sumsFromJson, type SumsJson } from "./sums-json.ts";
import type { Sums } from "./sums.ts";

/**
 * Hours of these tables that are over and whose row was last made while they were not, or that nothing keeps from being
 * final.
 */
export async function listHoursToClose(tx: Transaction, tableIds: readonly number[]): Promise<TouchedHour[]> {
  return tx<TouchedHour[]>`
    select table_id as "tableId", model, feature, utc_text(hour) as hour
    from accuracy_hours h
    where table_id = any(${[...tableIds]}::integer[])
      and not final
      and hour <= now() - interval '1 hour'
      and (
        updated_at < hour + interval '1 hour'
        or ${closesAt(tx, "h")} <= now() and sums -> 'counts' ->> 'pending' = '0'
      )`;
}

/** An hour of a feature, and what its forecasts sum up to. */
export interface SummedHour {
  hour: TouchedHour;
  sums: SumsJson;
  references: ReferenceSumsJson;
}

/**
 * Keeps the sums of hours, each of another hour or feature. A row that is final (its hour may be closed and nothing is
 * pending, so that it was made without a mark) is never overwritten: what changes later, such as a void, is appended with
 * the next rev. Nothing is written where nothing is new.
 */
export async function saveHours(tx: Transaction, hours: readonly SummedHour[]): Promise<void> {
  if (hours.length === 0) return;
  const rows = hours.map(({ hour: { tableId, model, feature, hour }, sums, references }) => ({
    table_id: tableId,
    model,
    feature,
    hour,
    sums,
    reference_sums: references,
  }));
  await tx`
    with made as (
      select
        x.*,
        clock.at,
        clock.at >= x.hour + interval '1 hour' as over,
        ${closesAt(tx, "x")} <= now() and x.sums -> 'counts' ->> 'pending' = '0' as final
      from (select clock_timestamp() as at offset 0) clock
      cross join jsonb_to_recordset(${tx.json(rows)}) as x (
        table_id integer, model text, feature text, hour timestamptz, sums jsonb, reference_sums jsonb
      )
    ),
    saved as (
      insert into accuracy_hours (table_id, model, feature, hour, rev, final, sums, reference_sums, updated_at)
      select
        made.table_id, made.model, made.feature, made.hour, coalesce(newest.rev + newest.final::integer, 1),
        made.final, made.sums, made.reference_sums, made.at
      from made
      left join lateral (
        select rev, final, sums, reference_sums, updated_at
        from accuracy_hours
        where table_id = made.table_id
          and model = made.model
          and feature = made.feature
          and hour = made.hour
        order by rev desc
        limit 1
      ) newest on true
      where newest.sums is null
        or newest.sums <> made.sums
        or newest.reference_sums <> made.reference_sums
        or (made.over and not newest.final and newest.updated_at < made.hour + interval '1 hour')
        or (made.final and not newest.final)
      on conflict (table_id, model, feature, hour, rev) do update
      set
        final = excluded.final,
        sums = excluded.sums,
        reference_sums = excluded.reference_sums,
        updated_at = excluded.updated_at
      returning table_id, model, feature, hour, updated_at
    )
    insert into accuracy_series as s (table_id, model, feature, first_hour, changed_at, due_at)
    select table_id, model, feature, min(hour), max(updated_at), max(updated_at)
    from saved
    group by table_id, model, feature
    on conflict (table_id, model, feature) do update
    set
      first_hour = least(s.first_hour, excluded.first_hour),
      changed_at = excluded.changed_at,
      due_at = least(s.due_at, greatest(excluded.changed_at, s.published_at + ${LEAST_SECONDS} * interval '1 second'))`;
}

/** Hours of a feature of a table. */
export interface SeriesSpan extends HourSpan {
  tableId: number;
  model: string;
  feature: string;
}

/** The newest sums of one hour, and which of the spans it was asked for in. */
export interface HourSums<S> {
  span: S;
  /** As every time is written, so that the order of the texts is the order of the hours. */
  hour: string;
  sums: Sums;
  references: ReferenceSums;
  updatedAt: string;
}

/** Reading the sums of so many hours takes some 20 ms, in which nothing else is done in this process. */
const HOURS_PER_READ = 1000;

/** The newest sums of each hour of spans, in no certain order, some hours at a time. */
export async function* readHourSums<S extends SeriesSpan>(
  sql: Queryable,
  spans: readonly S[],
): AsyncGenerator<HourSums<S>[]> {
  for (const portion of portionsOf(spans, HOURS_PER_READ)) {
    const asked = portion.map(({ span, start, end }, place) => ({
      place,
      table_id: span.tableId,
      model: span.model,
      feature: span.feature,
      starts: start,
      ends: end,
    }));
    const rows = await sql<
      (Record<"hour" | "updatedAt", string> & { place: number; sums: unknown; references: unknown })[]
    >`
      select
        asked.place,
        utc_text(h.hour) as hour,
        h.sums,
        h.reference_sums as "references",
        utc_text(h.updated_at) as "updatedAt"
      from jsonb_to_recordset(${sql.json(asked)}) as asked (
        place integer, table_id integer, model text, feature text, starts timestamptz, ends timestamptz
      )
      cross join lateral (
        select distinct on (hour) hour, sums, reference_sums, updated_at
        from accuracy_hours
        where table_id = asked.table_id
          and model = asked.model
          and feature = asked.feature
          and hour >= asked.starts
          and hour < asked.ends
        order by hour, rev desc
      ) h`;
    yield rows.flatMap(({ place, hour, sums, references, updatedAt }) => {
      const span = portion[place]?.span;
      if (span === undefined) return [];
      return [{ span, hour, sums: sumsFromJson(sums), references: referenceSumsFromJson(references), updatedAt }];
    });
  }
}
