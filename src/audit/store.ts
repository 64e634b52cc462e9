import type { Sql, Transaction } from "../db/client.ts";
import { auditHash, cleanText, toJson, type AuditEntry, type HashedEntry, type Json } from "./entry.ts";

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
export interface KeptEntry extends AuditEntry {
  seq: bigint;
  at: Date;
  before: Json;
  after: Json;
  hash: string;
}

/** A search; an empty text matches everything. */
export interface AuditSearch {
  actor: string;
  /** The whole name of an action, or its beginning with a dot at the end: `queue.`. */
  action: string;
  target: string;
  /** Whether `target` is a whole name, so that `account 1` does not match `account 10`; false if not given. */
  whole?: boolean;
  /** A part of target, reason, before, after, request id or address. */
  text: string;
  from: Date | null;
  /** Excluded. */
  to: Date | null;
}

/** Entries that one search reads at most, so that one without matches ends. */
const MOST_READ = 50_000n;

/**
 * Entries that match, newest first, at most `limit`. Reads the newest 50,000 entries in front of `before`; null is the
 * end of the log. `next` is the `before` of the next page; null if the log has no older entries.
 */
export async function searchAudit(
  sql: Sql,
  search: AuditSearch,
  { before, limit }: { before: bigint | null; limit: number },
): Promise<{ entries: KeptEntry[]; next: bigint | null }> {
  const [head] = await sql<{ seq: bigint }[]>`select coalesce(max(seq), 0) as seq from audit_log`;
  const end = before ?? (head?.seq ?? 0n) + 1n;
  const entries = await sql<KeptEntry[]>`
    select
      seq, at, surface, actor, role, action, target, before, after, reason, request_id as "requestId", address, hash
    from audit_log
    where seq < ${end}
      and seq >= ${end - MOST_READ}
      and (${search.actor} = '' or actor ilike ${contains(search.actor)})
      and (
        ${search.action} = ''
        or action = ${search.action}
        or (${search.action.endsWith(".")} and starts_with(action, ${search.action}))
      )
      and (${search.target} = '' or target ilike any(${targetPatterns(search)}::text[]))
      and (
        ${search.text} = ''
        or concat_ws(' ', target, reason, before::text, after::text, request_id, address) ilike ${contains(search.text)}
      )
      and (${search.from}::timestamptz is null or at >= ${search.from})
      and (${search.to}::timestamptz is null or at < ${search.to})
    order by seq desc
    limit ${limit + 1}`;
  if (entries.length > limit) return { entries: entries.slice(0, limit), next: entries[limit - 1]?.seq ?? null };
  return { entries, next: end - MOST_READ > 1n ? end - MOST_READ : null };
}

/** The actions and the actors of the log, for choosing one: at most 300 of each. Walks the indexes, not the log. */
export async function listAuditFacets(sql: Sql): Promise<{ actions: string[]; actors: string[] }> {
  const distinct = async (column: "action" | "actor") => {
    const rows = await sql<{ value: string }[]>`
      with recursive found as (
        (select ${sql(column)} as value from audit_log order by ${sql(column)} limit 1)
        union all
        select (select ${sql(column)} from audit_log where ${sql(column)} > found.value order by ${sql(column)} limit 1)
        from found
        where found.value is not null
      )
      select value
      from found
      where value is not null
      limit 300`;
    return rows.map(({ value }) => value);
  };
  const [actions, actors] = await Promise.all([distinct("action"), distinct("actor")]);
  return { actions, actors };
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

/** A whole name is also followed by details in parentheses, `bank line 1 (main A1)`, or the owner, `key 5 of account 1`. */
function targetPatterns({ target, whole = false }: AuditSearch): string[] {
  const name = literal(target);
  return whole ? [name, `${name} (%`, `% of ${name}`] : [contains(target)];
}

/** A pattern for texts that contain this one literally. */
function contains(text: string): string {
  return `%${literal(text)}%`;
}

function literal(text: string): string {
  return text.replaceAll(/[\\%_]/g, (character) => `\\${character}`);
}
