import type { Queryable, Transaction } from "../db/client.ts";
import type { NoticeKind } from "../rounds/notices/notices.ts";

/** The text of an operator's open notice of a table; null if there is none. */
export async function findOperatorNotice(sql: Queryable, tableId: number): Promise<string | null> {
  const [row] = await sql<{ text: string }[]>`
    select text
    from notices
    where table_id = ${tableId}
      and kind = 'operator'
      and closed_at is null`;
  return row?.text ?? null;
}

/** Opens an operator's notice of a table, or replaces the open one. The caller holds the table's lock. */
export async function saveOperatorNotice(
  tx: Transaction,
  { tableId, text, by }: { tableId: number; text: string; by: string },
): Promise<void> {
  await tx`
    insert into notices (table_id, kind, text, opened_by)
    values (${tableId}, 'operator', ${text}, ${by})
    on conflict (table_id, kind) where closed_at is null do update
    set
      text = excluded.text,
      opened_by = excluded.opened_by,
      updated_at = clock_timestamp()`;
}

/** Closes an operator's notice of a table in the operator's name. The caller holds the table's lock. */
export async function endOperatorNotices(tx: Transaction, tableId: number, by: string): Promise<void> {
  await tx`
    update notices
    set
      closed_at = clock_timestamp(),
      closed_by = ${by}
    where table_id = ${tableId}
      and kind = 'operator'
      and closed_at is null`;
}

/** The filter of a list of notices; null for all. */
export interface NoticeFilter {
  tableIds: readonly number[] | null;
  kind: NoticeKind | null;
  isOpen: boolean | null;
}

/** A notice in a list. */
export interface ListedNotice {
  id: bigint;
  table: string;
  kind: NoticeKind;
  text: string;
  openedAt: string;
  updatedAt: string;
  closedAt: string | null;
  openedBy: string | null;
  closedBy: string | null;
}

/** Notices, newest or oldest first; `after` is the id of the last notice of the previous page. */
export async function listNotices(
  sql: Queryable,
  { tableIds, kind, isOpen }: NoticeFilter,
  { after, oldestFirst, limit }: { after: bigint | null; oldestFirst: boolean; limit: number },
): Promise<ListedNotice[]> {
  const beyond = oldestFirst ? sql`n.id > ${after}` : sql`n.id < ${after}`;
  const open = isOpen === true ? sql`n.closed_at is null` : sql`n.closed_at is not null`;
  return sql<ListedNotice[]>`
    select
      n.id,
      t.house_id || '/' || t.game || '/' || t.market as "table",
      n.kind,
      upper(left(n.text, 1)) || substr(n.text, 2) as text,
      utc_text(n.opened_at) as "openedAt",
      utc_text(n.updated_at) as "updatedAt",
      utc_text(n.closed_at) as "closedAt",
      n.opened_by as "openedBy",
      n.closed_by as "closedBy"
    from notices n
    join tables t on t.id = n.table_id
    where ${tableIds === null ? sql`true` : sql`n.table_id = any(${[...tableIds]}::integer[])`}
      and (${kind}::text is null or n.kind = ${kind})
      and ${isOpen === null ? sql`true` : open}
      and ${after === null ? sql`true` : beyond}
    order by n.id ${oldestFirst ? sql`asc` : sql`desc`}
    limit ${limit}`;
}
