import type { Queryable, Sql, Transaction } from "../../db/client.ts";
import type { Query } from "../../db/query.ts";
import { cut } from "../../text.ts";
import { lockFreeHeads, lockHeads, touchHeads } from "../../tables/heads-store.ts";
import { finalGapTexts } from "./closed-gaps-store.ts";
import { type DueNotice, listDueNotices } from "./due-notices-store.ts";
import { NOTICE_HOURS, type NoticeKind, stalledSentence } from "./notices.ts";

/** A notice to open or to update (`text`), or to close (null). */
export interface NoticeChange {
  tableId: number;
  kind: NoticeKind;
  text: string | null;
  /** ISO 8601: when it opens, if it is not open; now if it is left out. */
  since?: string;
  /** The text of a notice that closes; the last one if it is left out. */
  finalText?: string;
}

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
  const rows = changes.map(({ tableId, kind, text, since, finalText }) => {
    const shown = text === null ? null : cut(text, LONGEST_TEXT);
    const last = finalText === undefined ? null : cut(finalText, LONGEST_TEXT);
    return { table_id: tableId, kind, text: shown, since, final_text: last };
  });
  return sql<{ id: number }[]>`
    with changed as (
      select *
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
        as c (table_id integer, kind text, text text, since timestamptz, final_text text)
    ),
    closed as (
      update notices n
      set
        closed_at = clock_timestamp(),
        text = coalesce(c.final_text, n.text)
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
 * transaction, and returns their ids. A conflict that is listed again changes no notice, so it locks nothing. A table that
 * another session keeps locked, as a repair does, is left for the next time: a poll waits for this.
 */
export async function refreshNotices(sql: Sql, tableIds: readonly number[]): Promise<number[]> {
  const changed: number[] = [];
  for (let at = 0; at < tableIds.length; at += LOCKED_TABLES) {
    const ids = tableIds.slice(at, at + LOCKED_TABLES);
    changed.push(...(await sql.begin((tx) => refreshOutdated(tx, ids, lockFreeHeads))));
  }
  return changed;
}

/** The same in the transaction of the caller, which waits for locked tables and keeps the locks. */
export async function refreshNoticesWithin(sql: Transaction, tableIds: readonly number[]): Promise<number[]> {
  return refreshOutdated(sql, tableIds, async (tx, ids) => (await lockHeads(tx, ids)).map(({ id }) => id));
}

async function refreshOutdated(
  sql: Transaction,
  tableIds: readonly number[],
  lock: typeof lockFreeHeads,
): Promise<number[]> {
  const seen = await listOutdated(sql, await listDueNotices(sql, tableIds));
  const outdated = [...new Set(seen.map(({ tableId }) => tableId))];
  if (outdated.length === 0) return [];
  const due = await listDueNotices(sql, await lock(sql, outdated));
  return saveNotices(sql, await withFinalTexts(sql, await listOutdated(sql, due)));
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

/** Adds what a gap notice that closes states then: while open it states that rounds are being fetched. */
async function withFinalTexts(sql: Queryable, due: readonly DueNotice[]): Promise<NoticeChange[]> {
  const closing = due.filter(({ kind, text }) => kind === "gap" && text === null);
  const texts = await finalGapTexts(
    sql,
    closing.map(({ tableId }) => tableId),
  );
  return due.map(({ tableId, kind, text }) => {
    const finalText = kind === "gap" ? texts.get(tableId) : undefined;
    return { tableId, kind, text, ...(finalText !== undefined && { finalText }) };
  });
}

/**
 * Makes a task that refreshes the notices of tables that have an open one or a cause of one, 500 per call, in turns: what
 * expired, and what a process that ended did not refresh. Returns the tables whose notices changed; notify readers.
 */
export function createNoticeRefresh(): (sql: Sql) => Promise<number[]> {
  let after = 0;
  return async (sql) => {
    const tables = await sql<{ id: number }[]>`
      select table_id as id
      from (
        select table_id from notices where closed_at is null
        union
        select table_id from gaps where state = 'open'
        union
        select table_id
        from conflicts
        where decided_at is null
          and last_seen_at > now() - make_interval(hours => ${NOTICE_HOURS.conflict})
        union
        select table_id
        from quarantine
        where state = 'open'
          and last_seen_at > now() - make_interval(hours => ${Math.max(NOTICE_HOURS.quarantine, NOTICE_HOURS.proof)})
      ) causes
      where table_id > ${after}
      order by table_id
      limit ${TABLES_PER_TICK}`;
    after = tables.length < TABLES_PER_TICK ? 0 : (tables.at(-1)?.id ?? 0);
    return refreshNotices(
      sql,
      tables.map(({ id }) => id),
    );
  };
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
