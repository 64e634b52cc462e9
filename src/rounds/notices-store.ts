import type { Queryable, Sql, Transaction } from "../db/client.ts";
import {
  conflictSentence,
  revisionSentence,
  gapSentence,
  NOTICE_HOURS,
  proofSentence,
  quarantineSentence,
  stalledSentence,
  type ConflictFacts,
  type GapFacts,
  type NoticeKind,
  type RefusedFacts,
  type RevisionFacts,
} from "./notices.ts";
import { publishTables } from "./publish-store.ts";

/** A notice to open or to keep up to date (`text`), or to close (null). */
export interface NoticeChange {
  tableId: number;
  kind: NoticeKind;
  text: string | null;
  /** ISO 8601: when it opens, if it is not open; now where it is left out. */
  since?: string;
}

/** Why a gap was given up that a person closed, as callers are told. */
const CLOSED_BY_HAND = "we stopped asking for them";
/** Tables whose notices are looked after in one transaction. */
const MOST_TABLES = 100;

/** When the open notices of tables were opened (ISO 8601), by table and kind. */
export async function listOpenNotices(
  sql: Queryable,
  tableIds: readonly number[],
): Promise<Map<number, Map<NoticeKind, string>>> {
  const open = new Map<number, Map<NoticeKind, string>>();
  const rows = await sql<{ table_id: number; kind: NoticeKind; opened_at: string }[]>`
    select table_id, kind, utc_text(opened_at) as opened_at
    from notices
    where table_id = any(${[...tableIds]}::integer[])
      and closed_at is null`;
  for (const { table_id, kind, opened_at } of rows) {
    const ofTable = open.get(table_id) ?? new Map<NoticeKind, string>();
    open.set(table_id, ofTable.set(kind, opened_at));
  }
  return open;
}

/** Opens, rewrites and closes notices, under the locks of their tables; at most one change for a table and kind. */
export async function saveNotices(sql: Transaction, changes: readonly NoticeChange[]): Promise<void> {
  if (changes.length === 0) return;
  const rows = changes.map(({ tableId, kind, text, since }) => ({ table_id: tableId, kind, text, since }));
  await sql`
    with changed as (
      select *
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
        as c (table_id integer, kind text, text text, since timestamptz)
    ),
    closed as (
      update notices n
      set closed_at = clock_timestamp()
      from changed c
      where c.text is null
        and n.table_id = c.table_id
        and n.kind = c.kind
        and n.closed_at is null
    )
    insert into notices as n (table_id, kind, text, opened_at)
    select table_id, kind, text, coalesce(since, clock_timestamp())
    from changed
    where text is not null
    order by table_id, kind
    on conflict (table_id, kind) where closed_at is null do update
    set
      text = excluded.text,
      updated_at = clock_timestamp()
    where n.text <> excluded.text`;
}

/**
 * Makes the notices of gaps, conflicts, failed proofs and quarantine say what the facts are now; each goes on for a
 * while after its cause was last seen. Under the locks of the tables.
 */
export async function refreshNotices(sql: Transaction, tableIds: readonly number[]): Promise<void> {
  if (tableIds.length === 0) return;
  const rows = await sql<
    {
      id: number;
      gap: (Omit<GapFacts, "missing" | "from" | "to"> & Record<"missing" | "from" | "to", string | null>) | null;
      conflict: (Omit<ConflictFacts, "kept" | "other"> & { kept: string; other: string }) | null;
      revision: (Omit<RevisionFacts, "from" | "to"> & Record<"from" | "to", string | null>) | null;
      proof: RefusedFacts | null;
      quarantine: RefusedFacts | null;
    }[]
  >`
    select
      t.id,
      (
        select jsonb_build_object(
          'ranges', count(g.missing),
          'missing', (sum(g.missing - g.filled))::text,
          'from', min(g.from_number)::text,
          'to', max(g.to_number)::text,
          'unknown', count(*) - count(g.missing),
          'since', utc_text(min(g.opened_at)),
          'isTrying', bool_or(g.state = 'open'),
          -- what an operator wrote down is for operators
          'reason', (
            array_agg(
              case when g.closed_by is null then g.reason else ${CLOSED_BY_HAND} end order by g.closed_at desc nulls last
            )
          )[1]
        )
        from gaps g
        where g.table_id = t.id
          and (
            g.state = 'open'
            or g.state = 'given_up' and g.closed_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.givenUpGap})
          )
        having count(*) > 0
      ) as gap,
      (
        select jsonb_build_object(
          'rounds', count(distinct c.round_id),
          'roundId', (array_agg(c.round_id order by c.id desc))[1],
          'kept', (array_agg(c.kept_hundredths order by c.id desc))[1]::text,
          'other', (array_agg(c.other_hundredths order by c.id desc))[1]::text,
          'since', utc_text(min(c.first_seen_at))
        )
        from conflicts c
        where c.table_id = t.id
          and c.decided_at is null
          and c.last_seen_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.conflict})
        having count(*) > 0
      ) as conflict,
      (
        select jsonb_build_object(
          'rounds', count(distinct v.round_id),
          'roundId', (array_agg(v.round_id order by v.id desc))[1],
          'from', (array_agg(v.from_hundredths order by v.id desc))[1]::text,
          'to', (array_agg(v.to_hundredths order by v.id desc))[1]::text,
          'since', utc_text(min(v.decided_at))
        )
        from round_revision v
        where v.table_id = t.id
          and v.from_hundredths is distinct from v.to_hundredths
          and v.decided_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.conflict})
        having count(*) > 0
      ) as revision,
      (
        select ${refusedFacts(sql)}
        from quarantine q
        where q.table_id = t.id
          and q.state = 'open'
          and q.code = 'proof_mismatch'
          and q.last_seen_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.proof})
        having count(*) > 0
      ) as proof,
      (
        select ${refusedFacts(sql)}
        from quarantine q
        where q.table_id = t.id
          and q.state = 'open'
          and q.code not in ('proof_mismatch', 'stuck_feed')
          -- a round that was read after all, or before, hides nothing
          and not exists (
            select
            from rounds r
            where r.table_id = q.table_id
              and r.round_id = q.round_id
          )
          and q.last_seen_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.quarantine})
        having count(*) > 0
      ) as quarantine
    from tables t
    where t.id = any(${[...tableIds]}::integer[])`;
  const changes = rows.flatMap(({ id, gap, conflict, revision, proof, quarantine }): NoticeChange[] => [
    { tableId: id, kind: "gap", text: gap === null ? null : gapSentence(asGapFacts(gap)) },
    {
      tableId: id,
      kind: "conflict",
      text: disputeText(
        conflict === null
          ? null
          : conflictSentence({ ...conflict, kept: BigInt(conflict.kept), other: BigInt(conflict.other) }),
        revision === null
          ? null
          : revisionSentence({ ...revision, from: bigintOf(revision.from), to: bigintOf(revision.to) }),
      ),
    },
    { tableId: id, kind: "proof", text: proof === null ? null : proofSentence(proof) },
    { tableId: id, kind: "quarantine", text: quarantine === null ? null : quarantineSentence(quarantine) },
  ]);
  await saveNotices(sql, changes);
}

/** What came twice and what was corrected are told as one notice; null where there is neither. */
function disputeText(conflict: string | null, revision: string | null): string | null {
  const sentences = [conflict, revision].filter((sentence) => sentence !== null);
  return sentences.length === 0 ? null : sentences.join(". ");
}

function bigintOf(text: string | null): bigint | null {
  return text === null ? null : BigInt(text);
}

function refusedFacts(sql: Transaction) {
  return sql`
    jsonb_build_object(
      'items', count(*),
      'roundId', (array_agg(q.round_id order by q.id desc))[1],
      'reason', (array_agg(q.reason order by q.id desc))[1],
      'since', utc_text(min(q.first_seen_at))
    )`;
}

function asGapFacts(
  row: Omit<GapFacts, "missing" | "from" | "to"> & Record<"missing" | "from" | "to", string | null>,
): GapFacts {
  return {
    ...row,
    missing: BigInt(row.missing ?? 0),
    from: row.from === null ? null : BigInt(row.from),
    to: row.to === null ? null : BigInt(row.to),
  };
}

/**
 * Closes, or brings up to date, notices whose cause was not seen for long enough; for a timer. Gives how many tables
 * are published anew; above zero, tell the readers.
 */
export async function expireNotices(sql: Sql): Promise<number> {
  const hours = Object.values(NOTICE_HOURS);
  return sql.begin(async (transaction) => {
    const tables = await transaction<{ id: number }[]>`
      select id
      from tables
      where id in (
        select table_id
        from notices
        where closed_at is null
          and kind in ('gap', 'conflict', 'proof', 'quarantine')
          and opened_at < clock_timestamp() - make_interval(hours => ${Math.min(...hours)})
      )
      order by id
      for no key update skip locked`;
    const ids = tables.map(({ id }) => id);
    await refreshNotices(transaction, ids);
    return (await publishTables(transaction, ids)).length;
  });
}

/**
 * Opens a notice for each polled table of which no round came for the live window though rounds came before, and closes
 * it where one came, or where nobody polls; for a timer. Gives how many tables are published anew.
 */
export async function refreshStalledNotices(sql: Sql, liveWindowSeconds: number): Promise<number> {
  return sql.begin(async (transaction) => {
    const tables = await transaction<{ id: number; silent: boolean; since: string }[]>`
      select
        t.id,
        s.silent,
        utc_text(t.last_polled_round_at) as since
      from tables t
      join houses h on h.id = t.house_id
      cross join lateral (
        select
          h.enabled
          and h.paused_at is null
          and t.enabled
          and t.last_polled_round_at < clock_timestamp() - ${liveWindowSeconds} * interval '1 second' as silent
      ) s
      where t.last_polled_round_at is not null
        and s.silent is distinct from exists (
          select
          from notices n
          where n.table_id = t.id
            and n.kind = 'stalled'
            and n.closed_at is null
        )
      order by t.id
      limit ${MOST_TABLES}
      for no key update of t skip locked`;
    await saveNotices(
      transaction,
      tables.map(({ id, silent, since }) => ({
        tableId: id,
        kind: "stalled",
        text: silent ? stalledSentence(since) : null,
      })),
    );
    const ids = tables.map(({ id }) => id);
    return (await publishTables(transaction, ids)).length;
  });
}
