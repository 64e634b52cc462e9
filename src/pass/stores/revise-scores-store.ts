import type { Queryable, Transaction } from "../../db/client.ts";
import { WINDOW_ROUNDS_MAX } from "../../forecasts/model/features.ts";
import { forecastIdOf } from "../../forecasts/chain/forecast-id.ts";
import { REASONS, scoreHash, scoreStrings } from "../../record/hashes.ts";
import { lockHeads } from "../../tables/heads-store.ts";
import { findTime } from "./payload-store.ts";
import { fromDatabase } from "../compute/times.ts";

/** The result of a revision; `head` is the table's head afterwards. */
export interface RevisedScores {
  /** Forecasts that are void now, and how many of them are windows. */
  voided: number;
  windows: number;
  head: { version: bigint; scoreHash: string };
}

/**
 * Voids the scored forecasts of a table whose span has a round with a second result or a manual revision: each gets a
 * score with the next `rev`, chained to the table's newest. Idempotent. Locks the head. Open forecasts are voided by
 * the pass that settles them.
 */
export async function reviseScores(tx: Transaction, tableId: number): Promise<RevisedScores> {
  await lockHeads(tx, [tableId]);
  const forecasts = await listTouched(tx, tableId);
  const scoredAt = fromDatabase((await findTime(tx)).now);
  const [before] = await tx<{ version: bigint; scoreHash: string }[]>`
    select version, encode(score_hash, 'hex') as "scoreHash"
    from table_heads
    where table_id = ${tableId}`;
  if (before === undefined) throw new Error(`table ${tableId} does not exist`);
  let hash = before.scoreHash;
  const rows = forecasts.map((forecast) => {
    const prevHash = hash;
    const strings = scoreStrings({
      forecastId: forecastIdOf(tableId, forecast.forecastSeq),
      rev: FIRST_REVISION,
      reason: REASONS[forecast.reason] ?? "",
      outcome: null,
      settledSeq: forecast.settledSeq,
      targetRequestedAt: forecast.targetRequestedAt === null ? null : fromDatabase(forecast.targetRequestedAt),
      scoredAt,
    });
    hash = scoreHash(prevHash, strings);
    return { ...forecast, prevHash, hash };
  });
  const isChanged = rows.length > 0;
  if (isChanged) {
    await insertRevisions(tx, tableId, scoredAt, rows);
    await tx`
      update table_heads
      set
        version = version + 1,
        changed_at = clock_timestamp(),
        score_hash = decode(${hash}, 'hex')
      where table_id = ${tableId}`;
  }
  await markApplied(tx, tableId);
  return {
    voided: rows.length,
    windows: rows.filter(({ feature }) => feature > 0).length,
    head: { version: before.version + (isChanged ? 1n : 0n), scoreHash: hash },
  };
}

/** Tables of a house with a second result or a revision that scores do not reflect yet. */
export async function listTablesToRevise(sql: Queryable, house: string): Promise<{ id: number; name: string }[]> {
  return sql<{ id: number; name: string }[]>`
    select distinct t.id, t.house_id || '/' || t.game || '/' || t.market as name
    from disputed_rounds d
    join tables t on t.id = d.table_id
    where t.house_id = ${house}
      and d.scores_voided_at is null
    order by t.id`;
}

/** Houses with a table that {@link listTablesToRevise} lists. */
export async function listHousesToRevise(sql: Queryable): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select distinct t.house_id as house
    from disputed_rounds d
    join tables t on t.id = d.table_id
    where d.scores_voided_at is null`;
}

/** A void forecast stays void, so that a forecast has one revision at most. */
const FIRST_REVISION = 2;

interface Touched {
  forecastSeq: bigint;
  cutoffSeq: bigint;
  feature: number;
  settledSeq: bigint;
  targetRequestedAt: string | null;
  reason: number;
  cause: bigint;
}

/**
 * Scored forecasts whose span has a disputed round, each with the first such round; a late round is in no span. A round
 * counts once, however many results it has, and a score set is read once: from the last disputed round before it.
 */
function listTouched(tx: Transaction, tableId: number): Promise<Touched[]> {
  return tx<Touched[]>`
    with causes as (
      select r.seq, 3 as reason, min(c.id) as cause
      from conflicts c
      join rounds r on r.table_id = c.table_id and r.round_id = c.round_id
      where c.table_id = ${tableId}
        and c.scores_voided_at is null
        and not r.late
      group by r.seq
      union all
      select r.seq, 5, min(v.id)
      from round_revision v
      join rounds r on r.table_id = v.table_id and r.seq = v.seq
      where v.table_id = ${tableId}
        and v.scores_voided_at is null
        and not r.late
      group by r.seq
    ),
    disputed as (
      select c.*, lead(seq) over (order by seq) as next_seq
      from (select distinct on (seq) * from causes order by seq, reason) c
    )
    select
      u.forecast_seq as "forecastSeq",
      u.cutoff_seq as "cutoffSeq",
      u.feature,
      s.settled_seq as "settledSeq",
      s.target_requested_at::text as "targetRequestedAt",
      first.reason,
      first.cause
    from disputed d
    cross join (select array_agg(seq order by seq) as seqs from disputed) every
    cross join lateral (
      select *
      from score_sets
      where table_id = ${tableId}
        and settled_seq >= d.seq
        and settled_seq < coalesce(d.next_seq, 9223372036854775807)
      order by settled_seq
      limit ${WINDOW_ROUNDS_MAX}
    ) s
    cross join lateral unnest(s.forecast_seqs, s.cutoff_seqs, s.features, s.statuses)
      as u (forecast_seq, cutoff_seq, feature, status)
    -- the first disputed round after the cutoff, found by halving
    join disputed first on first.seq = every.seqs[width_bucket(u.cutoff_seq, every.seqs) + 1]
    where u.status = 0
      and u.cutoff_seq < d.seq
      and not exists (
        select
        from score_revisions v
        where v.table_id = ${tableId}
          and v.forecast_seq = u.forecast_seq
      )
    order by u.forecast_seq`;
}

async function insertRevisions(
  tx: Transaction,
  tableId: number,
  scoredAt: string,
  rows: readonly (Touched & { prevHash: string; hash: string })[],
): Promise<void> {
  await tx`
    insert into score_revisions (
      table_id, forecast_seq, rev, cutoff_seq, feature, settled_seq, status, reason, scored_at, cause, prev_hash, hash
    )
    select
      ${tableId}, forecast_seq, ${FIRST_REVISION}, cutoff_seq, feature, settled_seq, 1, reason, ${scoredAt}::timestamptz,
      cause, decode(prev_hash, 'hex'), decode(hash, 'hex')
    from unnest(
      ${rows.map(({ forecastSeq }) => String(forecastSeq))}::bigint[],
      ${rows.map(({ cutoffSeq }) => String(cutoffSeq))}::bigint[],
      ${rows.map(({ feature }) => feature)}::smallint[],
      ${rows.map(({ settledSeq }) => String(settledSeq))}::bigint[],
      ${rows.map(({ reason }) => reason)}::smallint[],
      ${rows.map(({ cause }) => String(cause))}::bigint[],
      ${rows.map(({ prevHash }) => prevHash)}::text[],
      ${rows.map(({ hash }) => hash)}::text[]
    ) as r (forecast_seq, cutoff_seq, feature, settled_seq, reason, cause, prev_hash, hash)
    order by forecast_seq`;
}

async function markApplied(tx: Transaction, tableId: number): Promise<void> {
  await tx`
    update conflicts
    set scores_voided_at = clock_timestamp()
    where table_id = ${tableId}
      and scores_voided_at is null`;
  await tx`
    update round_revision
    set scores_voided_at = clock_timestamp()
    where table_id = ${tableId}
      and scores_voided_at is null`;
}
