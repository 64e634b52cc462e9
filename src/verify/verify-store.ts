import type { Queryable, Sql, Transaction } from "../db/client.ts";
import type { Selected } from "../pass/columns.ts";
import {
  FORECAST_SETS,
  ROUNDS,
  SCORE_SETS,
  SOURCES,
  type ForecastSetRow,
  type RoundRow,
  type ScoreSetRow,
} from "../pass/compute/rows.ts";
import { fromDatabase } from "../pass/compute/times.ts";

const ROUND = ROUNDS.selectFrom("r");
const SET = FORECAST_SETS.selectFrom("s");
const SCORES = SCORE_SETS.selectFrom("s");

/** Opens one snapshot of the database: everything checked inside belongs to the same moment. */
export async function withSnapshot<Result>(sql: Sql, check: (tx: Transaction) => Promise<Result>): Promise<Result> {
  return sql.begin("isolation level repeatable read read only", check);
}

/** Exports the snapshot of a transaction, for others to join while it is open; it may be idle while they read. */
export async function exportSnapshot(tx: Transaction): Promise<string> {
  await tx`set local idle_in_transaction_session_timeout = '12h'`;
  const [row] = await tx<{ name: string }[]>`select pg_export_snapshot() as name`;
  if (row === undefined) throw new Error("expected the name of a snapshot, found none");
  return row.name;
}

/**
 * Reads in the snapshot of another transaction, by its name.
 *
 * @throws Error if that transaction has ended
 */
export async function joinSnapshot<Result>(
  sql: Sql,
  snapshot: string,
  check: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  return withSnapshot(sql, async (tx) => {
    // the name cannot be a bound parameter; PostgreSQL's names consist of hexadecimal digits and hyphens
    if (!/^[0-9A-F-]+$/.test(snapshot)) throw new Error(`expected the name of a snapshot, found ${snapshot}`);
    await tx.unsafe(`set transaction snapshot '${snapshot}'`);
    return check(tx);
  });
}

/** The time at which the transaction began. */
export async function findNow(tx: Transaction): Promise<string> {
  const [row] = await tx<{ now: string }[]>`select now()::text as now`;
  if (row === undefined) throw new Error("expected the time of the database, found no row");
  return row.now;
}

/** Rounds of a table after a seq, in order. */
export async function listStoredRounds(
  tx: Transaction,
  tableId: number,
  afterSeq: bigint,
  limit: number,
): Promise<RoundRow[]> {
  const rows = await tx<Selected<RoundRow>[]>`
    select ${ROUND}
    from rounds r
    where r.table_id = ${tableId}
      and r.seq > ${afterSeq}
    order by r.seq
    limit ${limit}`;
  return rows.map(ROUNDS.parse);
}

/** The name of a round's source. */
export function sourceOf({ source }: Pick<RoundRow, "source">): (typeof SOURCES)[number] {
  const name = SOURCES[source];
  if (name === undefined) throw new Error(`expected a source from 0 to ${SOURCES.length - 1}, found ${source}`);
  return name;
}

/** A span of a table's rounds: after one seq, up to and including another. */
export interface SeqSpan {
  tableId: number;
  afterSeq: bigint;
  upToSeq: bigint;
}

/** The forecast sets with a cutoff in a span, by cutoff. */
export async function listStoredSets(
  sql: Queryable,
  { tableId, afterSeq, upToSeq }: SeqSpan,
): Promise<Map<bigint, ForecastSetRow>> {
  const rows = await sql<Selected<ForecastSetRow>[]>`
    select ${SET}
    from forecast_sets s
    where s.table_id = ${tableId}
      and s.cutoff_seq > ${afterSeq}
      and s.cutoff_seq <= ${upToSeq}
    order by s.cutoff_seq`;
  return new Map(rows.map(FORECAST_SETS.parse).map((set) => [set.cutoffSeq, set]));
}

/** The score sets of rounds in a span, by round. */
export async function listStoredScores(
  sql: Queryable,
  { tableId, afterSeq, upToSeq }: SeqSpan,
): Promise<Map<bigint, ScoreSetRow>> {
  const rows = await sql<Selected<ScoreSetRow>[]>`
    select ${SCORES}
    from score_sets s
    where s.table_id = ${tableId}
      and s.settled_seq > ${afterSeq}
      and s.settled_seq <= ${upToSeq}
    order by s.settled_seq`;
  return new Map(rows.map(SCORE_SETS.parse).map((set) => [set.settledSeq, set]));
}

/** The key of a set without a round; null if there is none. */
export async function findStraySet(sql: Queryable, tableId: number, lastSeq: bigint): Promise<string | null> {
  const [row] = await sql<{ name: string }[]>`
    select 'forecast set after seq ' || cutoff_seq as name
    from forecast_sets
    where table_id = ${tableId}
      and (cutoff_seq < 1 or cutoff_seq > ${lastSeq})
    union all
    select 'score set of seq ' || settled_seq
    from score_sets
    where table_id = ${tableId}
      and (settled_seq < 1 or settled_seq > ${lastSeq})
    limit 1`;
  return row?.name ?? null;
}

/** A later score of a forecast. */
export interface StoredScoreRevision {
  forecastSeq: bigint;
  rev: number;
  cutoffSeq: bigint;
  feature: number;
  settledSeq: bigint;
  status: number;
  reason: number;
  outcome: number | null;
  scoredAt: string;
  prevHash: string;
  hash: string;
  /** The round of the conflict or correction that caused it; null if its table has no such round. */
  causeRoundId: string | null;
}

/** All later scores of a table, in the order of its chain; there are few. */
export async function listScoreRevisions(sql: Queryable, tableId: number): Promise<StoredScoreRevision[]> {
  const rows = await sql<StoredScoreRevision[]>`
    select
      s.forecast_seq as "forecastSeq", s.rev, s.cutoff_seq as "cutoffSeq", s.feature, s.settled_seq as "settledSeq",
      s.status, s.reason, s.outcome, s.scored_at::text as "scoredAt", encode(s.prev_hash, 'hex') as "prevHash",
      encode(s.hash, 'hex') as hash,
      case s.reason
        when 3 then (select c.round_id from conflicts c where c.id = s.cause and c.table_id = s.table_id)
        when 5 then (select v.round_id from round_revision v where v.id = s.cause and v.table_id = s.table_id)
      end as "causeRoundId"
    from score_revisions s
    where s.table_id = ${tableId}
    order by s.revision`;
  return rows.map((row) => ({ ...row, scoredAt: fromDatabase(row.scoredAt) }));
}

/** A round with a second result (3) or a correction (5), and whether scores reflect it. */
export interface Dispute {
  reason: 3 | 5;
  isApplied: boolean;
}

/** The disputed rounds of a table, by round id; there are few. */
export async function listDisputes(sql: Queryable, tableId: number): Promise<Map<string, Dispute[]>> {
  const rows = await sql<(Dispute & { roundId: string })[]>`
    select round_id as "roundId", 3 as reason, scores_voided_at is not null as "isApplied"
    from conflicts
    where table_id = ${tableId}
    union all
    select round_id, 5, scores_voided_at is not null
    from round_revision
    where table_id = ${tableId}`;
  const byRound = Map.groupBy(rows, ({ roundId }) => roundId);
  return new Map(
    [...byRound].map(([roundId, own]) => [roundId, own.map(({ reason, isApplied }) => ({ reason, isApplied }))]),
  );
}

/** The states that promotions put in the place of the previous one, by seq; of several at one seq, the newest. */
export async function readPromotions(sql: Queryable, tableId: number): Promise<Map<bigint, Buffer>> {
  const rows = await sql<{ toSeq: bigint; state: Buffer }[]>`
    select to_seq as "toSeq", state
    from calibrations
    where table_id = ${tableId}
      and kind = 'promoted'
    order by id`;
  return new Map(rows.map(({ toSeq, state }) => [toSeq, state]));
}

/** The number of stored rows of a table's accuracy: hours, days and periods. */
export async function countAccuracyRows(sql: Queryable, tableId: number): Promise<number> {
  const [row] = await sql<{ rows: number }[]>`
    select
      (select count(*) from accuracy_hours where table_id = ${tableId})::integer
        + (select count(*) from accuracy_days where table_id = ${tableId})::integer
        + (select count(*) from accuracy_periods where table_id = ${tableId})::integer as rows`;
  return row?.rows ?? 0;
}
