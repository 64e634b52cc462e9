import type { Queryable } from "../../db/client.ts";
import type { Color } from "../../rounds/colors.ts";
import type { ForecastSetRow } from "../compute/rows.ts";
import { fromDatabase } from "../compute/times.ts";

/** A forecast set as the driver returns it; see {@link asSet}. */
export interface StoredSet {
  table_id: number;
  cutoff_seq: bigint;
  cutoff_ordinal: bigint;
  model: string;
  first_seq: bigint;
  issued_at: string;
  pause_ms: number;
  absent_at: string;
  cutoff_round_id: string;
  history_hash: Buffer;
  target_round_id: string | null;
  features: number[];
  horizons: number[];
  p_ppm: number[];
  base_ppm: number[];
  reference_ppm: (number | null)[];
  ends: bigint[];
  prev_hash: Buffer;
  hashes: Buffer;
}

/** The columns of a forecast set `s`. */
export function setColumns(sql: Queryable) {
  return sql`
    s.table_id, s.cutoff_seq, s.cutoff_ordinal, s.model, s.first_seq, s.issued_at::text, s.pause_ms, s.absent_at::text,
    s.cutoff_round_id, s.history_hash, s.target_round_id, s.features, s.horizons, s.p_ppm, s.base_ppm, s.reference_ppm,
    s.ends, s.prev_hash, s.hashes`;
}

/** The open sets and the newest one of tables, by cutoff, and the bands of cutoffs with another palette than the head. */
export function listOpenSets(sql: Queryable, ids: readonly number[]) {
  return sql<(StoredSet & { other_bands: Color[] | null })[]>`
    select
      ${setColumns(sql)},
      (
        select p.bands
        from rounds c
        join palettes p on p.id = c.palette
        where c.table_id = h.table_id
          and c.seq = s.cutoff_seq
          and c.palette <> h.palette
      ) as other_bands
    from table_heads h
    cross join lateral (
      select *
      from forecast_sets
      where table_id = h.table_id
        and cutoff_seq = any(h.open_sets || h.set_seq)
      order by cutoff_seq
    ) s
    where h.table_id = any(${ids}::integer[])`;
}

/** The forecasts of open sets that are settled. */
export function listSettled(sql: Queryable, ids: readonly number[]) {
  return sql<{ table_id: number; seqs: bigint[] }[]>`
    select h.table_id, array_agg(u.forecast_seq) as seqs
    from table_heads h
    cross join lateral (
      select *
      from score_sets
      where table_id = h.table_id
        and settled_seq > h.open_sets[1]
      order by settled_seq
    ) s
    cross join lateral unnest(s.forecast_seqs, s.cutoff_seqs) as u (forecast_seq, cutoff_seq)
    where h.table_id = any(${ids}::integer[])
      and u.cutoff_seq = any(h.open_sets)
    group by h.table_id`;
}

/** A forecast set from its stored row. */
export function asSet(row: StoredSet): ForecastSetRow {
  return {
    cutoffSeq: row.cutoff_seq,
    cutoffOrdinal: row.cutoff_ordinal,
    model: row.model,
    firstSeq: row.first_seq,
    issuedAt: fromDatabase(row.issued_at),
    pauseMs: row.pause_ms,
    absentAt: fromDatabase(row.absent_at),
    cutoffRoundId: row.cutoff_round_id,
    historyHash: row.history_hash.toString("hex"),
    targetRoundId: row.target_round_id,
    features: row.features,
    horizons: row.horizons,
    pPpm: row.p_ppm,
    basePpm: row.base_ppm,
    referencePpm: row.reference_ppm,
    ends: row.ends,
    prevHash: row.prev_hash.toString("hex"),
    hashes: row.hashes.toString("hex"),
  };
}
