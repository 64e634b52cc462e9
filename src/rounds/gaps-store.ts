import type { Queryable, Transaction } from "../db/client.ts";
import type { OpenedGap } from "./round.ts";

/** A gap that was just opened. */
export interface NewGap {
  id: bigint;
  tableId: number;
}

/**
 * Opens gaps after the rounds of their answer were stored: what is known of a range, such as imported rounds, does not
 * count as missing, and a range without a missing round is filled at once. A gap before the same round is opened once.
 * `givenUp` says why none of them will be asked for.
 */
export async function openGaps(
  sql: Transaction,
  gaps: readonly (OpenedGap & { tableId: number })[],
  options: { givenUp: string | null } = { givenUp: null },
): Promise<NewGap[]> {
  if (gaps.length === 0) return [];
  const rows = gaps.map(({ tableId, range, afterRoundId, beforeRoundId }) => ({
    table_id: tableId,
    from_number: range === null ? null : String(range.from),
    to_number: range === null ? null : String(range.to),
    after_round_id: afterRoundId,
    before_round_id: beforeRoundId,
  }));
  const opened = await sql<(NewGap & { state: string })[]>`
    insert into gaps (
      table_id, from_number, to_number, missing, after_round_id, before_round_id, state, closed_at, reason
    )
    select
      g.table_id,
      g.from_number,
      g.to_number,
      m.missing,
      g.after_round_id,
      g.before_round_id,
      s.state,
      case when s.state <> 'open' then clock_timestamp() end,
      case when s.state = 'given_up' then ${options.givenUp}::text end
    from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as g (
      table_id integer, from_number bigint, to_number bigint, after_round_id text, before_round_id text
    )
    cross join lateral (
      select g.to_number - g.from_number + 1 - count(*) as missing
      from rounds r
      where r.table_id = g.table_id
        and r.round_number between g.from_number and g.to_number
    ) m
    cross join lateral (
      select
        case
          when m.missing = 0 then 'filled'
          when ${options.givenUp}::text is not null then 'given_up'
          else 'open'
        end as state
    ) s
    order by g.table_id, g.from_number
    on conflict on constraint gap_is_opened_once do nothing
    returning id, table_id as "tableId", state`;
  return opened.flatMap(({ id, tableId, state }) => (state === "open" ? [{ id, tableId }] : []));
}

/**
 * Counts rounds that came late into the gaps they were missing in, given up ones too, and closes those that miss
 * nothing any more. Gives the tables whose gaps changed.
 */
export async function fillGaps(
  sql: Transaction,
  late: readonly { tableId: number; number: bigint }[],
): Promise<number[]> {
  if (late.length === 0) return [];
  const rows = await sql<{ table_id: number }[]>`
    update gaps g
    set
      filled = g.filled + f.n,
      state = case when g.filled + f.n >= g.missing then 'filled' else g.state end,
      closed_at = case when g.filled + f.n >= g.missing then clock_timestamp() else g.closed_at end,
      reason = case when g.filled + f.n >= g.missing then null else g.reason end,
      closed_by = case when g.filled + f.n >= g.missing then null else g.closed_by end
    from (
      select
        open.id,
        count(*) as n
      from unnest(${late.map(({ tableId }) => tableId)}::integer[], ${late.map(({ number }) => String(number))}::bigint[])
        as l (table_id, number)
      join gaps open on open.table_id = l.table_id and l.number between open.from_number and open.to_number
      where open.state <> 'filled'
      group by open.id
    ) f
    where g.id = f.id
    returning g.table_id`;
  return rows.map(({ table_id }) => table_id);
}

/** The gaps of unknown size between two rounds of each table that nobody filled yet, its newest 1,000. */
export async function listUnknownGaps(
  sql: Queryable,
  tableIds: readonly number[],
): Promise<{ tableId: number; afterRoundId: string; beforeRoundId: string }[]> {
  return sql<{ tableId: number; afterRoundId: string; beforeRoundId: string }[]>`
    select g.table_id as "tableId", g.after_round_id as "afterRoundId", g.before_round_id as "beforeRoundId"
    from unnest(${[...tableIds]}::integer[]) as asked (table_id)
    cross join lateral (
      select *
      from gaps
      where table_id = asked.table_id
        and from_number is null
        and state <> 'filled'
      order by id desc
      limit 1000
    ) g
    order by g.id desc`;
}

/** Closes gaps of unknown size of which an answer showed both ends and all between. */
export async function closeUnknownGaps(
  sql: Transaction,
  gaps: readonly { tableId: number; beforeRoundId: string; found: number }[],
): Promise<void> {
  if (gaps.length === 0) return;
  await sql`
    update gaps g
    set
      filled = f.found,
      state = 'filled',
      closed_at = clock_timestamp(),
      reason = null,
      closed_by = null
    from unnest(
      ${gaps.map(({ tableId }) => tableId)}::integer[],
      ${gaps.map(({ beforeRoundId }) => beforeRoundId)}::text[],
      ${gaps.map(({ found }) => found)}::bigint[]
    ) as f (table_id, before_round_id, found)
    where g.table_id = f.table_id
      and g.before_round_id = f.before_round_id
      and g.state <> 'filled'`;
}
