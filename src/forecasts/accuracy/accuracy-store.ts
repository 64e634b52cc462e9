import type { Queryable, Transaction } from "../../db/client.ts";
import type { HourKey } from "./add-facts.ts";
import type { RevisionFacts, RoundFacts, ScoreFacts, SetFacts } from "./facts.ts";
import type { Period, Span } from "./periods.ts";

/** The sums of a table change at most this often. */
const LEAST_SECONDS = 10;

/** The last rows of a table that were added; hours are counted from 1970. */
export interface Mark {
  tableId: number;
  version: bigint;
  setSeq: bigint;
  settledSeq: bigint;
  revision: bigint;
  roundSeq: bigint;
  hour: number;
}

/** A locked mark, the hour by the database clock, and whether the table has rows that are not added yet. */
export interface LockedMark extends Mark {
  currentHour: number;
  hasRevisions: boolean;
  models: string[];
}

/** Tables of a house with rows to add or a new hour, except those changed within the last {@link LEAST_SECONDS}. */
export async function listTablesToAdd(sql: Queryable, house: string): Promise<{ id: number; name: string }[]> {
  return sql<{ id: number; name: string }[]>`
    select t.id, t.house_id || '/' || t.game || '/' || t.market as name
    from tables t
    join table_heads h on h.table_id = t.id
    left join accuracy_marks m on m.table_id = t.id
    where t.house_id = ${house}
      and ${isDue(sql)}
    order by t.id`;
}

/** Houses with a table that {@link listTablesToAdd} lists. */
export async function listHousesToAdd(sql: Queryable): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select distinct t.house_id as house
    from tables t
    join table_heads h on h.table_id = t.id
    left join accuracy_marks m on m.table_id = t.id
    where ${isDue(sql)}
    order by house`;
}

function isDue(sql: Queryable) {
  return sql`
    h.set_seq is not null
    and (
      m.table_id is null
      or m.hour < date_trunc('hour', now(), 'UTC')
      or (
        m.updated_at <= now() - ${LEAST_SECONDS} * interval '1 second'
        and (
          h.last_seq > m.round_seq
          or exists (select from score_sets s where s.table_id = m.table_id and s.settled_seq > m.settled_seq)
          or exists (select from score_revisions r where r.table_id = m.table_id and r.revision > m.revision)
        )
      )
    )`;
}

/** Creates a mark at the first forecast of each table that has forecasts and no mark. */
export async function createMarks(tx: Transaction, tableIds: readonly number[]): Promise<void> {
  await tx`
    insert into accuracy_marks (table_id, round_seq, hour)
    select h.table_id, first.cutoff_seq, date_trunc('hour', now(), 'UTC')
    from table_heads h
    cross join lateral (
      select cutoff_seq
      from forecast_sets
      where table_id = h.table_id
      order by cutoff_seq
      limit 1
    ) first
    where h.table_id = any(${[...tableIds]}::integer[])
    order by h.table_id
    on conflict (table_id) do nothing`;
}

/** Locks the marks of tables, in id order, until the transaction ends. */
export async function lockMarks(tx: Transaction, tableIds: readonly number[]): Promise<LockedMark[]> {
  return tx<LockedMark[]>`
    select
      m.table_id as "tableId", m.version, m.set_seq as "setSeq", m.settled_seq as "settledSeq", m.revision,
      m.round_seq as "roundSeq",
      ${hourNumber(tx, "m.hour")} as hour,
      ${hourNumber(tx, "clock_timestamp()")} as "currentHour",
      exists (select from score_revisions r where r.table_id = m.table_id and r.revision > m.revision) as "hasRevisions",
      array(select model from accuracy_models a where a.table_id = m.table_id) as models
    from accuracy_marks m
    where m.table_id = any(${[...tableIds]}::integer[])
    order by m.table_id
    for no key update of m`;
}

/** A time as the number of its UTC hour. */
function hourNumber(sql: Queryable, time: "m.hour" | "hour" | "clock_timestamp()" | "s.issued_at" | "r.received_at") {
  return sql`floor(extract(epoch from ${sql.unsafe(time)}) / 3600)::integer`;
}

/** Range of rows of a table to read: after one number, up to another if it is given. */
export interface After {
  tableId: number;
  after: bigint;
  upTo?: bigint | undefined;
}

function afterArrays(tables: readonly After[]) {
  return {
    ids: tables.map(({ tableId }) => tableId),
    after: tables.map(({ after }) => after),
    upTo: tables.map(({ upTo }) => upTo ?? null),
  };
}

/** The first `limit` score sets of each table after a settled seq, in their order. */
export async function listScores(
  sql: Queryable,
  tables: readonly After[],
  limit: number,
): Promise<(ScoreFacts & { tableId: number })[]> {
  const { ids, after, upTo } = afterArrays(tables);
  const rows = await sql<
    {
      tableId: number;
      settledSeq: bigint;
      cutoffSeqs: bigint[];
      features: number[];
      reasons: number[];
      outcomes: (number | null)[];
    }[]
  >`
    select s.table_id as "tableId", s.settled_seq as "settledSeq", s.cutoff_seqs as "cutoffSeqs", s.features, s.reasons,
      s.outcomes
    from unnest(${ids}::integer[], ${after}::bigint[], ${upTo}::bigint[]) as requested (table_id, after, up_to)
    cross join lateral (
      select *
      from score_sets
      where table_id = requested.table_id
        and settled_seq > requested.after
        and settled_seq <= coalesce(requested.up_to, 9223372036854775807)
      order by settled_seq
      limit ${limit}
    ) s
    order by s.table_id, s.settled_seq`;
  return rows.map(({ tableId, settledSeq, cutoffSeqs, features, reasons, outcomes }) => ({
    tableId,
    settledSeq,
    settlements: cutoffSeqs.map((cutoffSeq, place) => ({
      cutoffSeq,
      feature: features[place]!,
      reason: reasons[place]!,
      outcome: outcomes[place]!,
    })),
  }));
}

/** The first `limit` revisions of each table after a number, each with the score that it replaces. */
export async function listRevisions(
  sql: Queryable,
  tables: readonly After[],
  limit: number,
): Promise<(RevisionFacts & { tableId: number })[]> {
  const { ids, after, upTo } = afterArrays(tables);
  const rows = await sql<
    (Pick<RevisionFacts, "revision" | "cutoffSeq" | "feature"> & {
      tableId: number;
      reason: number;
      outcome: number | null;
      reasonBefore: number | null;
      outcomeBefore: number | null;
    })[]
  >`
    select
      r.table_id as "tableId", r.revision, r.cutoff_seq as "cutoffSeq", r.feature, r.reason, r.outcome,
      before.reason as "reasonBefore", before.outcome as "outcomeBefore"
    from unnest(${ids}::integer[], ${after}::bigint[], ${upTo}::bigint[]) as requested (table_id, after, up_to)
    cross join lateral (
      select *
      from score_revisions
      where table_id = requested.table_id
        and revision > requested.after
        and revision <= coalesce(requested.up_to, 9223372036854775807)
      order by revision
      limit ${limit}
    ) r
    left join lateral (
      select reason, outcome
      from score_revisions
      where r.rev > 2
        and table_id = r.table_id
        and forecast_seq = r.forecast_seq
        and rev = r.rev - 1
      union all
      (
        select s.reasons[place.at], s.outcomes[place.at]
        from score_sets s
        cross join lateral (select array_position(s.forecast_seqs, r.forecast_seq) as at) place
        where r.rev = 2
          and s.table_id = r.table_id
          and s.settled_seq > r.cutoff_seq
          and place.at is not null
        order by s.settled_seq
        limit 1
      )
    ) before on true
    order by r.table_id, r.revision`;
  return rows.map(({ reason, outcome, reasonBefore, outcomeBefore, ...row }) => ({
    ...row,
    before: reasonBefore === null ? null : { reason: reasonBefore, outcome: outcomeBefore },
    after: { reason, outcome },
  }));
}

/**
 * The first `limit` rounds of each table after a seq that count for coverage: all polled rounds, and others that were on
 * time. `lastSeq` is the newest stored seq of the table at that moment; not the head's, since a mark that followed a
 * damaged head would skip rounds forever.
 */
export async function listRounds(
  sql: Queryable,
  tables: readonly After[],
  limit: number,
): Promise<{ tableId: number; lastSeq: bigint; rounds: RoundFacts[] }[]> {
  const { ids, after, upTo } = afterArrays(tables);
  const rows = await sql<
    { tableId: number; lastSeq: bigint; seq: bigint | null; ordinal: bigint | null; hour: number | null }[]
  >`
    select newest.table_id as "tableId", newest.seq as "lastSeq", r.seq, r.ordinal, r.hour
    from unnest(${ids}::integer[], ${after}::bigint[], ${upTo}::bigint[]) as requested (table_id, after, up_to)
    cross join lateral (
      select table_id, seq
      from rounds
      where table_id = requested.table_id
      order by seq desc
      limit 1
    ) newest
    left join lateral (
      select r.seq, r.ordinal, ${hourNumber(sql, "r.received_at")} as hour
      from rounds r
      where r.table_id = requested.table_id
        and r.seq > requested.after
        and r.seq <= coalesce(requested.up_to, 9223372036854775807)
        and (not r.late or r.source = 0)
      order by r.seq
      limit ${limit}
    ) r on true
    order by newest.table_id, r.seq`;
  return [...Map.groupBy(rows, ({ tableId }) => tableId)].map(([tableId, own]) => ({
    tableId,
    lastSeq: own[0]!.lastSeq,
    rounds: own.flatMap(({ seq, ordinal, hour }) => (seq === null || hour === null ? [] : [{ seq, ordinal, hour }])),
  }));
}

/** A set and the palette of its round. */
export type SetRow = SetFacts & { tableId: number };

const setColumns = (sql: Queryable) => sql`
  s.table_id as "tableId", s.cutoff_seq as "cutoffSeq", s.cutoff_ordinal as "cutoffOrdinal", s.model,
  ${hourNumber(sql, "s.issued_at")} as hour,
  s.features, s.horizons, s.p_ppm as "pPpm", s.base_ppm as "basePpm", s.reference_ppm as "referencePpm", s.ends,
  ${isSealed(sql)} as "isSealed"`;

/** The witness's time has whole seconds, so its signature may be up to a second younger. */
const isSealed = (sql: Queryable) => sql`
  exists (
    select
    from log_entries e
    cross join lateral (
      select cosigned_at
      from log_checkpoints
      where log_id = e.log_id
        and size > e.index
        and cosigned_at is not null
      order by size
      limit 1
    ) c
    cross join lateral (
      select requested_at
      from rounds
      where table_id = s.table_id
        and seq > s.cutoff_seq
        and ordinal is not null
      order by seq
      limit 1
    ) r
    where e.table_id = s.table_id
      and e.forecast_seq = s.first_seq + cardinality(s.features) - 1
      and c.cosigned_at + interval '1 second' <= r.requested_at
  )`;

/** The first `limit` sets of each table after a cutoff, in their order. */
export async function listSets(sql: Queryable, tables: readonly After[], limit: number): Promise<SetRow[]> {
  const { ids, after, upTo } = afterArrays(tables);
  return sql<SetRow[]>`
    select ${setColumns(sql)}
    from unnest(${ids}::integer[], ${after}::bigint[], ${upTo}::bigint[]) as requested (table_id, after, up_to)
    cross join lateral (
      select *
      from forecast_sets
      where table_id = requested.table_id
        and cutoff_seq > requested.after
        and cutoff_seq <= coalesce(requested.up_to, 9223372036854775807)
      order by cutoff_seq
      limit ${limit}
    ) s
    order by s.table_id, s.cutoff_seq`;
}

/** Sets by their keys; missing ones are left out. */
export async function readSets(
  sql: Queryable,
  keys: readonly { tableId: number; cutoffSeq: bigint }[],
): Promise<SetRow[]> {
  if (keys.length === 0) return [];
  return sql<SetRow[]>`
    select ${setColumns(sql)}
    from unnest(
      ${keys.map(({ tableId }) => tableId)}::integer[],
      ${keys.map(({ cutoffSeq }) => cutoffSeq)}::bigint[]
    ) as requested (table_id, cutoff_seq)
    join forecast_sets s on s.table_id = requested.table_id and s.cutoff_seq = requested.cutoff_seq`;
}

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

/** Inserts or replaces period rows. */
export async function savePeriods(tx: Transaction, rows: readonly StoredPeriod[]): Promise<void> {
  if (rows.length === 0) return;
  await tx`
    insert into accuracy_periods (table_id, feature, model, period, sums)
    select *
    from unnest(
      ${rows.map(({ tableId }) => tableId)}::integer[],
      ${rows.map(({ feature }) => feature)}::smallint[],
      ${rows.map(({ model }) => model)}::text[],
      ${rows.map(({ period }) => period)}::text[],
      ${rows.map(({ sums }) => sums)}::bytea[]
    )
    on conflict (table_id, feature, model, period) do update
    set sums = excluded.sums`;
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

/** Advances locked marks. */
export async function moveMarks(tx: Transaction, marks: readonly Mark[]): Promise<void> {
  if (marks.length === 0) return;
  await tx`
    update accuracy_marks m
    set
      version = m.version + 1,
      set_seq = x.set_seq,
      settled_seq = x.settled_seq,
      revision = x.revision,
      round_seq = x.round_seq,
      hour = to_timestamp(x.hour * 3600::bigint),
      updated_at = clock_timestamp()
    from unnest(
      ${marks.map(({ tableId }) => tableId)}::integer[],
      ${marks.map(({ setSeq }) => setSeq)}::bigint[],
      ${marks.map(({ settledSeq }) => settledSeq)}::bigint[],
      ${marks.map(({ revision }) => revision)}::bigint[],
      ${marks.map(({ roundSeq }) => roundSeq)}::bigint[],
      ${marks.map(({ hour }) => hour)}::integer[]
    ) as x (table_id, set_seq, settled_seq, revision, round_seq, hour)
    where m.table_id = x.table_id`;
}

/** The mark of a table without a lock, null before its first forecast is added. */
export async function findMark(sql: Queryable, tableId: number): Promise<Mark | null> {
  const [mark] = await sql<Mark[]>`
    select
      table_id as "tableId", version, set_seq as "setSeq", settled_seq as "settledSeq", revision, round_seq as "roundSeq",
      ${hourNumber(sql, "hour")} as hour
    from accuracy_marks
    where table_id = ${tableId}`;
  return mark ?? null;
}
