import type { Queryable } from "../../db/client.ts";
import { AFTER_GAP, REACHED_X0 } from "./backtest.ts";

/** How a replay sees the rounds of a table. */
export interface RoundView {
  tableId: number;
  /** Lower ends of the model's bands but the first, in hundredths. */
  thresholds: readonly number[];
  x0Hundredths: number;
  revisions: SeenRevisions;
}

/**
 * What persons decided of rounds, as far as a replay sees it: revisions up to an id, of rounds up to a seq. A run by hand
 * sees those that were there when it was asked for; what is learned live, and replayed as such, sees none.
 */
export interface SeenRevisions {
  revisionId: bigint;
  revisedSeq: bigint;
}

/** Rounds as they were first stored. */
export const NO_REVISIONS: SeenRevisions = { revisionId: 0n, revisedSeq: 0n };

/** A stretch of a table's on-time rounds, one byte each, oldest first. */
export interface PackedRounds {
  rounds: Uint8Array;
  /** Seq of the newest of them; null for none. */
  lastSeq: bigint | null;
  /** Ids and history hashes, where they were asked for. */
  roundIds: string[];
  historyHashes: string[];
}

/**
 * The first `limit` on-time rounds of a table after one seq and up to another, as `advance` takes them.
 *
 * One row with a letter a round: a row for each would cost more to read than the model to learn. Ids and hashes only
 * when asked for.
 */
export async function readPackedRounds(
  sql: Queryable,
  view: RoundView,
  { afterSeq, upToSeq, limit, named }: { afterSeq: bigint; upToSeq: bigint; limit: number; named: boolean },
): Promise<PackedRounds> {
  const names = named
    ? sql`, array_agg(round_id order by seq) as ids, array_agg(encode(history_hash, 'hex') order by seq) as hashes`
    : sql``;
  const [row] = await sql<
    { letters: string | null; lastSeq: bigint | null; ids?: string[] | null; hashes?: string[] | null }[]
  >`
    select
      string_agg(
        chr(
          ${FIRST_LETTER} + width_bucket(hundredths, ${view.thresholds.map(String)}::bigint[])
            + case when hundredths >= ${view.x0Hundredths} then ${REACHED_X0} else 0 end
            + case when after_gap then ${AFTER_GAP} else 0 end
        ),
        '' order by seq
      ) as letters,
      max(seq) as "lastSeq"
      ${names}
    from (
      ${view.revisions.revisionId === 0n ? asStored(sql, view, { afterSeq, upToSeq }) : asRevised(sql, view, { afterSeq, upToSeq })}
      order by seq
      limit ${limit}
    ) r`;
  const rounds = Buffer.from(row?.letters ?? "", "latin1");
  for (let i = 0; i < rounds.length; i++) rounds[i]! -= FIRST_LETTER;
  return { rounds, lastSeq: row?.lastSeq ?? null, roundIds: row?.ids ?? [], historyHashes: row?.hashes ?? [] };
}

/** The rounds that a replay does not see, since a person declared them void. */
export async function listVoidSeqs(
  sql: Queryable,
  { tableId, revisions }: Pick<RoundView, "tableId" | "revisions">,
): Promise<bigint[]> {
  if (revisions.revisionId === 0n) return [];
  const rows = await sql<{ seq: bigint }[]>`
    select v.seq
    from (${newestRevisions(sql, { tableId, revisions })}) v
    where v.to_hundredths is null
    order by v.seq`;
  return rows.map(({ seq }) => seq);
}

function newestRevisions(sql: Queryable, { tableId, revisions }: Pick<RoundView, "tableId" | "revisions">) {
  return sql`
    select distinct on (v.seq) v.seq, v.to_hundredths, true as is_revised
    from round_revision v
    -- a late round is in no replay, so that nothing is missing where it is void
    join rounds r on r.table_id = v.table_id and r.seq = v.seq and not r.late
    where v.table_id = ${tableId}
      and v.id <= ${revisions.revisionId}
      and v.seq <= ${revisions.revisedSeq}
    order by v.seq, v.id desc`;
}

function asStored(
  sql: Queryable,
  { tableId }: RoundView,
  { afterSeq, upToSeq }: { afterSeq: bigint; upToSeq: bigint },
) {
  return sql`
    select seq, round_id, hundredths, after_gap, history_hash
    from rounds
    where table_id = ${tableId}
      and seq > ${afterSeq}
      and seq <= ${upToSeq}
      and not late`;
}

/**
 * Each round with what the newest revision made of it. One that is void is as if it had not been received: it is left
 * out, and the round after it comes after a gap.
 */
function asRevised(sql: Queryable, view: RoundView, { afterSeq, upToSeq }: { afterSeq: bigint; upToSeq: bigint }) {
  const { tableId, revisions } = view;
  return sql`
    select
      r.seq, r.round_id, coalesce(v.to_hundredths, r.hundredths) as hundredths,
      r.after_gap or r.seq = any(
        array(
          select (
            select min(f.seq)
            from rounds f
            where f.table_id = ${tableId}
              and f.seq > void.seq
              and f.seq <= ${revisions.revisedSeq}
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

/** The letters from @ on are one byte in every encoding. */
const FIRST_LETTER = 64;
