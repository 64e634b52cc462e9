import type { Queryable } from "../../db/client.ts";
import type { Selected } from "../columns.ts";
import { REPLAYED_ROUNDS, type ReplayedRow } from "../compute/rows.ts";
import type { ReplayRound } from "../compute/state.ts";

/** Rounds per replay query; a snapshot is at most 64 rounds old, a window covers at most 400. */
export const REPLAYED_AT_ONCE = 1_024;

type StoredReplay = Selected<ReplayedRow> & Pick<ReplayRound, "dispute">;

const SELECTED = REPLAYED_ROUNDS.selectFrom("r");

function disputeOf(sql: Queryable) {
  return sql`
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
  return sql<(StoredReplay & { tableId: number })[]>`
    select r.table_id as "tableId", ${SELECTED}, ${disputeOf(sql)}
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
    select ${SELECTED}, ${disputeOf(sql)}
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
  return { ...REPLAYED_ROUNDS.parse(row), dispute: row.dispute };
}
