import type { Queryable } from "../db/client.ts";
import { numberOf } from "../rounds/round.ts";

/** A round as callers see it. Rounds of one table are sorted by `order`, then by `seq`; see RoundText. */
export interface RoundRow {
  tableId: number;
  seq: number;
  order: bigint;
  roundId: string;
  hundredths: bigint;
  palette: number;
  color: number;
  occurredAt: string | null;
  receivedAt: string;
  verified: boolean | null;
  late: boolean;
}

/** Rounds with a seq above `after`, up to `lastSeq`. */
export interface Span {
  id: number;
  roundIds: "consecutive" | "opaque";
  /** How often staff set back its newest number. */
  resets: number;
  after: number;
  lastSeq: number;
}

/**
 * Returns the rounds of these spans. The inner order forces one index lookup per span: with a join, PostgreSQL reads
 * all rounds, because it cannot know how short a span is.
 */
export async function readNewRounds(sql: Queryable, spans: readonly Span[]): Promise<RoundRow[]> {
  if (spans.length === 0) return [];
  const rows = await sql<StoredRound[]>`
    select ${roundColumns(sql)}
    from unnest(
      ${spans.map(({ id }) => id)}::integer[],
      ${spans.map(({ after }) => after)}::bigint[],
      ${spans.map(({ lastSeq }) => lastSeq)}::bigint[]
    ) as wanted (table_id, after, last_seq)
    cross join lateral (
      select *
      from rounds
      where table_id = wanted.table_id
        and seq > wanted.after
        and seq <= wanted.last_seq
      order by seq
      offset 0
    ) r`;
  return asRounds(rows, spans);
}

/**
 * Returns the rounds of these tables up to their `lastSeq` that include the newest `limit` of each. A late round that
 * was stored before an on-time one is older, so no round before the `limit` newest on-time rounds can be among the
 * newest. A number above that of a later reset was wrong, and is in the place of the number that it was reset to.
 */
export async function readNewestRounds(sql: Queryable, spans: readonly Span[], limit: number): Promise<RoundRow[]> {
  if (spans.length === 0) return [];
  const rows = await sql<StoredRound[]>`
    select ${roundColumns(sql)}, r.reset_to as "resetTo"
    from unnest(
      ${spans.map(({ id }) => id)}::integer[],
      ${spans.map(({ lastSeq }) => lastSeq)}::bigint[],
      ${spans.map(({ roundIds }) => roundIds === "consecutive")}::boolean[],
      ${spans.map(({ resets }) => resets > 0)}::boolean[]
    ) as wanted (table_id, last_seq, by_number, is_reset)
    cross join lateral (
      select case when count(*) = ${limit} then min(seq) else 0 end as seq
      from (
        select seq
        from rounds
        where table_id = wanted.table_id
          and seq <= wanted.last_seq
          and not late
        order by seq desc
        limit ${limit}
      ) newest
    ) oldest
    cross join lateral (
      select *
      from (
        select
          *,
          case when wanted.is_reset then (
            select min(n.to_number)::text
            from number_resets n
            where n.table_id = rounds.table_id
              and n.after_seq >= rounds.seq
              and (length(n.to_number::text), n.to_number::text collate "C") < (length(round_id), round_id)
          ) end as reset_to
        from rounds
        where table_id = wanted.table_id
          and seq >= oldest.seq
          and seq <= wanted.last_seq
      ) placed
      order by
        case when wanted.by_number then length(coalesce(reset_to, round_id)) end desc,
        case when wanted.by_number then coalesce(reset_to, round_id) end collate "C" desc,
        case when not wanted.by_number then coalesce(occurred_at, received_at) end desc,
        seq desc
      limit ${limit}
    ) r`;
  return asRounds(rows, spans);
}

type StoredRound = Omit<RoundRow, "order"> & { micros: bigint; resetTo?: string | null };

function roundColumns(sql: Queryable) {
  return sql`
    r.table_id as "tableId",
    r.seq::float8 as seq,
    (extract(epoch from coalesce(r.occurred_at, r.received_at)) * 1000000)::bigint as micros,
    r.round_id as "roundId",
    r.hundredths,
    r.palette,
    r.color,
    utc_text(r.occurred_at) as "occurredAt",
    utc_text(r.received_at) as "receivedAt",
    r.verified,
    r.late`;
}

/** If ids count up, a round without a number has no order, and is left out. */
function asRounds(rows: readonly StoredRound[], spans: readonly Span[]): RoundRow[] {
  const byNumber = new Set(spans.flatMap(({ id, roundIds }) => (roundIds === "consecutive" ? [id] : [])));
  return rows.flatMap(({ micros, resetTo, ...row }) => {
    const order = byNumber.has(row.tableId) ? numberOf(resetTo ?? row.roundId) : micros;
    return order === null ? [] : [{ ...row, order }];
  });
}
