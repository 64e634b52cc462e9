import type { Queryable } from "../db/client.ts";
import type { CallMinute } from "./call-counts.ts";

/**
 * Adds calls to those that are stored of the same minute. Rows are written in one order, so that processes do not deadlock.
 * Calls of a day without a partition are left out, since they would never be stored. Returns their number.
 */
export async function saveCallMinutes(sql: Queryable, minutes: readonly CallMinute[]): Promise<number> {
  const [left] = await sql<{ n: number }[]>`
    with ended as (
      select
        to_timestamp(minute_ms / 1000) as minute, account_id, key_id, endpoint, outcome, n,
        to_timestamp(last_at_ms / 1000) as last_at,
        exists (
          select from pg_inherits
          where inhparent = 'call_minutes'::regclass
            and inhrelid = to_regclass(
              'call_minutes_' || to_char(to_timestamp(minute_ms / 1000) at time zone 'UTC', 'YYYYMMDD')
            )
        ) as has_partition
      from unnest(
        ${minutes.map(({ minuteMs }) => minuteMs)}::float8[],
        ${minutes.map(({ accountId }) => String(accountId))}::bigint[],
        ${minutes.map(({ keyId }) => String(keyId))}::bigint[],
        ${minutes.map(({ endpoint }) => endpoint)}::text[],
        ${minutes.map(({ outcome }) => outcome)}::text[],
        ${minutes.map(({ n }) => n)}::integer[],
        ${minutes.map(({ lastAtMs }) => lastAtMs)}::float8[]
      ) as one (minute_ms, account_id, key_id, endpoint, outcome, n, last_at_ms)
    ),
    saved as (
      insert into call_minutes as c (minute, account_id, key_id, endpoint, outcome, n, last_at)
      select minute, account_id, key_id, endpoint, outcome, n, last_at
      from ended
      where has_partition
      order by account_id, minute, key_id, endpoint, outcome
      on conflict (account_id, minute, key_id, endpoint, outcome) do update
      set
        n = c.n + excluded.n,
        last_at = greatest(c.last_at, excluded.last_at)
    )
    select coalesce(sum(n), 0)::integer as n
    from ended
    where not has_partition`;
  return left?.n ?? 0;
}

/** Which calls of an account are looked at. */
export interface CallFilter {
  /** How far back, in minutes from now. */
  minutes: number;
  keyId?: bigint | null;
  endpoint?: string | null;
}

/** Calls of an account with one key, to one endpoint, with one outcome. */
export interface CallKind {
  keyId: bigint;
  keyName: string;
  last4: string;
  endpoint: string;
  outcome: string;
  n: number;
  lastAt: string;
}

/** The calls of an account by key, endpoint and outcome, the most frequent first, at most `limit` of them. */
export async function listCallKinds(
  sql: Queryable,
  accountId: bigint,
  filter: CallFilter,
  limit: number,
): Promise<CallKind[]> {
  return sql<CallKind[]>`
    select
      c.key_id as "keyId",
      k.name as "keyName",
      k.last4,
      c.endpoint,
      c.outcome,
      sum(c.n)::integer as n,
      utc_text(max(c.last_at)) as "lastAt"
    from call_minutes c
    join keys k on k.id = c.key_id
    where ${isWanted(sql, accountId, filter)}
    group by c.key_id, k.name, k.last4, c.endpoint, c.outcome
    order by n desc, c.key_id, c.endpoint, c.outcome
    limit ${limit}`;
}

/** The calls of an account in one minute. */
export interface CallsOfMinute {
  /** The start of the minute, as every surface prints times. */
  at: string;
  ok: number;
  notModified: number;
  refused: number;
}

/** The calls of an account by minute, newest first; minutes without a call are left out. */
export async function listCallMinutes(sql: Queryable, accountId: bigint, filter: CallFilter): Promise<CallsOfMinute[]> {
  return sql<CallsOfMinute[]>`
    select
      utc_text(c.minute) as at,
      coalesce(sum(c.n) filter (where c.outcome = 'ok'), 0)::integer as ok,
      coalesce(sum(c.n) filter (where c.outcome = 'not_modified'), 0)::integer as "notModified",
      coalesce(sum(c.n) filter (where c.outcome not in ('ok', 'not_modified')), 0)::integer as refused
    from call_minutes c
    where ${isWanted(sql, accountId, filter)}
    group by c.minute
    order by c.minute desc`;
}

/** Refused calls of an account for one reason. */
export interface Refusal {
  /** The code of the error. */
  outcome: string;
  n: number;
  lastAt: string;
}

/** The calls of an account that were refused in the last 24 hours, by reason, the most frequent first. */
export async function listRefusals(sql: Queryable, accountId: bigint): Promise<Refusal[]> {
  return sql<Refusal[]>`
    select c.outcome, sum(c.n)::integer as n, utc_text(max(c.last_at)) as "lastAt"
    from call_minutes c
    where ${isWanted(sql, accountId, { minutes: 1_440 })}
      and c.outcome not in ('ok', 'not_modified')
    group by c.outcome
    order by n desc, c.outcome`;
}

function isWanted(sql: Queryable, accountId: bigint, { minutes, keyId = null, endpoint = null }: CallFilter) {
  return sql`c.account_id = ${accountId}
      and c.minute > now() - ${minutes}::integer * interval '1 minute'
      and (${keyId}::bigint is null or c.key_id = ${keyId})
      and (${endpoint}::text is null or c.endpoint = ${endpoint})`;
}
