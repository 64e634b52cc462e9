import type { Queryable } from "../../db/client.ts";
import { AFTER_GAP, REACHED_X0 } from "./backtest.ts";

/** How a replay reads the rounds of a table. */
export interface RoundView {
  tableId: number;
  /** Lower ends of the model's bands but the first, in hundredths. */
  thresholds: readonly number[];
  x0Hundredths: number;
  seen: Seen;
}

/**
 * The rounds and revisions that a replay includes, fixed when its manual run is requested, so that resumed and repeated
 * runs read the same.
 */
export interface Seen {
  /** Revisions up to this id, of rounds up to this seq. Replays of the live path include none. */
  revisionId: bigint;
  revisedSeq: bigint;
  /**
   * Null: on-time rounds in the order of storage. Else all rounds up to this seq by the number of their id; every position
   * of such a replay is that number, not a seq.
   */
  seenSeq: bigint | null;
}

/** On-time rounds as they were first stored. */
export const AS_LIVE: Seen = { revisionId: 0n, revisedSeq: 0n, seenSeq: null };

/** A stretch of a table's rounds, one byte each, in the order of the replay. */
export interface PackedRounds {
  rounds: Uint8Array;
  /** The position up to which everything is read. */
  readTo: bigint;
  /** Number of late ones. */
  late: bigint;
  /** Ids and history hashes, if requested. */
  roundIds: string[];
  historyHashes: string[];
}

/**
 * The first `limit` rounds of a table after one position and up to another, as `advance` takes them.
 *
 * One row with one letter per round: reading a row per round would take longer than learning. Ids and hashes only if
 * requested.
 */
export async function readPackedRounds(
  sql: Queryable,
  view: RoundView,
  { afterSeq, upToSeq, limit, named }: { afterSeq: bigint; upToSeq: bigint; limit: number; named: boolean },
): Promise<PackedRounds> {
  // ids are looked up one by one, so the range is bounded however many are missing
  const idsTo = view.seen.seenSeq === null ? null : minOf(upToSeq, afterSeq + BigInt(limit));
  const names = named
    ? sql`, array_agg(round_id order by place) as ids, array_agg(encode(history_hash, 'hex') order by place) as hashes`
    : sql``;
  const [row] = await sql<
    { letters: string | null; last: bigint | null; late: bigint; ids?: string[] | null; hashes?: string[] | null }[]
  >`
    select
      string_agg(
        chr(
          ${FIRST_LETTER} + width_bucket(hundredths, ${view.thresholds.map(String)}::bigint[])
            + case when hundredths >= ${view.x0Hundredths} then ${REACHED_X0} else 0 end
            + case when after_gap then ${AFTER_GAP} else 0 end
        ),
        '' order by place
      ) as letters,
      max(place) as last,
      count(*) filter (where late) as late
      ${names}
    from (
      ${readRange(sql, view, { afterSeq, upToSeq: idsTo ?? upToSeq })}
      order by place
      limit ${limit}
    ) r`;
  const rounds = Buffer.from(row?.letters ?? "", "latin1");
  for (let i = 0; i < rounds.length; i++) rounds[i]! -= FIRST_LETTER;
  const isEmpty = idsTo !== null && idsTo < upToSeq && rounds.length === 0;
  const readTo = isEmpty
    ? await findLastMissing(sql, view, { afterSeq: idsTo, upToSeq })
    : (idsTo ?? (rounds.length < limit ? upToSeq : (row?.last ?? upToSeq)));
  return { rounds, readTo, late: row?.late ?? 0n, roundIds: row?.ids ?? [], historyHashes: row?.hashes ?? [] };
}

/** The last number before the next stored round, at most `upToSeq`: without it a far id is reached number by number. */
async function findLastMissing(
  sql: Queryable,
  { tableId, seen }: RoundView,
  { afterSeq, upToSeq }: Range,
): Promise<bigint> {
  const [row] = await sql<{ next: bigint | null }[]>`
    select min(round_id::bigint) as next
    from rounds
    where table_id = ${tableId}
      and seq <= ${seen.seenSeq}
      and round_id::bigint > ${afterSeq}`;
  return minOf(upToSeq, (row?.next ?? upToSeq + 1n) - 1n);
}

/** The rounds that a replay reads as staff revised them, by seq: their hundredths, or null if it leaves them out as void. */
export async function listRevised(
  sql: Queryable,
  { tableId, seen }: Pick<RoundView, "tableId" | "seen">,
): Promise<Map<bigint, bigint | null>> {
  if (seen.revisionId === 0n) return new Map();
  const rows = await sql<{ seq: bigint; hundredths: bigint | null }[]>`
    select v.seq, v.to_hundredths as hundredths
    from (${newestRevisions(sql, { tableId, seen })}) v`;
  return new Map(rows.map(({ seq, hundredths }) => [seq, hundredths]));
}

type Range = { afterSeq: bigint; upToSeq: bigint };

function readRange(sql: Queryable, view: RoundView, range: Range) {
  if (view.seen.seenSeq !== null) return byNumber(sql, view, view.seen.seenSeq, range);
  return view.seen.revisionId === 0n ? asStored(sql, view, range) : asRevised(sql, view, range);
}

/**
 * Rounds by the number of their id, as of their newest revision. A round is after a gap if the previous number is missing or
 * that round was declared void.
 */
function byNumber(sql: Queryable, { tableId, seen }: RoundView, seenSeq: bigint, { afterSeq, upToSeq }: Range) {
  return sql`
    select *
    from (
      select
        n as place, r.round_id, r.history_hash, r.late,
        coalesce(v.to_hundredths, r.hundredths) as hundredths,
        n is distinct from lag(n) over (order by n) + 1 as after_gap
      from generate_series(${afterSeq}::bigint, ${upToSeq}::bigint) n
      join rounds r on r.table_id = ${tableId} and r.round_id = n::text and r.seq <= ${seenSeq}
      left join lateral (
        select to_hundredths, to_hundredths is null as is_void
        from round_revision
        where table_id = r.table_id
          and seq = r.seq
          and id <= ${seen.revisionId}
        order by id desc
        limit 1
      ) v on true
      where v.is_void is not true
    ) known
    where place > ${afterSeq}`;
}

function minOf(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function newestRevisions(sql: Queryable, { tableId, seen }: Pick<RoundView, "tableId" | "seen">) {
  return sql`
    select distinct on (v.seq) v.seq, v.to_hundredths, true as is_revised
    from round_revision v
    -- a late round is in no replay, so nothing is missing if it is void
    join rounds r on r.table_id = v.table_id and r.seq = v.seq and not r.late
    where v.table_id = ${tableId}
      and v.id <= ${seen.revisionId}
      and v.seq <= ${seen.revisedSeq}
    order by v.seq, v.id desc`;
}

function asStored(sql: Queryable, { tableId }: RoundView, { afterSeq, upToSeq }: Range) {
  return sql`
    select seq as place, round_id, hundredths, after_gap, late, history_hash
    from rounds
    where table_id = ${tableId}
      and seq > ${afterSeq}
      and seq <= ${upToSeq}
      and not late`;
}

/**
 * Each round as of its newest revision. A void round counts as missing: it is left out, and the next round is after a gap.
 */
function asRevised(sql: Queryable, view: RoundView, { afterSeq, upToSeq }: Range) {
  const { tableId, seen } = view;
  return sql`
    select
      r.seq as place, r.round_id, r.late, coalesce(v.to_hundredths, r.hundredths) as hundredths,
      r.after_gap or r.seq = any(
        array(
          select (
            select min(f.seq)
            from rounds f
            where f.table_id = ${tableId}
              and f.seq > void.seq
              and f.seq <= ${seen.revisedSeq}
              and not f.late
          )
          from (${newestRevisions(sql, view)}) void
          where void.to_hundredths is null
        )
      ) as after_gap,
      r.history_hash
    from rounds r
    left join (${newestRevisions(sql, view)}) v on v.seq = r.seq
    where r.table_id = ${tableId}
      and r.seq > ${afterSeq}
      and r.seq <= ${upToSeq}
      and not r.late
      and (v.is_revised is null or v.to_hundredths is not null)`;
}

/** "@": the letters from here on are one byte in every encoding. */
const FIRST_LETTER = 64;
