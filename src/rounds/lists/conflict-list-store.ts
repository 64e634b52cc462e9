import type { Queryable } from "../../db/client.ts";
import type { PayloadKey } from "./payload-list-store.ts";

/** The filters of a list of conflicts; null for all. */
export interface ConflictFilter {
  tableIds: readonly number[] | null;
  isDecided: boolean | null;
}

/** A conflict in a list: both results, the payload of each, and the decision. */
export interface ListedConflict {
  id: bigint;
  tableId: number;
  table: string;
  roundId: string;
  kept: bigint;
  other: bigint;
  otherRaw: string;
  firstSeenAt: string;
  lastSeenAt: string;
  times: number;
  /** How often results of the round that are not listed were received; counted in its first conflict. */
  further: number;
  /** When the payloads with the first result and with the other were received; null if no payload is known. */
  keptReceivedAt: string | null;
  otherReceivedAt: string | null;
  /** The stored round. */
  seq: bigint | null;
  rawValue: string | null;
  color: string | null;
  source: string | null;
  receivedAt: string | null;
  late: boolean | null;
  verified: boolean | null;
  decidedAt: string | null;
  decidedBy: string | null;
  decision: string | null;
  /** The result that holds since the decision. */
  to: bigint | null;
}

/** Conflicts, newest or oldest first; `after` is the id of the last conflict of the previous page. */
export async function listConflicts(
  sql: Queryable,
  { tableIds, isDecided }: ConflictFilter,
  { after, oldestFirst, limit }: { after: bigint | null; oldestFirst: boolean; limit: number },
): Promise<ListedConflict[]> {
  const beyond = oldestFirst ? sql`c.id > ${after}` : sql`c.id < ${after}`;
  const decided = isDecided === true ? sql`c.decided_at is not null` : sql`c.decided_at is null`;
  return sql<ListedConflict[]>`
    select ${columnsOf(sql)}
    from ${joined(sql)}
    where ${tableIds === null ? sql`true` : sql`c.table_id = any(${[...tableIds]}::integer[])`}
      and ${isDecided === null ? sql`true` : decided}
      and ${after === null ? sql`true` : beyond}
    order by c.id ${oldestFirst ? sql`asc` : sql`desc`}
    limit ${limit}`;
}

/** Returns a conflict by its id; null if there is none. */
export async function findListedConflict(sql: Queryable, id: bigint): Promise<ListedConflict | null> {
  const [row] = await sql<ListedConflict[]>`
    select ${columnsOf(sql)}
    from ${joined(sql)}
    where c.id = ${id}`;
  return row ?? null;
}

/** Conflicts by their ids, oldest first; unknown ids are left out. */
export async function listConflictsById(sql: Queryable, ids: readonly bigint[]): Promise<ListedConflict[]> {
  return sql<ListedConflict[]>`
    select ${columnsOf(sql)}
    from ${joined(sql)}
    where c.id = any(${ids.map(String)}::bigint[])
    order by c.id`;
}

/** The conflicts whose other result first arrived in this payload, oldest first, at most `limit`. */
export async function listConflictsOf(
  sql: Queryable,
  { tableId, receivedAt }: PayloadKey,
  limit: number,
): Promise<ListedConflict[]> {
  return sql<ListedConflict[]>`
    select ${columnsOf(sql)}
    from ${joined(sql)}
    where c.table_id = ${tableId}
      and c.payload_received_at = ${receivedAt}::text::timestamptz
    order by c.id
    limit ${limit}`;
}

/** How many forecasts a decision would affect: scores on the round, and how many of these are voided already. */
export async function countTouched(
  sql: Queryable,
  { tableId, seq }: { tableId: number; seq: bigint },
): Promise<{ nextColors: number; voided: number }> {
  const [row] = await sql<{ nextColors: number; voided: number }[]>`
    select
      count(*)::integer as "nextColors",
      (
        count(*) filter (
          where u.status = 1
            or exists (select from score_revisions v where v.table_id = s.table_id and v.forecast_seq = u.forecast_seq)
        )
      )::integer as voided
    from score_sets s
    cross join lateral unnest(s.forecast_seqs, s.features, s.statuses) as u (forecast_seq, feature, status)
    where s.table_id = ${tableId}
      and s.settled_seq = ${seq}
      and u.feature = 0`;
  return row ?? { nextColors: 0, voided: 0 };
}

function joined(sql: Queryable) {
  return sql`
    conflicts c
    join tables t on t.id = c.table_id
    left join named_rounds r on r.table_id = c.table_id and r.round_id = c.round_id
    left join round_revision v on v.conflict_id = c.id`;
}

function columnsOf(sql: Queryable) {
  return sql`
    c.id,
    c.table_id as "tableId",
    t.house_id || '/' || t.game || '/' || t.market as "table",
    c.round_id as "roundId",
    c.kept_hundredths as kept,
    c.other_hundredths as other,
    c.other_raw as "otherRaw",
    utc_text(c.first_seen_at) as "firstSeenAt",
    utc_text(c.last_seen_at) as "lastSeenAt",
    c.times,
    c.further,
    case when r.source in ('poll', 'history') then utc_text(r.received_at) end as "keptReceivedAt",
    utc_text(c.payload_received_at) as "otherReceivedAt",
    r.seq,
    r.raw_value as "rawValue",
    r.color,
    r.source,
    utc_text(r.received_at) as "receivedAt",
    r.late,
    r.verified,
    utc_text(c.decided_at) as "decidedAt",
    v.decided_by as "decidedBy",
    v.reason as decision,
    v.to_hundredths as "to"`;
}
