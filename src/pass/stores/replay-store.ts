import type { Queryable } from "../../db/client.ts";
import type { ReplayRound } from "../compute/state.ts";
import { fromDatabase, optionalTime } from "../compute/times.ts";

/** Rounds per replay query; a snapshot is at most 64 rounds old, a window covers at most 400. */
export const REPLAYED_AT_ONCE = 1_024;

interface StoredReplay {
  table_id: number;
  seq: bigint;
  ordinal: bigint | null;
  round_id: string;
  hundredths: bigint;
  requested_at: string | null;
  after_gap: boolean;
  late: boolean;
  verified: boolean | null;
  received_at: string;
  dispute: 0 | 3 | 5;
}

function replayColumns(sql: Queryable) {
  return sql`
    r.table_id, r.seq, r.ordinal, r.round_id, r.hundredths, r.requested_at::text, r.received_at::text, r.after_gap,
    r.late, r.verified,
    case
      when exists (select from conflicts c where c.table_id = r.table_id and c.round_id = r.round_id) then 3
      when exists (select from round_revision v where v.table_id = r.table_id and v.round_id = r.round_id) then 5
      else 0
    end as dispute`;
}

/**
 * The first rounds of tables to replay, by seq: all after the snapshot, and before it those on time after the oldest open
 * set. Of late rounds, such as a million of an import, those before the snapshot are in it and count for no set.
 */
export function listReplays(sql: Queryable, ids: readonly number[]) {
  return sql<StoredReplay[]>`
    select ${replayColumns(sql)}
    from table_heads h
    left join model_snapshots s on s.table_id = h.table_id and s.model = h.model
    left join forecast_sets f on f.table_id = h.table_id and f.cutoff_seq = h.open_sets[1] -- which are in order
    cross join lateral (
      (
        select *
        from rounds
        where table_id = h.table_id
          and seq > h.open_sets[1]
          and seq <= s.seq
          and not late
        order by seq
        limit greatest(s.ordinal - f.cutoff_ordinal, 0)
      )
      union all
      (
        select *
        from rounds
        where table_id = h.table_id
          and seq > coalesce(s.seq, 0)
        order by seq
        limit ${REPLAYED_AT_ONCE}
      )
      order by seq
      limit ${REPLAYED_AT_ONCE}
    ) r
    where h.table_id = any(${ids}::integer[])`;
}

/**
 * The rounds to replay after a seq, at most 1,024, by seq: for a replay that {@link loadTables} did not read whole. Up to
 * `snapshotSeq` only those on time.
 */
export async function listReplayRows(
  sql: Queryable,
  tableId: number,
  { afterSeq, snapshotSeq }: { afterSeq: bigint; snapshotSeq: bigint },
): Promise<ReplayRound[]> {
  const rows = await sql<StoredReplay[]>`
    select ${replayColumns(sql)}
    from rounds r
    where r.table_id = ${tableId}
      and r.seq > ${afterSeq}
      and (r.seq > ${snapshotSeq} or not r.late)
    order by r.seq
    limit ${REPLAYED_AT_ONCE}`;
  return rows.map(asReplay);
}

/** A round of a replay from its stored row. */
export function asReplay(row: StoredReplay): ReplayRound {
  return {
    seq: row.seq,
    ordinal: row.ordinal,
    roundId: row.round_id,
    hundredths: Number(row.hundredths),
    requestedAt: optionalTime(row.requested_at),
    afterGap: row.after_gap,
    late: row.late,
    verified: row.verified,
    receivedAt: fromDatabase(row.received_at),
    dispute: row.dispute,
  };
}
