import { hash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { afterPoll, type Circuit } from "./circuit.ts";
import { summarizePoll, type AskedTable, type PollSummary } from "./poll-summary.ts";

/** A poll that takes its full timeout must still have time to save before its lease ends. */
const LEASE_BEYOND_TIMEOUT_MS = 2_000;
const FULL_REQUEST_EVERY_MINUTES = 10;

/** The right to poll a shard of a house, alone, until it is saved, released or expired. */
export interface Lease {
  house: string;
  shard: number;
  /** Fencing token: whoever takes the lease next raises it, and what an older holder saves is refused. */
  epoch: bigint;
  /** Database time of the lease, as PostgreSQL writes it, to the microsecond. */
  now: string;
  circuit: Circuit;
  /** The enabled tables of the shard, longest not asked first. */
  tables: LeasedTable[];
}

/** What is known of a table's feed when it is asked. */
export interface LeasedTable {
  tableId: number;
  game: string;
  market: string;
  etag: string | null;
  lastModified: string | null;
  lastSha256: string | null;
  /** The newest stored answer could not be read. */
  refused: boolean;
  fullIsDue: boolean;
}

/**
 * Takes the lease of a house's shard by the database's clock, or null where it is not to be polled now: another worker
 * does, the house asked to be left alone, its circuit is open, it is paused or disabled. An open circuit whose wait is
 * over becomes half open: this poll is its probe.
 */
export async function takeLease(
  sql: Sql,
  { house, shard, timeoutMs }: { house: string; shard: number; timeoutMs: number },
): Promise<Lease | null> {
  const [row] = await sql<(Circuit & { epoch: bigint; now: string })[]>`
    update poll_leases l
    set
      lease_until = clock_timestamp() + ${timeoutMs + LEASE_BEYOND_TIMEOUT_MS} * interval '1 millisecond',
      lease_epoch = lease_epoch + 1,
      circuit = case circuit when 'open' then 'half_open' else circuit end
    from houses h
    where l.house_id = ${house}
      and l.shard = ${shard}
      and h.id = l.house_id
      and h.enabled
      and h.paused_at is null
      and l.next_allowed_at <= clock_timestamp()
      and l.lease_until < clock_timestamp()
    returning
      l.lease_epoch as epoch,
      clock_timestamp()::text as now,
      l.circuit as state,
      l.failures_in_row as "failuresInRow",
      l.recent,
      l.opened_times as "openedTimes",
      l.throttled_in_row as "throttledInRow"`;
  if (row === undefined) return null;
  const { epoch, now, ...circuit } = row;
  return { house, shard, epoch, now, circuit, tables: await listLeasedTables(sql, house, shard) };
}

async function listLeasedTables(sql: Sql, house: string, shard: number): Promise<LeasedTable[]> {
  return sql<LeasedTable[]>`
    select
      t.id as "tableId",
      t.game,
      t.market,
      f.etag,
      f.last_modified as "lastModified",
      f.last_sha256 as "lastSha256",
      f.refused_since is not null as refused,
      f.last_full_at is null
        or f.last_full_at < clock_timestamp() - ${FULL_REQUEST_EVERY_MINUTES} * interval '1 minute' as "fullIsDue"
    from tables t
    join feeds f on f.table_id = t.id
    where t.house_id = ${house}
      and t.shard = ${shard}
      and t.enabled
    order by f.last_asked_at nulls first, t.position, t.id`;
}

/** Gives a lease back without a word about the house, so that another worker need not wait until it expires. */
export async function releaseLease(sql: Queryable, { house, shard, epoch }: Lease): Promise<void> {
  await sql`
    update poll_leases
    set lease_until = '-infinity'
    where house_id = ${house}
      and shard = ${shard}
      and lease_epoch = ${epoch}`;
}

/** What a poll left behind; `waitMs` is how long the house is left alone now, 0 = until its next turn. */
export interface SavedPoll {
  requests: number;
  payloads: number;
  unchanged: number;
  failed: number;
  waitMs: number;
  circuit: Circuit["state"];
}

/**
 * Saves a poll: bodies that differ from the feed's last one, what is known of each feed, the sums, the failures, the
 * circuit and the end of the lease, all in one transaction. Null, with nothing saved, where the lease was lost to
 * another worker. `jitter` is a random number in [0, 1).
 *
 * `feeds.last_answer_at` is the request time of the newest good answer; it goes into each new payload as
 * `previous_requested_at` before it moves on. A 304 or a body equal to the last one counts as good, a failure does not,
 * and neither does a repeat of a body that could not be read (see {@link noteRefusedAnswer}).
 */
export async function saveAnswers(
  sql: Sql,
  lease: Lease,
  asked: readonly AskedTable[],
  jitter: number,
): Promise<SavedPoll | null> {
  const rows = await Promise.all(asked.map((one) => toRow(lease, one)));
  const summary = summarizePoll(asked);
  const next = asked.length === 0 ? null : afterPoll(lease.circuit, summary.outcome, jitter);
  return sql.begin(async (transaction) => {
    if (!(await holdsLease(transaction, lease))) return null;
    const payloads = await saveFeeds(transaction, lease, rows);
    if (asked.length > 0) await savePollSums(transaction, lease, summary);
    await saveFailures(transaction, lease, asked);
    await endLease(transaction, lease, summary, next);
    return {
      requests: asked.length,
      payloads,
      unchanged: asked.filter(({ answer }) => answer.kind !== "failed").length - payloads,
      failed: asked.filter(({ answer }) => answer.kind === "failed").length,
      waitMs: next?.waitMs ?? 0,
      circuit: next?.circuit.state ?? lease.circuit.state,
    };
  });
}

/** The fence: the row stays locked until the transaction ends, so the epoch cannot change under it. */
async function holdsLease(sql: Transaction, { house, shard, epoch }: Lease): Promise<boolean> {
  const held = await sql`
    select
    from poll_leases
    where house_id = ${house}
      and shard = ${shard}
      and lease_epoch = ${epoch}
    for update`;
  return held.length > 0;
}

/** One answer as it is written; `body` is null where it is not to be stored again. */
interface AnswerRow {
  tableId: number;
  good: boolean;
  requestedMs: number;
  receivedMs: number;
  path: string;
  status: number | null;
  contentType: string | null;
  etag: string | null;
  lastModified: string | null;
  bytes: number | null;
  sha256: string | null;
  /** What the feed's last hash was when the lease was taken: where it changed since, the answer is of an old feed. */
  knownSha256: string | null;
  body: Buffer | null;
}

async function toRow(lease: Lease, { tableId, path, requestedMs, receivedMs, answer }: AskedTable): Promise<AnswerRow> {
  const knownSha256 = lease.tables.find((table) => table.tableId === tableId)?.lastSha256 ?? null;
  const full = answer.kind === "answer" ? answer : null;
  const sha256 = full === null ? null : hash("sha256", full.body);
  return {
    tableId,
    good: answer.kind !== "failed",
    requestedMs,
    receivedMs,
    path,
    status: answer.status,
    contentType: full?.contentType?.slice(0, 200) ?? null,
    etag: full?.etag?.slice(0, 1000) ?? null,
    lastModified: full?.lastModified?.slice(0, 100) ?? null,
    bytes: full?.body.length ?? null,
    sha256,
    knownSha256,
    body: full === null || sha256 === knownSha256 ? null : await promisify(gzip)(full.body),
  };
}

/** Inserts new bodies and moves the feeds on; the feeds are locked first, since normalize-rounds writes them too. */
async function saveFeeds(sql: Transaction, lease: Lease, rows: readonly AnswerRow[]): Promise<number> {
  if (rows.length === 0) return 0;
  const ids = rows.map(({ tableId }) => tableId);
  await sql`
    select
    from feeds
    where table_id = any(${ids}::integer[])
    order by table_id
    for update`;
  const [saved] = await sql<{ payloads: number }[]>`
    with answers as (
      select
        a.*,
        ${lease.now}::timestamptz + a.requested_ms * interval '1 millisecond' as requested_at,
        ${lease.now}::timestamptz + a.received_ms * interval '1 millisecond' as received_at,
        f.last_sha256,
        f.last_answer_at,
        f.refused_since
      from unnest(
        ${ids}::integer[],
        ${rows.map(({ good }) => String(good))}::text[]::boolean[],
        ${rows.map(({ requestedMs }) => requestedMs)}::float8[],
        ${rows.map(({ receivedMs }) => receivedMs)}::float8[],
        ${rows.map(({ path }) => path)}::text[],
        ${rows.map(({ status }) => status)}::integer[],
        ${rows.map(({ contentType }) => contentType)}::text[],
        ${rows.map(({ etag }) => etag)}::text[],
        ${rows.map(({ lastModified }) => lastModified)}::text[],
        ${rows.map(({ bytes }) => bytes)}::integer[],
        ${rows.map(({ sha256 }) => sha256)}::text[],
        ${rows.map(({ knownSha256 }) => knownSha256)}::text[],
        ${rows.map(({ body }) => (body === null ? null : `\\x${body.toString("hex")}`))}::text[]
      ) as a (
        table_id, good, requested_ms, received_ms, path, status, content_type, etag, last_modified, bytes, sha256,
        known_sha256, body
      )
      join feeds f on f.table_id = a.table_id
      where f.last_sha256 is not distinct from a.known_sha256
    ),
    inserted as (
      insert into payloads (
        table_id, kind, requested_at, received_at, previous_requested_at, path, status, content_type, bytes, sha256, body
      )
      select
        table_id, 'poll', requested_at, received_at, last_answer_at, path, status, content_type, bytes, sha256,
        body::bytea
      from answers
      where body is not null
      returning table_id
    ),
    moved as (
      update feeds f
      set
        last_asked_at = a.requested_at,
        etag = case when a.sha256 is null then f.etag else a.etag end,
        last_modified = case when a.sha256 is null then f.last_modified else a.last_modified end,
        last_full_at = case when a.sha256 is null then f.last_full_at else a.requested_at end,
        last_sha256 = coalesce(a.sha256, f.last_sha256),
        last_answer_at = case
          when a.body is not null then a.requested_at
          when a.good and a.refused_since is null then a.requested_at
          else f.last_answer_at
        end,
        refused_since = case when a.body is null then f.refused_since end
      from answers a
      where f.table_id = a.table_id
    )
    select count(*)::integer as payloads
    from inserted`;
  return saved?.payloads ?? 0;
}

async function savePollSums(sql: Transaction, lease: Lease, summary: PollSummary): Promise<void> {
  await sql`
    insert into polls as p (house_id, shard, minute, requests, statuses, bytes, latency_ms)
    values (
      ${lease.house},
      ${lease.shard},
      date_trunc('minute', ${lease.now}::timestamptz),
      ${summary.requests},
      ${JSON.stringify(summary.statuses)}::text::jsonb,
      ${summary.bytes},
      ${summary.latency}
    )
    on conflict (minute, house_id, shard) do update
    set
      requests = p.requests + excluded.requests,
      statuses = (
        select jsonb_object_agg(status, requests)
        from (
          select status, sum(requests::integer) as requests
          from (
            select * from jsonb_each_text(p.statuses)
            union all
            select * from jsonb_each_text(excluded.statuses)
          ) as both_sums (status, requests)
          group by status
        ) as summed
      ),
      bytes = p.bytes + excluded.bytes,
      latency_ms = (
        select array_agg(before + now order by place)
        from unnest(p.latency_ms, excluded.latency_ms) with ordinality as both_sums (before, now, place)
      )`;
}

async function saveFailures(sql: Transaction, lease: Lease, asked: readonly AskedTable[]): Promise<void> {
  const failed = asked.flatMap(({ tableId, receivedMs, answer }) =>
    answer.kind === "failed" ? [{ tableId, receivedMs, ...answer }] : [],
  );
  if (failed.length === 0) return;
  await sql`
    insert into poll_failures (house_id, table_id, at, status, reason, detail)
    select
      ${lease.house}, table_id, ${lease.now}::timestamptz + received_ms * interval '1 millisecond', status, reason,
      detail
    from unnest(
      ${failed.map(({ tableId }) => tableId)}::integer[],
      ${failed.map(({ receivedMs }) => receivedMs)}::float8[],
      ${failed.map(({ status }) => status)}::integer[],
      ${failed.map(({ reason }) => reason)}::text[],
      ${failed.map(({ detail }) => detail)}::text[]
    ) as f (table_id, received_ms, status, reason, detail)`;
}

async function endLease(
  sql: Transaction,
  lease: Lease,
  summary: PollSummary,
  next: ReturnType<typeof afterPoll> | null,
): Promise<void> {
  if (next === null) return releaseLease(sql, lease);
  const { circuit, waitMs } = next;
  await sql`
    update poll_leases
    set
      lease_until = '-infinity',
      circuit = ${circuit.state},
      failures_in_row = ${circuit.failuresInRow},
      recent = ${circuit.recent},
      opened_times = ${circuit.openedTimes},
      throttled_in_row = ${circuit.throttledInRow},
      opened_at = case when ${circuit.state} = 'closed' then null else coalesce(opened_at, clock_timestamp()) end,
      next_allowed_at = case
        when ${waitMs} > 0 then clock_timestamp() + ${waitMs} * interval '1 millisecond'
        else next_allowed_at
      end,
      last_poll_at = ${lease.now}::timestamptz,
      last_ok_at = case when ${summary.outcome.kind === "good"} then ${lease.now}::timestamptz else last_ok_at end,
      last_status = ${summary.status},
      last_error = coalesce(${summary.error}, last_error),
      last_error_at = case when ${summary.error}::text is null then last_error_at else ${lease.now}::timestamptz end
    where house_id = ${lease.house}
      and shard = ${lease.shard}`;
}

/**
 * Tells a feed that one of its polled answers could not be read, in the transaction that marks the payload refused.
 *
 * An unreadable answer proves nothing about which rounds were not there yet. So the answer after it gets no
 * `previous_requested_at`: where that one is already stored, it is taken from it here, else the feed forgets its
 * `last_answer_at`. While the refused answer is the feed's newest, no ETag is sent for it and its repeats do not count
 * as answers; the next different one ends that. Waits for a poll that is saving to the same feed.
 */
export async function noteRefusedAnswer(
  sql: Transaction,
  { tableId, payloadId, sha256 }: { tableId: number; payloadId: bigint; sha256: string },
): Promise<void> {
  await sql`
    update feeds
    set
      last_answer_at = case when last_sha256 = ${sha256} then null else last_answer_at end,
      refused_since = case when last_sha256 = ${sha256} then coalesce(refused_since, clock_timestamp()) else refused_since end
    where table_id = ${tableId}`;
  await sql`
    update payloads
    set previous_requested_at = null
    where table_id = ${tableId}
      and state = 'unread'
      and id = (
        select min(id)
        from payloads
        where table_id = ${tableId}
          and state = 'unread'
          and id > ${payloadId}
      )`;
}
