import type { Queryable, Transaction } from "../db/client.ts";
import type { Decision } from "./revision.ts";

/** The newest on-time round of a table, by its number or its time. */
interface Newest {
  roundIds: "consecutive" | "opaque";
  roundId: string;
  number: bigint | null;
  /** ISO 8601. */
  occurredAt: string | null;
  /** Rounds were polled late since. */
  hasLate: boolean;
  /** The highest of their numbers; null if ids are opaque. */
  highestLate: bigint | null;
}

/** Finds the newest on-time round of a table and what was polled late since; null if the table has no rounds. */
export async function findNewest(sql: Queryable, tableId: number): Promise<Newest | null> {
  const [row] = await sql<Newest[]>`
    select
      t.round_ids as "roundIds",
      h.newest_round_id as "roundId",
      h.newest_number as number,
      utc_text(h.newest_occurred_at) as "occurredAt",
      late.has as "hasLate",
      late.highest as "highestLate"
    from table_heads h
    join tables t on t.id = h.table_id
    cross join lateral (
      select
        count(*) > 0 as has,
        max(case when t.round_ids = 'consecutive' then r.round_id::bigint end) as highest
      from rounds r
      where r.table_id = h.table_id
        and r.seq > h.newest_seq
        and r.source = 0
        and r.late
    ) late
    where h.table_id = ${tableId}
      and h.newest_round_id is not null`;
  return row ?? null;
}

/** Forgets the time of a table's newest round, with which rounds are compared. The caller holds the lock of the head. */
export async function clearNewestTime(tx: Transaction, tableId: number): Promise<void> {
  await tx`
    update table_heads
    set version = version + 1, changed_at = clock_timestamp(), newest_occurred_at = null, part_sha256 = null
    where table_id = ${tableId}`;
}

/**
 * Stores a reset, updates the head and gives up the gaps above its number; one that begins at or below it ends there, and
 * is open again unless an operator closed it. The caller holds the lock of the head.
 */
export async function saveReset(
  tx: Transaction,
  tableId: number,
  { newest, after, by, reason }: Decision & { newest: bigint; after: bigint },
): Promise<void> {
  await tx`
    with higher as materialized (
      select round_id
      from rounds
      where table_id = ${tableId}
        -- 0.4 s per million rounds, read from the index alone; the second condition is for leading zeros
        and (length(round_id), round_id collate "C") > (length(${String(after)}::text), ${String(after)}::text collate "C")
        and case when round_id ~ '^[0-9]{1,18}$' then round_id::bigint end > ${after}
    )
    insert into number_resets (table_id, after_seq, from_number, to_number, above, reason, decided_by)
    select
      h.table_id, h.last_seq, ${newest}, ${after},
      (
        select count(*)
        from higher
        join rounds r on r.table_id = h.table_id and r.round_id = higher.round_id
        where not exists (
          select
          from number_resets n
          where n.table_id = r.table_id
            and n.after_seq >= r.seq
            and n.to_number < r.round_id::bigint
        )
      ),
      ${reason}, ${by}
    from table_heads h
    where h.table_id = ${tableId}`;
  await tx`
    update table_heads
    set version = version + 1, changed_at = clock_timestamp(), newest_number = ${after}, part_sha256 = null
    where table_id = ${tableId}`;
  await endGaps(tx, tableId, { after, by, reason });
}

/** Ends the gaps that have numbers above that of a reset. */
async function endGaps(
  tx: Transaction,
  tableId: number,
  { after, by, reason }: Decision & { after: bigint },
): Promise<void> {
  await tx`
    update gaps g
    set
      to_number = ${after},
      filled = least(g.filled, counts.numbers - counts.absent), -- rounds above the new number no longer count
      missing = least(g.filled, counts.numbers - counts.absent) + counts.absent,
      state = case when counts.absent = 0 then 'filled' when g.closed_by is null then 'open' else g.state end,
      closed_at = case when counts.absent = 0 then clock_timestamp() when g.closed_by is not null then g.closed_at end,
      closed_by = case when counts.absent > 0 then g.closed_by end,
      reason = case when counts.absent > 0 and g.closed_by is not null then g.reason end,
      attempts = 0,
      cursor_round_id = null,
      cursor_page = 0,
      lease_until = '-infinity', -- of an attempt at the gap as it was
      next_attempt_at = clock_timestamp()
    from gaps cut
    cross join lateral (
      select
        count(*) as numbers,
        count(*) filter (
          where not exists (select from rounds where table_id = cut.table_id and round_id = number::text)
        ) as absent
      from generate_series(cut.from_number, ${after}::bigint) as number
    ) counts
    where g.id = cut.id
      and cut.table_id = ${tableId}
      and cut.state <> 'filled'
      and cut.from_number <= ${after}
      and cut.to_number > ${after}`;
  await tx`
    update gaps
    set
      state = 'given_up',
      closed_at = coalesce(closed_at, clock_timestamp()),
      closed_by = ${by},
      lease_until = '-infinity',
      reason = ${`the newest number was reset to ${after}: ${reason}`}
    where table_id = ${tableId}
      and state <> 'filled'
      and closed_by is null
      and to_number > ${after}`;
}
