import type { Sql, Transaction } from "../db/client.ts";
import { auditHash, cleanText, toJson, type AuditEntry, type HashedEntry, type Json, type Surface } from "./entry.ts";

/**
 * Adds an entry to the audit log, in the transaction of its action, so that either both are stored or neither. Entries
 * are serialized: each waits for the transaction of the previous one, so add it last. Returns its place in the log.
 */
export async function appendAudit(tx: Transaction, entry: AuditEntry): Promise<bigint> {
  const [head] = await tx<{ seq: bigint; hash: string }[]>`
    select seq, hash
    from audit_head
    for update`;
  if (head === undefined) throw new Error("the audit log has no head; has audit_head been emptied?");
  // read after the lock is taken, so that times follow the order of the log
  const [clock] = await tx<{ at: string }[]>`select utc_text(clock_timestamp()) as at`;
  if (clock === undefined) throw new Error("expected the time of the database, found none");
  const clean = (text: string | null) => (text === null ? null : cleanText(text));
  const fields: HashedEntry = {
    seq: String(head.seq + 1n),
    at: clock.at,
    surface: entry.surface,
    actor: cleanText(entry.actor),
    role: entry.role,
    action: entry.action,
    target: cleanText(entry.target),
    before: toJson(entry.before),
    after: toJson(entry.after),
    reason: clean(entry.reason),
    request_id: clean(entry.requestId),
    address: clean(entry.address),
  };
  const hash = auditHash(head.hash, fields);
  await tx`
    with added as (
      insert into audit_log (
        seq, at, surface, actor, role, action, target, before, after, reason, request_id, address, prev_hash, hash
      )
      values (
        ${fields.seq}::bigint, ${fields.at}::text::timestamptz, ${fields.surface}, ${fields.actor}, ${fields.role},
        ${fields.action}, ${fields.target}, ${textOf(fields.before)}::text::jsonb, ${textOf(fields.after)}::text::jsonb,
        ${fields.reason}, ${fields.request_id}, ${fields.address}, ${head.hash}, ${hash}
      )
      returning seq, hash
    )
    update audit_head
    set seq = added.seq, hash = added.hash
    from added`;
  return head.seq + 1n;
}

/** Performs an action and records it, both or neither. `work` returns its result and the entry. */
export async function audited<Result>(
  sql: Sql,
  work: (tx: Transaction) => Promise<{ result: Result; entry: AuditEntry | null }>,
): Promise<Result> {
  const { result } = await sql.begin(async (tx) => {
    const done = await work(tx);
    if (done.entry !== null) await appendAudit(tx, done.entry);
    return { result: done.result };
  });
  return result;
}

/** An entry in a list. */
export interface KeptEntry {
  seq: bigint;
  at: Date;
  surface: Surface;
  actor: string;
  role: string | null;
  action: string;
  target: string;
  before: Json;
  after: Json;
  reason: string | null;
  requestId: string | null;
  address: string | null;
  hash: string;
}

/** A search; an empty text matches everything. */
export interface AuditSearch {
  actor: string;
  /** The whole name of an action, or its beginning with a dot at the end: `queue.`. */
  action: string;
  target: string;
  /** A part of target, reason, before, after, request id or address. */
  text: string;
  from: Date | null;
  /** Excluded. */
  to: Date | null;
}

/** One page of the matching entries, newest first, and their number. Pages are counted from 1. */
export async function searchAudit(
  sql: Sql,
  search: AuditSearch,
  { page, perPage }: { page: number; perPage: number },
): Promise<{ entries: KeptEntry[]; total: bigint }> {
  const matching = sql`
    (${search.actor} = '' or actor ilike ${contains(search.actor)})
    and (
      ${search.action} = ''
      or action = ${search.action}
      or (${search.action.endsWith(".")} and starts_with(action, ${search.action}))
    )
    and (${search.target} = '' or target ilike ${contains(search.target)})
    and (
      ${search.text} = ''
      or concat_ws(' ', target, reason, before::text, after::text, request_id, address) ilike ${contains(search.text)}
    )
    and (${search.from}::timestamptz is null or at >= ${search.from})
    and (${search.to}::timestamptz is null or at < ${search.to})`;
  const [counted] = await sql<{ total: bigint }[]>`select count(*) as total from audit_log where ${matching}`;
  const entries = await sql<KeptEntry[]>`
    select
      seq, at, surface, actor, role, action, target, before, after, reason, request_id as "requestId", address, hash
    from audit_log
    where ${matching}
    order by seq desc
    limit ${perPage}
    offset ${(page - 1) * perPage}`;
  return { entries, total: counted?.total ?? 0n };
}

/** The actions in the log, for a menu. */
export async function listAuditActions(sql: Sql): Promise<string[]> {
  const rows = await sql<{ action: string }[]>`select distinct action from audit_log order by action`;
  return rows.map(({ action }) => action);
}

/** Whether a request left an entry. */
export async function hasAudit(sql: Sql, requestId: string): Promise<boolean> {
  const rows = await sql`select 1 from audit_log where request_id = ${requestId} limit 1`;
  return rows.length > 0;
}

/** An entry with the fields of its hash. */
export interface HashedRow extends HashedEntry {
  prev_hash: string;
  hash: string;
}

/** Entries after a place in the log, oldest first, at most `limit`. */
export async function listHashedEntries(sql: Sql, afterSeq: string, limit: number): Promise<HashedRow[]> {
  return sql<HashedRow[]>`
    select
      seq::text, utc_text(at) as at, surface, actor, role, action, target, before, after, reason, request_id, address,
      prev_hash, hash
    from audit_log
    where audit_log.seq > ${afterSeq}::bigint
    order by audit_log.seq -- the number, not its text above
    limit ${limit}`;
}

/** The end of the log according to audit_head; null if that row is missing. */
export async function findAuditHead(sql: Sql): Promise<{ seq: string; hash: string } | null> {
  const [head] = await sql<{ seq: string; hash: string }[]>`select seq::text, hash from audit_head`;
  return head ?? null;
}

/** JSON as text; SQL's null for none, so that it differs from the JSON value null. */
function textOf(value: Json): string | null {
  return value === null ? null : JSON.stringify(value);
}

/** A pattern for texts that contain this one literally. */
function contains(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, (character) => `\\${character}`)}%`;
}
