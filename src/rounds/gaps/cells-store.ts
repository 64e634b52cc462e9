import type { Queryable, Sql } from "../../db/client.ts";

/** Minutes of a cell. */
const CELL_MINUTES = 5;
/** A comparison with the same hour of earlier days needs a week, and the current day. */
const KEPT_DAYS = 8;
/** A cell is summed this much after its end, for responses that arrived at its end. */
const SETTLE_SECONDS = 30;
const MARK = "round-cells";
const HOUR_MINUTES = 60;
/** A run begins five minutes before the mark, so one of five would never advance. */
const LEAST_MINUTES = 10;

/**
 * Creates {@link sumCells} for a caller with a deadline: after a failure it sums half as long a span, down to ten minutes,
 * and after a success twice as long again, because an hour that takes too long would fail each time.
 */
export function createCellSums(): (sql: Sql) => Promise<number> {
  let minutes = HOUR_MINUTES;
  return async (sql) => {
    try {
      const written = await sumCells(sql, minutes);
      minutes = Math.min(HOUR_MINUTES, minutes * 2);
      return written;
    } catch (error) {
      minutes = Math.max(LEAST_MINUTES, minutes / 2);
      throw error;
    }
  };
}

/**
 * Sums the rounds that polls received on time in cells of five minutes, and returns the number of rows written; 0,
 * after one short query, if every finished cell is summed. One call sums at most `minutes` and begins a day back if
 * nothing is summed yet: a caller that runs every few seconds catches up in minutes. The newest summed cell is summed
 * once more, for polls that were saved late; rounds whose payloads waited longer to be read are not counted.
 */
export async function sumCells(sql: Sql, minutes = HOUR_MINUTES): Promise<number> {
  const [span] = await sql<Span[]>`
    select
      span."from"::text as "from",
      least(span.over, span."from" + ${minutes} * interval '1 minute')::text as "to",
      date_trunc('hour', span."from", 'UTC') <> date_trunc('hour', span.over, 'UTC') as "isNewHour"
    from (
      select
        greatest(done.at - ${CELL_MINUTES} * interval '1 minute', cell.over - interval '24 hours') as "from",
        cell.over
      from (
        select date_bin(
          ${CELL_MINUTES} * interval '1 minute', clock_timestamp() - ${SETTLE_SECONDS} * interval '1 second', 'epoch'
        ) as over
      ) cell
      left join (select at from heartbeats where name = ${MARK}) done on true
      where done.at is null
        or done.at < cell.over
    ) span`;
  if (span === undefined) return 0;
  return sql.begin(async (tx) => {
    // a worker's connections plan for index look-ups; this query reads a time range
    await tx`
      select
        set_config('plan_cache_mode', 'auto', true),
        set_config('enable_bitmapscan', 'on', true),
        set_config('enable_hashjoin', 'on', true)`;
    const written = await saveCells(tx, span);
    if (span.isNewHour) await deleteOldCells(tx);
    await saveMark(tx, span.to);
    return written;
  });
}

interface Span {
  from: string;
  to: string;
  isNewHour: boolean;
}

async function saveCells(sql: Queryable, span: Span): Promise<number> {
  const written = await sql`
    with hours as (
      select
        hour,
        greatest(hour, span."from") as begins,
        least(hour + interval '1 hour', span."to") as ends,
        extract(epoch from greatest(hour, span."from") - hour)::integer / ${CELL_MINUTES * 60} as skipped
      from (select ${span.from}::text::timestamptz as "from", ${span.to}::text::timestamptz as "to") span
      cross join generate_series(
        date_trunc('hour', span."from", 'UTC'), span."to" - interval '1 minute', interval '1 hour'
      ) as hour
    ),
    found as (
      select
        r.table_id,
        hours.hour,
        floor(extract(epoch from r.received_at - hours.begins) / ${CELL_MINUTES * 60})::integer as n,
        count(*)::integer as rounds
      from rounds r
      join hours on r.received_at >= hours.begins and r.received_at < hours.ends
      where r.received_at >= ${span.from}::text::timestamptz -- as in hours, in a form for which the index is used
        and r.received_at < ${span.to}::text::timestamptz
        and not r.late
        and r.source = 0 -- poll
      group by 1, 2, 3
    )
    insert into round_cells (hour, table_id, rounds)
    select
      hours.hour,
      t.id,
      array_fill(0, array[hours.skipped]) || array_agg(coalesce(found.rounds, 0) order by cell.n)
    from hours
    cross join tables t
    cross join lateral generate_series(
      0, extract(epoch from hours.ends - hours.begins)::integer / ${CELL_MINUTES * 60} - 1
    ) as cell (n)
    left join found on found.table_id = t.id and found.hour = hours.hour and found.n = cell.n
    where t.enabled
    group by hours.hour, hours.skipped, t.id
    on conflict (hour, table_id) do update
    set rounds = (
      select
        round_cells.rounds[1:h.skipped]
          || array_fill(0, array[greatest(0, h.skipped - cardinality(round_cells.rounds))])
          || excluded.rounds[h.skipped + 1:]
      from hours h
      where h.hour = excluded.hour
    )`;
  return written.count;
}

async function deleteOldCells(sql: Queryable): Promise<void> {
  await sql`
    delete from round_cells
    where hour < now() - ${KEPT_DAYS} * interval '1 day'`;
}

async function saveMark(sql: Queryable, to: string): Promise<void> {
  await sql`
    insert into heartbeats (name, at)
    values (${MARK}, ${to}::text::timestamptz)
    on conflict (name) do update
    set at = excluded.at`;
}
