import type { Queryable } from "../db/client.ts";

/** Which queue an operator paused, when, and why. */
export interface Pause {
  queue: string;
  pausedAt: Date;
  pausedBy: string;
  reason: string;
}

/** The queues that are to stand still. */
export async function listPauses(sql: Queryable): Promise<Pause[]> {
  return sql<Pause[]>`
    select queue, paused_at as "pausedAt", paused_by as "pausedBy", reason
    from queue_controls
    order by queue`;
}

/** Notes that a queue is to stand still; pausing again keeps the time and replaces who and why. */
export async function savePause(sql: Queryable, pause: { queue: string; by: string; reason: string }): Promise<void> {
  await sql`
    insert into queue_controls (queue, paused_by, reason)
    values (${pause.queue}, ${pause.by}, ${pause.reason})
    on conflict (queue) do update
    set paused_by = excluded.paused_by,
        reason = excluded.reason`;
}

/** Notes that a queue may go on. */
export async function deletePause(sql: Queryable, queue: string): Promise<void> {
  await sql`
    delete from queue_controls
    where queue = ${queue}`;
}

/** A process that works on queues. */
export interface WorkerProcess {
  id: string;
  pid: number;
  host: string;
  version: string;
  queues: string[];
  /** Why it takes no work while its machine's clock is wrong; null where it is right. */
  clockProblem: string | null;
}

/** Notes that a worker process is alive. */
export async function saveWorker(sql: Queryable, worker: WorkerProcess): Promise<void> {
  await sql`
    insert into workers (id, pid, host, version, queues, clock_problem)
    values (${worker.id}, ${worker.pid}, ${worker.host}, ${worker.version}, ${worker.queues}, ${worker.clockProblem})
    on conflict (id) do update
    set seen_at = now(),
        clock_problem = excluded.clock_problem`;
}

/** Forgets a worker process that stopped. */
export async function deleteWorker(sql: Queryable, id: string): Promise<void> {
  await sql`
    delete from workers
    where id = ${id}`;
}

/** Forgets worker processes that have not reported for a minute: they were killed. */
export async function deleteSilentWorkers(sql: Queryable): Promise<void> {
  await sql`
    delete from workers
    where seen_at < now() - interval '1 minute'`;
}

/** Machines of worker processes whose clock is wrong, as alerts: the machine, and what is wrong. */
export async function listWrongClocks(sql: Queryable): Promise<{ subject: string; text: string }[]> {
  return sql<{ subject: string; text: string }[]>`
    select distinct on (host) host as subject, clock_problem as text
    from workers
    where clock_problem is not null
    order by host, seen_at desc`;
}

const RECONCILER = "reconcile";

/** What the reconciler leaves behind at each tick. */
export interface Heartbeat {
  /** The worker process that leads. */
  leader: string;
  /** The mark it set in Redis when all schedules stood; null before it first did. */
  redisMark: string | null;
  /** What went wrong in this tick, by part. */
  troubles: Record<string, string>;
}

/** Notes that the reconciler is alive. */
export async function saveHeartbeat(sql: Queryable, heartbeat: Heartbeat): Promise<void> {
  const detail = JSON.stringify(heartbeat);
  await sql`
    insert into heartbeats (name, at, detail)
    values (${RECONCILER}, clock_timestamp(), ${detail}::text::jsonb)
    on conflict (name) do update
    set at = excluded.at,
        detail = excluded.detail`;
}

/** The newest heartbeat of the reconciler and its age in milliseconds by the database's clock; null before the first. */
export async function findHeartbeat(sql: Queryable): Promise<(Heartbeat & { ageMs: number }) | null> {
  const [row] = await sql<{ detail: Heartbeat; ageMs: number }[]>`
    select detail, extract(epoch from clock_timestamp() - at)::float8 * 1000 as "ageMs"
    from heartbeats
    where name = ${RECONCILER}`;
  return row === undefined ? null : { ...row.detail, ageMs: row.ageMs };
}
