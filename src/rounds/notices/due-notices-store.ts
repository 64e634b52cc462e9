import type { Transaction } from "../../db/client.ts";
import {
  conflictSentence,
  revisionSentence,
  gapSentence,
  modelSentence,
  MOST_CAUSES,
  NOTICE_HOURS,
  proofSentence,
  quarantineSentence,
  type ConflictFacts,
  type GapFacts,
  type ModelFacts,
  type NoticeKind,
  type RefusedFacts,
  type RevisionFacts,
} from "./notices.ts";

/** The public reason of a gap that staff closed. */
const CLOSED_BY_STAFF = "we stopped asking for them";

/** The required notice of a kind; `text` is null if it must be closed. */
export interface DueNotice {
  tableId: number;
  kind: NoticeKind;
  text: string | null;
}

/** The facts of each kind of cause of a table as JSON, with large numbers as texts; null if there is no such cause. */
interface CauseRow {
  id: number;
  gap: (Omit<GapFacts, "missing" | "from" | "to"> & Record<"missing" | "from" | "to", string | null>) | null;
  conflict: (Omit<ConflictFacts, "kept" | "other"> & { kept: string; other: string }) | null;
  revision: (Omit<RevisionFacts, "from" | "to"> & Record<"from" | "to", string | null>) | null;
  proof: RefusedFacts | null;
  quarantine: RefusedFacts | null;
  model: ModelFacts | null;
}

/** Lists what tables must state now of gaps, conflicts, failed proofs, quarantine and promoted models. */
export async function listDueNotices(sql: Transaction, tableIds: readonly number[]): Promise<DueNotice[]> {
  if (tableIds.length === 0) return [];
  const rows = await sql<CauseRow[]>`
    select
      t.id,
      (${gapFacts(sql)}) as gap,
      (${conflictFacts(sql)}) as conflict,
      (${revisionFacts(sql)}) as revision,
      (${proofFacts(sql)}) as proof,
      (${quarantineFacts(sql)}) as quarantine,
      (${modelFacts(sql)}) as model
    from tables t
    join table_heads h on h.table_id = t.id
    where t.id = any(${[...tableIds]}::integer[])`;
  return rows.flatMap(noticesOf);
}

function noticesOf({ id, gap, conflict, revision, proof, quarantine, model }: CauseRow): DueNotice[] {
  const notice = (kind: NoticeKind, text: string | null): DueNotice => ({ tableId: id, kind, text });
  return [
    notice("gap", gap === null ? null : gapSentence(asGapFacts(gap))),
    notice(
      "conflict",
      disputeText(
        conflict === null
          ? null
          : conflictSentence({ ...conflict, kept: BigInt(conflict.kept), other: BigInt(conflict.other) }),
        revision === null
          ? null
          : revisionSentence({ ...revision, from: bigintOf(revision.from), to: bigintOf(revision.to) }),
      ),
    ),
    notice("proof", proof === null ? null : proofSentence(proof)),
    notice("quarantine", quarantine === null ? null : quarantineSentence(quarantine)),
    notice("model", model === null ? null : modelSentence(model)),
  ];
}

// The facts of a cause, of the table `t` of the query around it. One row more than are counted is read.

function gapFacts(sql: Transaction) {
  return sql`
    select jsonb_build_object(
      'ranges', count(g.missing),
      'missing', (sum(g.missing - g.filled))::text,
      'from', min(g.from_number)::text,
      'to', max(g.to_number)::text,
      'unknown', count(*) - count(g.missing),
      'since', utc_text(min(g.opened_at)),
      'isTrying', bool_or(g.state = 'open'),
      -- an operator's own reason is not public
      'reason', (
        array_agg(
          case when g.closed_by is null then g.reason else ${CLOSED_BY_STAFF} end order by g.closed_at desc nulls last
        )
      )[1]
    )
    from (
      (
        select *
        from gaps
        where table_id = t.id
          and state = 'open'
        order by next_attempt_at -- by an index
        limit ${MOST_CAUSES + 1}
      )
      union all
      (
        select *
        from gaps
        where table_id = t.id
          and state = 'given_up'
          and closed_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.givenUpGap})
        order by closed_at desc
        limit ${MOST_CAUSES + 1}
      )
    ) g
    having count(*) > 0`;
}

function conflictFacts(sql: Transaction) {
  return sql`
    select jsonb_build_object(
      'rounds', count(distinct c.round_id),
      'results', count(*),
      'roundId', (array_agg(c.round_id order by c.id desc))[1],
      'kept', (array_agg(c.kept_hundredths order by c.id desc))[1]::text,
      'other', (array_agg(c.other_hundredths order by c.id desc))[1]::text,
      'since', utc_text(min(c.first_seen_at))
    )
    from (
      select *
      from conflicts
      where table_id = t.id
        and decided_at is null
        and last_seen_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.conflict})
      order by last_seen_at desc
      limit ${MOST_CAUSES + 1}
    ) c
    having count(*) > 0`;
}

function revisionFacts(sql: Transaction) {
  return sql`
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
    having count(*) > 0`;
}

function proofFacts(sql: Transaction) {
  return sql`
    select ${refusedFacts(sql)}
    from (
      select *
      from quarantine
      where table_id = t.id
        and state = 'open'
        and code = 'proof_mismatch'
        and last_seen_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.proof})
      order by last_seen_at desc
      limit ${MOST_CAUSES + 1}
    ) q
    having count(*) > 0`;
}

function quarantineFacts(sql: Transaction) {
  return sql`
    select ${refusedFacts(sql)}
    from (
      select *
      from quarantine listed
      where table_id = t.id
        and state = 'open'
        and code not in ('proof_mismatch', 'stuck_feed')
        -- a round that is stored after all hides nothing
        and not exists (
          select
          from rounds r
          where r.table_id = listed.table_id
            and r.round_id = listed.round_id
        )
        and last_seen_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.quarantine})
      order by last_seen_at desc
      limit ${MOST_CAUSES + 1}
    ) q
    having count(*) > 0`;
}

function modelFacts(sql: Transaction) {
  return sql`
    select jsonb_build_object(
      'from', p.before,
      'to', p.model,
      'since', utc_text(p.created_at)
    )
    from (
      select c.model, c.created_at, lag(c.model, 1, h.first_model) over (order by c.id) as before
      from calibrations c
      where c.table_id = t.id
        and c.kind = 'promoted'
      order by c.id desc
      limit 1
    ) p
    where p.model <> p.before
      and p.created_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.model})`;
}

/** Conflicts and corrections are one notice; null if there are neither. */
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
