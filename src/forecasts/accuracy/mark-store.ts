import type { Queryable, Transaction } from "../../db/client.ts";

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

/** A locked mark, the hour by the database clock, whether revisions are not added yet, and the table's known models. */
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
      or (m.hour < date_trunc('hour', now(), 'UTC') and not ${isAtRest(sql)})
      or (
        -- later than now: the clock was set back
        (m.updated_at <= now() - ${LEAST_SECONDS} * interval '1 second' or m.updated_at > now())
        and (
          h.last_seq > m.round_seq
          or exists (select from score_sets s where s.table_id = m.table_id and s.settled_seq > m.settled_seq)
          or exists (select from score_revisions r where r.table_id = m.table_id and r.revision > m.revision)
        )
      )
    )`;
}

/**
 * Whether no hour of the table of a mark `m` is in a period that moves: nothing leaves one, so its rows stay as they are
 * until its next round. The longest of these periods starts less than 90 days before the mark.
 */
function isAtRest(sql: Queryable) {
  return sql`
    not exists (
      select
      from accuracy_hours recent
      where recent.table_id = m.table_id
        and recent.hour >= m.hour - interval '90 days'
    )`;
}

/**
 * The hour with which the periods of a mark `m` end: of a table at rest the current one, though its mark stays. With a round
 * that is not added, the table is at rest no more: what the hours since the mark have is not known.
 */
export function shownHour(sql: Queryable) {
  return sql`
    case
      when m.hour < date_trunc('hour', now(), 'UTC')
        and m.round_seq >= (select last_seq from table_heads where table_id = m.table_id)
        and ${isAtRest(sql)}
        then date_trunc('hour', now(), 'UTC')
      else m.hour
    end`;
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
export function hourNumber(
  sql: Queryable,
  time: "m.hour" | "hour" | "clock_timestamp()" | "s.issued_at" | "r.received_at",
) {
  return sql`floor(extract(epoch from ${sql.unsafe(time)}) / 3600)::integer`;
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
