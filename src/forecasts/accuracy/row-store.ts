import type { Queryable, Transaction } from "../../db/client.ts";
import type { HourKey } from "./add-facts.ts";
import { hourNumber } from "./mark-store.ts";
import type { Period, Span } from "./periods.ts";

/** A stored row of an hour. */
export interface StoredHour extends HourKey {
  tableId: number;
  sums: Uint8Array;
}

/** The hour rows with these keys; missing ones are left out. */
export async function readHours(
  sql: Queryable,
  keys: readonly (HourKey & { tableId: number })[],
): Promise<StoredHour[]> {
  if (keys.length === 0) return [];
  return sql<StoredHour[]>`
    select a.table_id as "tableId", requested.hour, a.feature, a.model, a.sums
    from unnest(
      ${keys.map(({ tableId }) => tableId)}::integer[],
      ${keys.map(({ hour }) => hour)}::integer[],
      ${keys.map(({ feature }) => feature)}::smallint[],
      ${keys.map(({ model }) => model)}::text[]
    ) as requested (table_id, hour, feature, model)
    join accuracy_hours a
      on a.table_id = requested.table_id
      and a.hour = to_timestamp(requested.hour * 3600::bigint)
      and a.feature = requested.feature
      and a.model = requested.model`;
}

/** A part of a table's hours or days. */
export interface TableSpan extends Span {
  tableId: number;
}

/** The hour rows in spans of tables. */
export async function listHours(sql: Queryable, spans: readonly TableSpan[]): Promise<StoredHour[]> {
  if (spans.length === 0) return [];
  return sql<StoredHour[]>`
    select a.table_id as "tableId", ${hourNumber(sql, "hour")} as hour, a.feature, a.model, a.sums
    from unnest(
      ${spans.map(({ tableId }) => tableId)}::integer[],
      ${spans.map(({ from }) => from)}::integer[],
      ${spans.map(({ to }) => to)}::integer[]
    ) as requested (table_id, first, past)
    join accuracy_hours a
      on a.table_id = requested.table_id
      and a.hour >= to_timestamp(requested.first * 3600::bigint)
      and a.hour < to_timestamp(requested.past * 3600::bigint)`;
}

/** A stored row of a day. */
export interface StoredDay extends Omit<HourKey, "hour"> {
  tableId: number;
  day: number;
  sums: Uint8Array;
}

/** The day rows in spans of tables; spans of a table do not overlap. */
export async function listDays(sql: Queryable, spans: readonly TableSpan[]): Promise<StoredDay[]> {
  if (spans.length === 0) return [];
  return sql<StoredDay[]>`
    select a.table_id as "tableId", a.day - date '1970-01-01' as day, a.feature, a.model, a.sums
    from unnest(
      ${spans.map(({ tableId }) => tableId)}::integer[],
      ${spans.map(({ from }) => from)}::integer[],
      ${spans.map(({ to }) => to)}::integer[]
    ) as requested (table_id, first, past)
    join accuracy_days a
      on a.table_id = requested.table_id
      and a.day >= date '1970-01-01' + requested.first
      and a.day < date '1970-01-01' + requested.past`;
}

/** A stored row of a period. */
export interface StoredPeriod extends Omit<HourKey, "hour"> {
  tableId: number;
  period: Period;
  sums: Uint8Array;
}

/** All period rows of tables. */
export async function listPeriods(sql: Queryable, tableIds: readonly number[]): Promise<StoredPeriod[]> {
  if (tableIds.length === 0) return [];
  return sql<StoredPeriod[]>`
    select table_id as "tableId", feature, model, period, sums
    from accuracy_periods
    where table_id = any(${[...tableIds]}::integer[])`;
}

/** Inserts or replaces hour rows. */
export async function saveHours(tx: Transaction, rows: readonly StoredHour[]): Promise<void> {
  if (rows.length === 0) return;
  await tx`
    insert into accuracy_hours (table_id, hour, feature, model, sums)
    select table_id, to_timestamp(hour * 3600::bigint), feature, model, sums
    from unnest(
      ${rows.map(({ tableId }) => tableId)}::integer[],
      ${rows.map(({ hour }) => hour)}::integer[],
      ${rows.map(({ feature }) => feature)}::smallint[],
      ${rows.map(({ model }) => model)}::text[],
      ${rows.map(({ sums }) => sums)}::bytea[]
    ) as x (table_id, hour, feature, model, sums)
    on conflict (table_id, hour, feature, model) do update
    set sums = excluded.sums`;
}

/** Inserts or replaces day rows. */
export async function saveDays(tx: Transaction, rows: readonly StoredDay[]): Promise<void> {
  if (rows.length === 0) return;
  await tx`
    insert into accuracy_days (table_id, day, feature, model, sums)
    select table_id, date '1970-01-01' + day, feature, model, sums
    from unnest(
      ${rows.map(({ tableId }) => tableId)}::integer[],
      ${rows.map(({ day }) => day)}::integer[],
      ${rows.map(({ feature }) => feature)}::smallint[],
      ${rows.map(({ model }) => model)}::text[],
      ${rows.map(({ sums }) => sums)}::bytea[]
    ) as x (table_id, day, feature, model, sums)
    on conflict (table_id, day, feature, model) do update
    set sums = excluded.sums`;
}

/** Inserts or replaces period rows, under the locks of the marks, which are moved after it. */
export async function savePeriods(tx: Transaction, rows: readonly StoredPeriod[]): Promise<void> {
  if (rows.length === 0) return;
  await tx`
    insert into accuracy_periods (table_id, feature, model, period, sums, version)
    select x.*, m.version + 1
    from unnest(
      ${rows.map(({ tableId }) => tableId)}::integer[],
      ${rows.map(({ feature }) => feature)}::smallint[],
      ${rows.map(({ model }) => model)}::text[],
      ${rows.map(({ period }) => period)}::text[],
      ${rows.map(({ sums }) => sums)}::bytea[]
    ) as x (table_id, feature, model, period, sums)
    join accuracy_marks m on m.table_id = x.table_id
    on conflict (table_id, feature, model, period) do update
    set sums = excluded.sums, version = excluded.version`;
}

/** A model of a table, and the first set that it issued. */
export interface NewModel {
  tableId: number;
  model: string;
  cutoffSeq: bigint;
  hour: number;
}

/** Stores models with the palette and the hour of their first set. */
export async function saveModels(tx: Transaction, models: readonly NewModel[]): Promise<void> {
  if (models.length === 0) return;
  await tx`
    insert into accuracy_models (table_id, model, palette, first_hour)
    select x.table_id, x.model, r.palette, to_timestamp(x.hour * 3600::bigint)
    from unnest(
      ${models.map(({ tableId }) => tableId)}::integer[],
      ${models.map(({ model }) => model)}::text[],
      ${models.map(({ cutoffSeq }) => cutoffSeq)}::bigint[],
      ${models.map(({ hour }) => hour)}::integer[]
    ) as x (table_id, model, cutoff_seq, hour)
    join rounds r on r.table_id = x.table_id and r.seq = x.cutoff_seq
    on conflict (table_id, model) do nothing`;
}
