import type { Queryable, Sql, Transaction } from "../../db/client.ts";
import type { Query } from "../../db/query.ts";
import { cut } from "../../text.ts";
import { lockFreeHeads, lockHeads, touchHeads } from "../../tables/heads-store.ts";
import {
  conflictSentence,
  revisionSentence,
  gapSentence,
  modelSentence,
  NOTICE_HOURS,
  proofSentence,
  quarantineSentence,
  stalledSentence,
  type ConflictFacts,
  type GapFacts,
  type ModelFacts,
  type NoticeKind,
  type RefusedFacts,
  type RevisionFacts,
} from "./notices.ts";

/** A notice to open or to update (`text`), or to close (null). */
export interface NoticeChange {
  tableId: number;
  kind: NoticeKind;
  text: string | null;
  /** ISO 8601: when it opens, if it is not open; now if it is left out. */
  since?: string;
}

/** The required text of a notice, and when the first of its causes expires; null if none expires. */
interface DueNotice extends NoticeChange {
  expiresAt: string | null;
}

/** The public reason of a gap that staff closed. */
const CLOSED_BY_STAFF = "we stopped asking for them";
/** Tables whose heads are locked in one transaction: a pass over any of them waits for all. */
const LOCKED_TABLES = 20;
/** Tables that a timer handles per tick; the next tick continues. */
const TABLES_PER_TICK = 500;
/** The limit of the column. */
const LONGEST_TEXT = 2_000;

/**
 * Opens, updates and closes notices, at most one change per table and kind, and advances the heads of the tables whose
 * notices changed. Returns their ids. The caller holds the locks of the heads.
 */
async function saveNotices(tx: Transaction, changes: readonly NoticeChange[]): Promise<number[]> {
  if (changes.length === 0) return [];
  const changed = (await saveNoticesStatement(tx, changes)).map(({ id }) => id);
  await touchHeads(tx, changed);
  return changed;
}

/**
 * The statement that opens, updates and closes notices, at most one change per table and kind, and returns the tables
 * whose notices changed.
 */
export function saveNoticesStatement(
  sql: Queryable,
  changes: readonly NoticeChange[],
): Query<readonly { id: number }[]> {
  const rows = changes.map(({ tableId, kind, text, since }) => {
    return { table_id: tableId, kind, text: text === null ? null : cut(text, LONGEST_TEXT), since };
  });
  return sql<{ id: number }[]>`
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
      returning n.table_id
    ),
    saved as (
      insert into notices as n (table_id, kind, text, opened_at)
      select table_id, kind, text, coalesce(since, clock_timestamp())
      from changed
      where text is not null
      order by table_id, kind
      on conflict (table_id, kind) where closed_at is null do update
      set
        text = excluded.text,
        updated_at = clock_timestamp()
      where n.text <> excluded.text
      returning n.table_id
    )
    select table_id as id from closed
    union
    select table_id from saved`;
}

/**
 * Updates the notices of gaps, conflicts, failed proofs, quarantine and promoted models; each stays open for a while
 * after its cause was last seen. Locks and advances the heads of those tables only whose notices changed, twenty per
 * transaction, and returns their ids. A conflict that is listed again changes no notice, so it locks nothing.
 */
export async function refreshNotices(sql: Sql, tableIds: readonly number[]): Promise<number[]> {
  const changed: number[] = [];
  for (let at = 0; at < tableIds.length; at += LOCKED_TABLES) {
    const ids = tableIds.slice(at, at + LOCKED_TABLES);
    changed.push(...(await sql.begin((tx) => refreshNoticesWithin(tx, ids))));
  }
  return changed;
}

/** The same in the transaction of the caller, which keeps the locks. */
export async function refreshNoticesWithin(sql: Transaction, tableIds: readonly number[]): Promise<number[]> {
  const seen = await listDueNotices(sql, tableIds);
  const outdated = [...new Set((await listOutdated(sql, seen)).map(({ tableId }) => tableId))];
  if (outdated.length === 0) {
    await saveExpiries(sql, seen);
    return [];
  }
  await lockHeads(sql, outdated);
  const due = await listDueNotices(sql, outdated);
  const changed = await saveNotices(sql, await listOutdated(sql, due));
  await saveExpiries(sql, [...seen.filter(({ tableId }) => !outdated.includes(tableId)), ...due]);
  return changed;
}

/** The notices whose text differs from the open one. */
async function listOutdated(sql: Queryable, due: readonly DueNotice[]): Promise<DueNotice[]> {
  const open = await sql<{ key: string; text: string }[]>`
    select table_id || ' ' || kind as key, text
    from notices
    where closed_at is null
      and table_id = any(${[...new Set(due.map(({ tableId }) => tableId))]}::integer[])`;
  const texts = new Map(open.map(({ key, text }) => [key, text]));
  return due.filter(({ tableId, kind, text }) => text !== (texts.get(`${tableId} ${kind}`) ?? null));
}

/** Stores when open notices must be checked again. Needs no lock: a time that is too early costs one more check. */
async function saveExpiries(sql: Queryable, due: readonly DueNotice[]): Promise<void> {
  const open = due.filter(({ text }) => text !== null);
  if (open.length === 0) return;
  await sql`
    update notices n
    set expires_at = d.at::timestamptz
    from unnest(
      ${open.map(({ tableId }) => tableId)}::integer[],
      ${open.map(({ kind }) => kind)}::text[],
      ${open.map(({ expiresAt }) => expiresAt)}::text[]
    ) as d (table_id, kind, at)
    where n.table_id = d.table_id
      and n.kind = d.kind
      and n.closed_at is null
      and n.expires_at is distinct from d.at::timestamptz`;
}

/** The facts of each kind of cause of a table as JSON, with large numbers as texts; null if there is no such cause. */
interface CauseRow {
  id: number;
  gap: (Expiring & Omit<GapFacts, "missing" | "from" | "to"> & Record<"missing" | "from" | "to", string | null>) | null;
  conflict: (Expiring & Omit<ConflictFacts, "kept" | "other"> & { kept: string; other: string }) | null;
  revision: (Expiring & Omit<RevisionFacts, "from" | "to"> & Record<"from" | "to", string | null>) | null;
  proof: (Expiring & RefusedFacts) | null;
  quarantine: (Expiring & RefusedFacts) | null;
  model: (Expiring & ModelFacts) | null;
}

/** The notices of these kinds that tables must have, from the rows of their causes. */
async function listDueNotices(sql: Transaction, tableIds: readonly number[]): Promise<DueNotice[]> {
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
  const notice = (kind: NoticeKind, text: string | null, ...causes: (Expiring | null)[]): DueNotice => {
    const [expiresAt = null] = causes.flatMap((cause) => cause?.expiresAt ?? []).toSorted();
    return { tableId: id, kind, text, expiresAt };
  };
  return [
    notice("gap", gap === null ? null : gapSentence(asGapFacts(gap)), gap),
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
      conflict,
      revision,
    ),
    notice("proof", proof === null ? null : proofSentence(proof), proof),
    notice("quarantine", quarantine === null ? null : quarantineSentence(quarantine), quarantine),
    notice("model", model === null ? null : modelSentence(model), model),
  ];
}

// The facts of a cause, of the table `t` of the query around it.

function gapFacts(sql: Transaction) {
  return sql`
    select jsonb_build_object(
      'ranges', count(g.missing),
      'missing', (sum(g.missing - g.filled))::text,
      'from', min(g.from_number)::text,
      'to', max(g.to_number)::text,
      'unknown', count(*) - count(g.missing),
      'since', utc_text(min(g.opened_at)),
      'expiresAt', ${expiry(sql, sql`min(g.closed_at) filter (where g.state = 'given_up')`, NOTICE_HOURS.givenUpGap)},
      'isTrying', bool_or(g.state = 'open'),
      -- an operator's own reason is not public
      'reason', (
        array_agg(
          case when g.closed_by is null then g.reason else ${CLOSED_BY_STAFF} end order by g.closed_at desc nulls last
        )
      )[1]
    )
    from gaps g
    where g.table_id = t.id
      and (
        g.state = 'open'
        or g.state = 'given_up' and g.closed_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.givenUpGap})
      )
    having count(*) > 0`;
}

function conflictFacts(sql: Transaction) {
  return sql`
    select jsonb_build_object(
      'rounds', count(distinct c.round_id),
      'roundId', (array_agg(c.round_id order by c.id desc))[1],
      'kept', (array_agg(c.kept_hundredths order by c.id desc))[1]::text,
      'other', (array_agg(c.other_hundredths order by c.id desc))[1]::text,
      'since', utc_text(min(c.first_seen_at)),
      'expiresAt', ${expiry(sql, sql`min(c.last_seen_at)`, NOTICE_HOURS.conflict)}
    )
    from conflicts c
    where c.table_id = t.id
      and c.decided_at is null
      and c.last_seen_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.conflict})
    having count(*) > 0`;
}

function revisionFacts(sql: Transaction) {
  return sql`
    select jsonb_build_object(
      'rounds', count(distinct v.round_id),
      'roundId', (array_agg(v.round_id order by v.id desc))[1],
      'from', (array_agg(v.from_hundredths order by v.id desc))[1]::text,
      'to', (array_agg(v.to_hundredths order by v.id desc))[1]::text,
      'since', utc_text(min(v.decided_at)),
      'expiresAt', ${expiry(sql, sql`min(v.decided_at)`, NOTICE_HOURS.conflict)}
    )
    from round_revision v
    where v.table_id = t.id
      and v.from_hundredths is distinct from v.to_hundredths
      and v.decided_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.conflict})
    having count(*) > 0`;
}

function proofFacts(sql: Transaction) {
  return sql`
    select ${refusedFacts(sql, NOTICE_HOURS.proof)}
    from quarantine q
    where q.table_id = t.id
      and q.state = 'open'
      and q.code = 'proof_mismatch'
      and q.last_seen_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.proof})
    having count(*) > 0`;
}

function quarantineFacts(sql: Transaction) {
  return sql`
    select ${refusedFacts(sql, NOTICE_HOURS.quarantine)}
    from quarantine q
    where q.table_id = t.id
      and q.state = 'open'
      and q.code not in ('proof_mismatch', 'stuck_feed')
      -- a round that is stored after all hides nothing
      and not exists (
        select
        from rounds r
        where r.table_id = q.table_id
          and r.round_id = q.round_id
      )
      and q.last_seen_at > clock_timestamp() - make_interval(hours => ${NOTICE_HOURS.quarantine})
    having count(*) > 0`;
}

function modelFacts(sql: Transaction) {
  return sql`
    select jsonb_build_object(
      'from', p.before,
      'to', p.model,
      'since', utc_text(p.created_at),
      'expiresAt', ${expiry(sql, sql`p.created_at`, NOTICE_HOURS.model)}
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

/** When the first cause of a notice is too old to be listed: ISO 8601, to the minute; null if no cause expires. */
interface Expiring {
  expiresAt: string | null;
}

/** `hours` after `since`, rounded up to the minute, so that items seen in one minute expire together. */
function expiry(sql: Transaction, since: Query<readonly unknown[]>, hours: number) {
  return sql`utc_text(date_trunc('minute', ${since}) + make_interval(hours => ${hours}, mins => 1))`;
}

/** Conflicts and corrections are one notice; null if there are neither. */
function disputeText(conflict: string | null, revision: string | null): string | null {
  const sentences = [conflict, revision].filter((sentence) => sentence !== null);
  return sentences.length === 0 ? null : sentences.join(". ");
}

function bigintOf(text: string | null): bigint | null {
  return text === null ? null : BigInt(text);
}

function refusedFacts(sql: Transaction, hours: number) {
  return sql`
    jsonb_build_object(
      'items', count(*),
      'roundId', (array_agg(q.round_id order by q.id desc))[1],
      'reason', (array_agg(q.reason order by q.id desc))[1],
      'since', utc_text(min(q.first_seen_at)),
      'expiresAt', ${expiry(sql, sql`min(q.last_seen_at)`, hours)}
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
 * Closes or updates the notices of which a cause has expired, for at most 500 tables per call; for a timer. Tables
 * whose head is locked are left for the next call. Returns the tables whose notices changed; notify readers.
 */
export async function expireNotices(sql: Sql): Promise<number[]> {
  const tables = await sql<{ id: number }[]>`
    select table_id as id
    from notices
    where closed_at is null
      and expires_at <= clock_timestamp()
    group by table_id
    order by min(expires_at), table_id
    limit ${TABLES_PER_TICK}`;
  const changed: number[] = [];
  for (let at = 0; at < tables.length; at += LOCKED_TABLES) {
    const ids = tables.slice(at, at + LOCKED_TABLES).map(({ id }) => id);
    const own = await sql.begin(async (tx) => refreshNoticesWithin(tx, await lockFreeHeads(tx, ids)));
    changed.push(...own);
  }
  return changed;
}

/**
 * Opens a notice for each polled table that had rounds before but none in the live window, and closes it when a round
 * arrives or polling stops, for at most 500 tables per call; for a timer. Tables whose head is locked are left for the
 * next call. Returns the ids of the tables whose notices changed; notify readers.
 */
export async function refreshStalledNotices(sql: Sql, liveWindowSeconds: number): Promise<number[]> {
  const changed: number[] = [];
  for (let done = 0; done < TABLES_PER_TICK; done += LOCKED_TABLES) {
    const own = await sql.begin((tx) => refreshSomeStalled(tx, liveWindowSeconds));
    changed.push(...own);
    if (own.length < LOCKED_TABLES) break;
  }
  return changed;
}

async function refreshSomeStalled(tx: Transaction, liveWindowSeconds: number): Promise<number[]> {
  const tables = await tx<{ id: number; silent: boolean; since: string }[]>`
    select
      t.id,
      s.silent,
      utc_text(h.last_polled_round_at) as since
    from table_heads h
    join tables t on t.id = h.table_id
    join houses o on o.id = t.house_id
    cross join lateral (
      select
        o.enabled
        and o.paused_at is null
        and t.enabled
        and h.last_polled_round_at < clock_timestamp() - ${liveWindowSeconds} * interval '1 second' as silent
    ) s
    where h.last_polled_round_at is not null
      and s.silent is distinct from exists (
        select
        from notices n
        where n.table_id = t.id
          and n.kind = 'stalled'
          and n.closed_at is null
      )
    order by t.id
    limit ${LOCKED_TABLES}
    for no key update of h skip locked`;
  return saveNotices(
    tx,
    tables.map(({ id, silent, since }) => ({
      tableId: id,
      kind: "stalled",
      text: silent ? stalledSentence(since) : null,
    })),
  );
}
