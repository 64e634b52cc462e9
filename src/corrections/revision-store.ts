import type { Queryable, Transaction } from "../db/client.ts";
import type { Color } from "../rounds/colors.ts";
import { revisionHash } from "./revision-hash.ts";

/** A round with its current result. */
export interface Standing {
  seq: bigint;
  roundId: string;
  /** The result that was received first. */
  first: bigint;
  /** The result after the newest revision; null: void. */
  hundredths: bigint | null;
  verified: boolean | null;
  /** The bands that determine its color. */
  bands: Color[];
}

/** The current result of a round; null if the table does not have it. */
export async function findStanding(sql: Queryable, tableId: number, roundId: string): Promise<Standing | null> {
  const [row] = await sql<Standing[]>`
    select
      r.seq,
      r.round_id as "roundId",
      r.hundredths as first,
      case when v.id is null then r.hundredths else v.to_hundredths end as hundredths,
      r.verified,
      p.bands
    from rounds r
    join palettes p on p.id = r.palette
    left join lateral (
      select id, to_hundredths
      from round_revision
      where table_id = r.table_id
        and round_id = r.round_id
      order by id desc
      limit 1
    ) v on true
    where r.table_id = ${tableId}
      and r.round_id = ${roundId}`;
  return row ?? null;
}

/** A conflict and the decision on it. */
export interface KnownConflict {
  id: bigint;
  tableId: number;
  roundId: string;
  other: bigint;
  decidedAt: string | null;
  decidedBy: string | null;
  decision: string | null;
}

/** Conflicts by their ids, in id order; missing ones are skipped. */
export async function listConflictsToDecide(sql: Queryable, ids: readonly bigint[]): Promise<KnownConflict[]> {
  return sql<KnownConflict[]>`
    select
      c.id,
      c.table_id as "tableId",
      c.round_id as "roundId",
      c.other_hundredths as other,
      utc_text(c.decided_at) as "decidedAt",
      v.decided_by as "decidedBy",
      v.reason as decision
    from conflicts c
    left join round_revision v on v.conflict_id = c.id
    where c.id = any(${ids.map(String)}::bigint[])
    order by c.id`;
}

/**
 * Marks conflicts as decided. The caller holds the locks of their tables; the rows are locked in id order, because
 * score-accuracy, which holds no lock of a table, updates them too.
 */
export async function closeConflicts(tx: Transaction, ids: readonly bigint[]): Promise<void> {
  await tx`
    update conflicts
    set decided_at = clock_timestamp()
    where id in (
      select id
      from conflicts
      where id = any(${ids.map(String)}::bigint[])
        and decided_at is null
      order by id
      for no key update
    )`;
}

/** A new revision. */
export interface NewRevision {
  tableId: number;
  /** Its table's name, for the hash. */
  table: string;
  seq: bigint;
  roundId: string;
  from: bigint | null;
  to: bigint | null;
  color: string | null;
  reason: string;
  by: string;
  conflictId: bigint | null;
}

/**
 * Appends a revision to its table's chain and returns its id. The caller holds the table's lock, so that the ids of a
 * table follow the order of commits and the chain has no fork.
 */
export async function saveRevision(tx: Transaction, revision: NewRevision): Promise<bigint> {
  const [head] = await tx<{ prevHash: string; at: string }[]>`
    select revision_hash as "prevHash", utc_text(clock_timestamp()) as at
    from tables
    where id = ${revision.tableId}`;
  if (head === undefined) throw new Error(`the table ${revision.table} does not exist`);
  const { prevHash, at } = head;
  const textOf = (value: bigint | null) => (value === null ? null : String(value));
  const hash = revisionHash(prevHash, {
    table: revision.table,
    seq: String(revision.seq),
    round_id: revision.roundId,
    from: textOf(revision.from),
    to: textOf(revision.to),
    color: revision.color,
    reason: revision.reason,
    by: revision.by,
    at,
    conflict_id: textOf(revision.conflictId),
  });
  const [row] = await tx<{ id: bigint }[]>`
    with kept as (
      insert into round_revision (
        table_id, seq, round_id, from_hundredths, to_hundredths, to_color, reason, decided_by, decided_at, conflict_id,
        prev_hash, hash
      )
      values (
        ${revision.tableId}, ${revision.seq}, ${revision.roundId}, ${revision.from}, ${revision.to}, ${revision.color},
        ${revision.reason}, ${revision.by}, ${at}::text::timestamptz, ${revision.conflictId}, ${prevHash}, ${hash}
      )
      returning id
    ),
    moved as (
      update tables
      set revision_hash = ${hash}
      where id = ${revision.tableId}
    )
    select id
    from kept`;
  if (row === undefined) throw new Error("expected the stored revision, found none");
  return row.id;
}

/** A revision in a list, newest first. */
export interface ListedRevision {
  id: bigint;
  table: string;
  roundId: string;
  from: bigint | null;
  to: bigint | null;
  reason: string;
  by: string;
  at: string;
  conflictId: bigint | null;
  voidedAt: string | null;
}

/** The revisions of a table, or of one of its rounds, newest first. */
export async function listRevisions(
  sql: Queryable,
  { tableId, roundId, limit }: { tableId: number | null; roundId: string | null; limit: number },
): Promise<ListedRevision[]> {
  return sql<ListedRevision[]>`
    select
      v.id,
      t.house_id || '/' || t.game || '/' || t.market as "table",
      v.round_id as "roundId",
      v.from_hundredths as "from",
      v.to_hundredths as "to",
      v.reason,
      v.decided_by as "by",
      utc_text(v.decided_at) as at,
      v.conflict_id as "conflictId",
      utc_text(v.scores_voided_at) as "voidedAt"
    from round_revision v
    join tables t on t.id = v.table_id
    where (${tableId}::integer is null or v.table_id = ${tableId})
      and (${roundId}::text is null or v.round_id = ${roundId})
    order by v.id desc
    limit ${limit}`;
}
