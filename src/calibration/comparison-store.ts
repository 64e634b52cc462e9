import type { Queryable } from "../db/client.ts";
import { asJson } from "./calibration-store.ts";
import type { Comparison } from "./compare.ts";

/** A worker without a heartbeat for longer is considered dead. */
export const COMPARISON_SILENT_SECONDS = 30;

/** Two records by id, the older first. */
export type Pair = readonly [a: string, b: string];

/** A requested comparison and its result. */
export interface RequestedComparison {
  status: "queued" | "running" | "done" | "failed";
  askedBy: string;
  requestedAt: string;
  finishedAt: string | null;
  /** Progress in seqs. */
  done: bigint;
  of: bigint;
  reason: string | null;
  paired: unknown;
}

/** The comparison of two records; null if it was never requested. */
export async function findComparison(sql: Queryable, [a, b]: Pair): Promise<RequestedComparison | null> {
  const [row] = await sql<RequestedComparison[]>`
    select
      status,
      asked_by as "askedBy",
      utc_text(requested_at) as "requestedAt",
      utc_text(finished_at) as "finishedAt",
      done, of, reason, paired
    from calibration_comparisons
    where a_id = ${a}
      and b_id = ${b}`;
  return row ?? null;
}

/**
 * Requests a comparison from a worker; also again if it failed or, with `recompute`, if its result cannot be read.
 * Returns false if it is requested already.
 */
export async function requestComparison(
  sql: Queryable,
  [a, b]: Pair,
  { by, recompute = false }: { by: string; recompute?: boolean },
): Promise<boolean> {
  const rows = await sql`
    insert into calibration_comparisons (a_id, b_id, asked_by)
    values (${a}, ${b}, ${by})
    on conflict (a_id, b_id) do update
    set
      status = 'queued',
      asked_by = excluded.asked_by,
      requested_at = clock_timestamp(),
      finished_at = null,
      done = 0,
      of = 0,
      lost_attempts = 0,
      reason = null,
      paired = null
    where calibration_comparisons.status = 'failed'
      or (${recompute} and calibration_comparisons.status = 'done')
    returning a_id`;
  return rows.length > 0;
}

/** Comparisons without a worker: queued, or the heartbeat of their worker has stopped. */
export async function listWaitingComparisons(sql: Queryable): Promise<{ a: string; b: string }[]> {
  return sql<{ a: string; b: string }[]>`
    select a_id::text as a, b_id::text as b
    from calibration_comparisons
    where status in ('queued', 'running')
      and (status = 'queued' or heartbeat_at < clock_timestamp() - ${COMPARISON_SILENT_SECONDS} * interval '1 second')
    order by requested_at
    limit 100`;
}

/** A claimed comparison. Its writes are refused when another worker has claimed it since. */
export interface Attempt {
  pair: Pair;
  requestedAt: string;
  lostAttempts: number;
}

/** Claims a comparison; null if it is not pending. */
export async function takeComparison(sql: Queryable, [a, b]: Pair): Promise<Attempt | null> {
  const [row] = await sql<Omit<Attempt, "pair">[]>`
    update calibration_comparisons
    set
      lost_attempts = lost_attempts + case status when 'running' then 1 else 0 end,
      status = 'running',
      heartbeat_at = clock_timestamp()
    where a_id = ${a}
      and b_id = ${b}
      and status in ('queued', 'running')
      and (status = 'queued' or heartbeat_at < clock_timestamp() - ${COMPARISON_SILENT_SECONDS} * interval '1 second')
    returning requested_at::text as "requestedAt", lost_attempts as "lostAttempts"`;
  return row === undefined ? null : { pair: [a, b], ...row };
}

/** Stores a heartbeat and the progress of a comparison. @throws Error if another worker has claimed it */
export async function beatComparison(sql: Queryable, attempt: Attempt, done: number, of: number): Promise<void> {
  requireOwn(
    await sql`
      update calibration_comparisons
      set
        heartbeat_at = clock_timestamp(),
        done = ${done},
        of = ${of}
      where ${isOwn(sql, attempt)}
      returning a_id`,
  );
}

/** Stores the result of a comparison. @throws Error if another worker has claimed it */
export async function finishComparison(sql: Queryable, attempt: Attempt, paired: Comparison["paired"]): Promise<void> {
  requireOwn(
    await sql`
      update calibration_comparisons
      set
        status = 'done',
        finished_at = clock_timestamp(),
        paired = ${asJson(sql, paired)}
      where ${isOwn(sql, attempt)}
      returning a_id`,
  );
}

/** Ends a comparison without a result, unless another worker has claimed it; `queued` leaves it to the next worker. */
export async function leaveComparison(
  sql: Queryable,
  attempt: Attempt,
  { status, reason }: { status: "failed" | "queued"; reason: string },
): Promise<void> {
  await sql`
    update calibration_comparisons
    set
      status = ${status},
      reason = ${reason},
      finished_at = case when ${status} = 'failed' then clock_timestamp() end
    where ${isOwn(sql, attempt)}`;
}

function isOwn(sql: Queryable, { pair: [a, b], requestedAt, lostAttempts }: Attempt) {
  return sql`
    a_id = ${a}
    and b_id = ${b}
    and status = 'running'
    and requested_at = ${requestedAt}::text::timestamptz
    and lost_attempts = ${lostAttempts}`;
}

function requireOwn(rows: readonly unknown[]): void {
  if (rows.length === 0) throw new Error("expected a comparison of this worker, found that another one has claimed it");
}
