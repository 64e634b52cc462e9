import type { Transaction } from "../../db/client.ts";
import type { DueWindow } from "./judge.ts";
import type { DueForecastRow, TouchedHour } from "./score-store.ts";
import { type MarkedSpan, spansToJson } from "./tables-to-score-store.ts";

/** A window that has ended and has no score yet. */
export type DueWindowRow = DueForecastRow & DueWindow;

/**
 * Windows of tables that wait for their score and have ended by now, in the order of the chains.
 *
 * `spans` are the rounds since these windows were last looked at. Only those are looked at whose rounds may all be there,
 * or of whose table one of these rounds may end a window before its time or any round is disputed. What this should
 * overlook ends with the last round of its window, as what it is.
 */
export async function listDueWindows(
  tx: Transaction,
  spans: readonly MarkedSpan[],
  limit: number,
): Promise<DueWindowRow[]> {
  // the orders keep the planner to the primary keys while it knows nothing of the tables yet; those of one table are read by
  // one look-up
  return tx<DueWindowRow[]>`
    select
      f.table_id as "tableId",
      f.seq,
      f.model,
      f.feature,
      utc_text(f.issue_hour) as "issueHour",
      utc_text(f.issued_at) as "issuedAt",
      f.cutoff_seq as "cutoffSeq",
      f.p_ppm as "pPpm",
      f.base_ppm as "basePpm",
      span.settled_seq as "settledSeq",
      utc_text(span.requested_at) as "requestedAt",
      span.status,
      span.hit
    from (
      select
        looked.table_id,
        array(
          select seq
          from open_forecasts
          where table_id = looked.table_id
            and feature like 'window:%'
            and (looked.may_end_early or looked.up_to_seq - cutoff_seq >= horizon)
          order by seq
        ) as seqs
      from (
        select
          fresh.*,
          exists (select from disputed_rounds where table_id = fresh.table_id)
          or exists (
            select
            from (
              select *
              from rounds
              where table_id = fresh.table_id
                and seq > fresh.after_seq
                and seq <= fresh.up_to_seq
                and not late
              order by seq
              offset 0
            ) r
            left join lateral (
              select round_number
              from rounds
              where table_id = fresh.table_id
                and seq < r.seq
                and not late
              order by seq desc
              limit 1
            ) before on true
            where r.after_gap
              or r.requested_at is null
              or t.round_ids = 'consecutive' and r.round_number is distinct from before.round_number + 1
              or r.requested_at <= (
                select f.issued_at
                from forecasts f
                where f.table_id = fresh.table_id
                  and f.cutoff_seq < r.seq
                order by f.seq desc
                limit 1
              )
          ) as may_end_early
        from jsonb_to_recordset(${tx.json(spansToJson(spans))})
          as fresh (table_id integer, after_seq bigint, up_to_seq bigint)
        join tables t on t.id = fresh.table_id
        offset 0
      ) looked
      offset 0
    ) ending
    cross join lateral (
      select *
      from forecasts
      where table_id = ending.table_id
        and seq = any(ending.seqs)
      order by seq
      offset 0
    ) f
    cross join lateral window_span(
      f.table_id, f.cutoff_seq, f.target_round_id, f.horizon, f.issued_at, split_part(f.feature, ':', 2), true
    ) span
    where span.settled_seq is not null
    order by f.table_id, f.seq
    limit ${limit}`;
}

/** Hours of these tables in which a window was issued that waits and is not counted as pending yet. */
export async function listUncountedHours(tx: Transaction, tableIds: readonly number[]): Promise<TouchedHour[]> {
  return tx<TouchedHour[]>`
    select o.table_id as "tableId", o.model, o.feature, utc_text(o.issue_hour) as hour
    from open_forecasts o
    where o.table_id = any(${[...tableIds]}::integer[])
      and o.feature like 'window:%'
      and not exists (
        select
        from accuracy_hours h
        where h.table_id = o.table_id
          and h.model = o.model
          and h.feature = o.feature
          and h.hour = o.issue_hour
          and (h.sums -> 'last' ->> 'seq')::bigint >= o.seq
      )`;
}
