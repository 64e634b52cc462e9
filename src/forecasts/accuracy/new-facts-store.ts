import type { Queryable } from "../../db/client.ts";
import type { RevisionFacts, RoundFacts, ScoreFacts, SetFacts } from "./facts.ts";
import { hourNumber } from "./mark-store.ts";

/** Range of rows of a table to read: after one number, up to another if it is given. */
export interface After {
  tableId: number;
  after: bigint;
  upTo?: bigint | undefined;
}

function afterArrays(tables: readonly After[]) {
  return {
    ids: tables.map(({ tableId }) => tableId),
    after: tables.map(({ after }) => after),
    upTo: tables.map(({ upTo }) => upTo ?? null),
  };
}

/** The first `limit` score sets of each table after a settled seq, in their order. */
export async function listScores(
  sql: Queryable,
  tables: readonly After[],
  limit: number,
): Promise<(ScoreFacts & { tableId: number })[]> {
  const { ids, after, upTo } = afterArrays(tables);
  const rows = await sql<
    {
      tableId: number;
      settledSeq: bigint;
      cutoffSeqs: bigint[];
      features: number[];
      reasons: number[];
      outcomes: (number | null)[];
    }[]
  >`
    select s.table_id as "tableId", s.settled_seq as "settledSeq", s.cutoff_seqs as "cutoffSeqs", s.features, s.reasons,
      s.outcomes
    from unnest(${ids}::integer[], ${after}::bigint[], ${upTo}::bigint[]) as requested (table_id, after, up_to)
    cross join lateral (
      select *
      from score_sets
      where table_id = requested.table_id
        and settled_seq > requested.after
        and settled_seq <= coalesce(requested.up_to, 9223372036854775807)
      order by settled_seq
      limit ${limit}
    ) s
    order by s.table_id, s.settled_seq`;
  return rows.map(({ tableId, settledSeq, cutoffSeqs, features, reasons, outcomes }) => ({
    tableId,
    settledSeq,
    settlements: cutoffSeqs.map((cutoffSeq, place) => ({
      cutoffSeq,
      feature: features[place]!,
      reason: reasons[place]!,
      outcome: outcomes[place]!,
    })),
  }));
}

/** The first `limit` revisions of each table after a number, each with the score that it replaces. */
export async function listRevisions(
  sql: Queryable,
  tables: readonly After[],
  limit: number,
): Promise<(RevisionFacts & { tableId: number })[]> {
  const { ids, after, upTo } = afterArrays(tables);
  const rows = await sql<
    (Pick<RevisionFacts, "revision" | "cutoffSeq" | "feature"> & {
      tableId: number;
      reason: number;
      outcome: number | null;
      reasonBefore: number | null;
      outcomeBefore: number | null;
    })[]
  >`
    select
      r.table_id as "tableId", r.revision, r.cutoff_seq as "cutoffSeq", r.feature, r.reason, r.outcome,
      before.reason as "reasonBefore", before.outcome as "outcomeBefore"
    from unnest(${ids}::integer[], ${after}::bigint[], ${upTo}::bigint[]) as requested (table_id, after, up_to)
    cross join lateral (
      select *
      from score_revisions
      where table_id = requested.table_id
        and revision > requested.after
        and revision <= coalesce(requested.up_to, 9223372036854775807)
      order by revision
      limit ${limit}
    ) r
    left join lateral (
      select reason, outcome
      from score_revisions
      where r.rev > 2
        and table_id = r.table_id
        and forecast_seq = r.forecast_seq
        and rev = r.rev - 1
      union all
      (
        select s.reasons[place.at], s.outcomes[place.at]
        from score_sets s
        cross join lateral (select array_position(s.forecast_seqs, r.forecast_seq) as at) place
        where r.rev = 2
          and s.table_id = r.table_id
          and s.settled_seq > r.cutoff_seq
          and place.at is not null
        order by s.settled_seq
        limit 1
      )
    ) before on true
    order by r.table_id, r.revision`;
  return rows.map(({ reason, outcome, reasonBefore, outcomeBefore, ...row }) => ({
    ...row,
    before: reasonBefore === null ? null : { reason: reasonBefore, outcome: outcomeBefore },
    after: { reason, outcome },
  }));
}

/**
 * The first `limit` rounds of each table after a seq that count for coverage: all polled rounds, and others that were on
 * time. `lastSeq` is the newest stored seq of the table at that moment; not the head's, since a mark that followed a
 * damaged head would skip rounds forever.
 */
export async function listRounds(
  sql: Queryable,
  tables: readonly After[],
  limit: number,
): Promise<{ tableId: number; lastSeq: bigint; rounds: RoundFacts[] }[]> {
  const { ids, after, upTo } = afterArrays(tables);
  const rows = await sql<
    { tableId: number; lastSeq: bigint; seq: bigint | null; ordinal: bigint | null; hour: number | null }[]
  >`
    select newest.table_id as "tableId", newest.seq as "lastSeq", r.seq, r.ordinal, r.hour
    from unnest(${ids}::integer[], ${after}::bigint[], ${upTo}::bigint[]) as requested (table_id, after, up_to)
    cross join lateral (
      select table_id, seq
      from rounds
      where table_id = requested.table_id
      order by seq desc
      limit 1
    ) newest
    left join lateral (
      select r.seq, r.ordinal, ${hourNumber(sql, "r.received_at")} as hour
      from rounds r
      where r.table_id = requested.table_id
        and r.seq > requested.after
        and r.seq <= coalesce(requested.up_to, 9223372036854775807)
        and (not r.late or r.source = 0)
      order by r.seq
      limit ${limit}
    ) r on true
    order by newest.table_id, r.seq`;
  return [...Map.groupBy(rows, ({ tableId }) => tableId)].map(([tableId, own]) => ({
    tableId,
    lastSeq: own[0]!.lastSeq,
    rounds: own.flatMap(({ seq, ordinal, hour }) => (seq === null || hour === null ? [] : [{ seq, ordinal, hour }])),
  }));
}

/** A set and its table. */
export type SetRow = SetFacts & { tableId: number };

const setColumns = (sql: Queryable) => sql`
  s.table_id as "tableId", s.cutoff_seq as "cutoffSeq", s.cutoff_ordinal as "cutoffOrdinal", s.model,
  ${hourNumber(sql, "s.issued_at")} as hour,
  s.features, s.horizons, s.p_ppm as "pPpm", s.base_ppm as "basePpm", s.reference_ppm as "referencePpm", s.ends,
  ${isSealed(sql)} as "isSealed"`;

/** The witness's time has whole seconds, so its signature may be up to a second younger. */
const isSealed = (sql: Queryable) => sql`
  exists (
    select
    from log_entries e
    cross join lateral (
      select cosigned_at
      from log_checkpoints
      where log_id = e.log_id
        and size > e.index
        and cosigned_at is not null
      order by size
      limit 1
    ) c
    cross join lateral (
      select requested_at
      from rounds
      where table_id = s.table_id
        and seq > s.cutoff_seq
        and ordinal is not null
      order by seq
      limit 1
    ) r
    where e.table_id = s.table_id
      and e.forecast_seq = s.first_seq + cardinality(s.features) - 1
      and c.cosigned_at + interval '1 second' <= r.requested_at
  )`;

/** The first `limit` sets of each table after a cutoff, in their order. */
export async function listSets(sql: Queryable, tables: readonly After[], limit: number): Promise<SetRow[]> {
  const { ids, after, upTo } = afterArrays(tables);
  return sql<SetRow[]>`
    select ${setColumns(sql)}
    from unnest(${ids}::integer[], ${after}::bigint[], ${upTo}::bigint[]) as requested (table_id, after, up_to)
    cross join lateral (
      select *
      from forecast_sets
      where table_id = requested.table_id
        and cutoff_seq > requested.after
        and cutoff_seq <= coalesce(requested.up_to, 9223372036854775807)
      order by cutoff_seq
      limit ${limit}
    ) s
    order by s.table_id, s.cutoff_seq`;
}

/** Sets by their keys; missing ones are left out. */
export async function readSets(
  sql: Queryable,
  keys: readonly { tableId: number; cutoffSeq: bigint }[],
): Promise<SetRow[]> {
  if (keys.length === 0) return [];
  return sql<SetRow[]>`
    select ${setColumns(sql)}
    from unnest(
      ${keys.map(({ tableId }) => tableId)}::integer[],
      ${keys.map(({ cutoffSeq }) => cutoffSeq)}::bigint[]
    ) as requested (table_id, cutoff_seq)
    join forecast_sets s on s.table_id = requested.table_id and s.cutoff_seq = requested.cutoff_seq`;
}
