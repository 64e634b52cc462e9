import type { Queryable } from "../../db/client.ts";
import { closeUnknownGapsStatement, fillGapsStatement } from "../../rounds/gaps/gaps-store.ts";
import {
  GAPS,
  QUARANTINE,
  ROUNDS,
  type ConflictRow,
  type GapRow,
  type QuarantineRow,
  type RoundRow,
} from "../compute/rows.ts";
import type { CompletePassRows as PassRows } from "../compute/state.ts";
import { RESULTS_LISTED, UNDECIDED_LISTED } from "../../rounds/conflict-limits.ts";
import { plainArray, textArray } from "./arrays.ts";
import type { Statement, TableRows } from "./table-rows.ts";

/** The largest integer: a response may repeat an item 5,000 times, so counts reach it. */
const MOST_TIMES = 2_147_483_647;

/** Stores rounds. */
export function insertRounds(sql: Queryable, r: TableRows<RoundRow>): Statement | null {
  if (r.rows.length === 0) return null;
  return sql`insert into rounds (table_id, ${ROUNDS.names}) ${ROUNDS.rows(r)}`;
}

/** Opens gaps, each once. */
export function openGaps(sql: Queryable, g: TableRows<GapRow>): Statement | null {
  if (g.rows.length === 0) return null;
  return sql`
    insert into gaps (table_id, ${GAPS.names}, state, closed_at)
    select *, case missing when 0 then 'filled' else 'open' end, case missing when 0 then clock_timestamp() end
    from (${GAPS.rows(g)}) g
    on conflict on constraint gap_is_opened_once do nothing`;
}

/** Fills gaps by the numbers of late rounds. */
export function fillGaps(sql: Queryable, late: TableRows<bigint>): Statement | null {
  return late.rows.length === 0 ? null : fillGapsStatement(sql, late.tableIds, plainArray(late.rows));
}

/** Closes gaps of unknown size that a response showed to be complete. */
export function closeUnknownGaps(sql: Queryable, shown: TableRows<PassRows["shownGaps"][number]>): Statement | null {
  if (shown.rows.length === 0) return null;
  return closeUnknownGapsStatement(
    sql,
    shown.tableIds,
    textArray(shown.rows.map(({ beforeRoundId }) => beforeRoundId)),
    plainArray(shown.rows.map(({ found }) => found)),
  );
}

/**
 * Stores other results of stored rounds, and counts how often each was received. Results beyond the limits of a round are
 * only counted, in its first undecided conflict.
 */
export function saveConflicts(sql: Queryable, c: TableRows<ConflictRow>): Statement | null {
  if (c.rows.length === 0) return null;
  return sql`
    with received as (${receivedConflicts(sql, c)}),
    limits as (
      select d.table_id, case when open.n < ${UNDECIDED_LISTED} then ${RESULTS_LISTED}::integer else 1 end as most
      from (select distinct table_id from received) d
      cross join lateral (
        select count(*) as n
        from (
          select from conflicts o where o.table_id = d.table_id and o.decided_at is null limit ${UNDECIDED_LISTED}
        ) first
      ) open
    ),
    placed as (
      select
        r.*,
        stored.is_known
          or row_number() over (partition by r.table_id, r.round_id, stored.is_known order by r.place) + stored.n <= l.most
          as is_listed,
        coalesce(stored.first, first_value(r.other) over (partition by r.table_id, r.round_id order by stored.is_known, r.place)) as first
      from received r
      join limits l on l.table_id = r.table_id
      cross join lateral (
        select
          count(*) filter (where s.decided_at is null) as n,
          coalesce(bool_or(s.other_hundredths = r.other), false) as is_known,
          (array_agg(s.other_hundredths order by s.id) filter (where s.decided_at is null))[1] as first
        from conflicts s
        where s.table_id = r.table_id
          and s.round_id = r.round_id
      ) stored
    )
    insert into conflicts as c (
      table_id, round_id, kept_hundredths, other_hundredths, other_raw, payload_received_at, times, further
    )
    select
      table_id, round_id, min(kept), other, max(other_raw), min(payload_received_at), sum(times), sum(further)
    from (
      select table_id, round_id, kept, other, other_raw, payload_received_at, times, 0 as further
      from placed
      where is_listed
      union all
      select table_id, round_id, kept, first, '', null, 0, times
      from placed
      where not is_listed
    ) counted
    group by table_id, round_id, other
    order by table_id, round_id, other
    on conflict on constraint conflict_is_listed_once do update
    set
      times = least(c.times::bigint + excluded.times, ${MOST_TIMES}),
      further = least(c.further::bigint + excluded.further, ${MOST_TIMES}),
      last_seen_at = clock_timestamp()`;
}

/** Conflicts, each once: a response may repeat one; both count, but a statement may change a row only once. */
function receivedConflicts(sql: Queryable, c: TableRows<ConflictRow>) {
  return sql`
    select
      table_id, round_id, min(kept) as kept, other, min(other_raw) as other_raw,
      min(payload_received_at) as payload_received_at, count(*) as times, min(place) as place
    from unnest(
      ${c.tableIds}::integer[],
      ${textArray(c.rows.map(({ roundId }) => roundId))}::text[],
      ${plainArray(c.rows.map(({ keptHundredths }) => keptHundredths))}::bigint[],
      ${plainArray(c.rows.map(({ otherHundredths }) => otherHundredths))}::bigint[],
      ${textArray(c.rows.map(({ otherRaw }) => otherRaw))}::text[],
      ${plainArray(c.rows.map((row) => row.payloadReceivedAt))}::timestamptz[]
    ) with ordinality as r (table_id, round_id, kept, other, other_raw, payload_received_at, place)
    group by table_id, round_id, other`;
}

/** Stores refused items, and counts how often each was received. */
export function saveQuarantine(sql: Queryable, q: TableRows<QuarantineRow>): Statement | null {
  if (q.rows.length === 0) return null;
  return sql`
    insert into quarantine as q (
      table_id, payload_received_at, code, reason, round_id, item, item_sha256, times
    )
    select table_id, min(payload_received_at), code, min(reason), min(round_id), min(item), item_sha256, count(*)
    from (${QUARANTINE.rows(q)}) r
    group by table_id, item_sha256, code
    order by table_id, item_sha256, code
    on conflict on constraint quarantined_item_is_listed_once do update
    set
      times = least(q.times::bigint + excluded.times, ${MOST_TIMES}),
      reason = excluded.reason,
      last_seen_at = clock_timestamp()`;
}
