import type { Queryable } from "../db/client.ts";
import type { PeriodicState } from "./schedules/periodic.ts";

/** The name of the reconciler's lease and of its heartbeat. */
export const RECONCILER = "reconcile";

/** A queue that staff paused: by whom, when, why, and until when. */
export interface Pause {
  queue: string;
  pausedAt: Date;
  pausedBy: string;
  reason: string;
  /** When it is resumed automatically; null if staff must resume it. */
  until: Date | null;
  /** Distinguishes this pause from any other of the queue. */
  version: string;
}

function columnsOf(sql: Queryable) {
  return sql`queue, paused_at as "pausedAt", paused_by as "pausedBy", reason, until, paused_at::text as version`;
}

/** Lists the pauses. */
export async function listPauses(sql: Queryable): Promise<Pause[]> {
  return sql<Pause[]>`
    select ${columnsOf(sql)}
    from queue_controls
    order by queue`;
}

/** Finds the pause of a queue; null if it is not paused. */
export async function findPause(sql: Queryable, queue: string): Promise<Pause | null> {
  const [row] = await sql<Pause[]>`
    select ${columnsOf(sql)}
    from queue_controls
    where queue = ${queue}`;
  return row ?? null;
}

/** Stores a pause. Returns null, with nothing changed, if the queue is paused already. `until` is a time as text. */
export async function insertPause(
  sql: Queryable,
  pause: { queue: string; by: string; reason: string; until: string | null },
): Promise<Pause | null> {
  const [row] = await sql<Pause[]>`
    insert into queue_controls (queue, paused_at, paused_by, reason, until)
    values (${pause.queue}, clock_timestamp(), ${pause.by}, ${pause.reason}, ${pause.until}::text::timestamptz)
    on conflict do nothing
    returning ${columnsOf(sql)}`;
  return row ?? null;
}

/** Deletes the pause of a queue. Returns null if it is not paused, or if `version` is given and it is another pause. */
export async function deletePause(sql: Queryable, queue: string, version: string | null): Promise<Pause | null> {
  const [row] = await sql<Pause[]>`
    delete from queue_controls
    where queue = ${queue}
      and (${version}::text is null or paused_at::text = ${version})
    returning ${columnsOf(sql)}`;
  return row ?? null;
}

/** Deletes the pauses whose time is over, and returns them. */
export async function deleteEndedPauses(sql: Queryable): Promise<Pause[]> {
  return sql<Pause[]>`
    delete from queue_controls
    where until <= clock_timestamp()
    returning ${columnsOf(sql)}`;
}

/** A process that works on queues. */
export interface WorkerProcess {
  id: string;
  pid: number;
  host: string;
  version: string;
  queues: string[];
  /** Why it takes no work while its machine's clock is wrong; null if it is right. */
  clockProblem: string | null;
  /** Memory of the process, and the part that JavaScript uses. */
  rssBytes: number;
  heapBytes: number;
}

/** Stores that a worker process is alive. */
export async function saveWorker(sql: Queryable, worker: WorkerProcess): Promise<void> {
  await sql`
    insert into workers (id, pid, host, version, queues, clock_problem, rss_bytes, heap_bytes)
    values (
      ${worker.id}, ${worker.pid}, ${worker.host}, ${worker.version}, ${worker.queues}, ${worker.clockProblem},
      ${worker.rssBytes}, ${worker.heapBytes}
    )
    on conflict (id) do update
    set seen_at = now(),
        clock_problem = excluded.clock_problem,
        rss_bytes = excluded.rss_bytes,
        heap_bytes = excluded.heap_bytes`;
}

/** A worker process as it last reported. */
export interface ReportedWorker extends Omit<WorkerProcess, "rssBytes" | "heapBytes"> {
  startedAt: Date;
  seenAt: Date;
  /** Null for a process of an older version. */
  rssBytes: number | null;
  heapBytes: number | null;
  isLeading: boolean;
}

/** Lists the worker processes, longest running first; one that was killed is listed until {@link deleteSilentWorkers}. */
export async function listWorkers(sql: Queryable): Promise<ReportedWorker[]> {
  return sql<ReportedWorker[]>`
    select
      w.id, w.pid, w.host, w.version, w.queues, w.clock_problem as "clockProblem", w.started_at as "startedAt",
      w.seen_at as "seenAt", w.rss_bytes::float8 as "rssBytes", w.heap_bytes::float8 as "heapBytes",
      coalesce(h.detail ->> 'leader' = w.id, false) as "isLeading"
    from workers w
    left join heartbeats h on h.name = ${RECONCILER}
    order by w.started_at, w.id`;
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

/** Lists machines of worker processes whose clock is wrong, as alerts: the machine and the problem. */
export async function listWrongClocks(sql: Queryable): Promise<{ subject: string; text: string }[]> {
  return sql<{ subject: string; text: string }[]>`
    select distinct on (host) host as subject, clock_problem as text
    from workers
    where clock_problem is not null
    order by host, seen_at desc`;
}

/** What the reconciler stores at each tick. */
export interface Heartbeat {
  /** The worker process that leads. */
  leader: string;
  /** The mark that it set in Redis once all schedules were restored; null before that. */
  redisMark: string | null;
  /** The steps whose last run failed, with their reasons. */
  failures: Record<string, string>;
  tasks: PeriodicState[];
}

/**
 * Records that the reconciler is alive. Does nothing if `epoch` is no longer that of its lease: the Redis mark of a leader
 * that was replaced would make the new one report a loss of Redis.
 */
export async function saveHeartbeat(sql: Queryable, heartbeat: Heartbeat, epoch: bigint): Promise<void> {
  const detail = JSON.stringify(heartbeat);
  await sql`
    insert into heartbeats (name, at, detail)
    select name, clock_timestamp(), ${detail}::text::jsonb
    from leases
    where name = ${RECONCILER}
      and epoch = ${epoch}
    on conflict (name) do update
    set at = excluded.at,
        detail = excluded.detail`;
}

/** Finds the newest heartbeat of the reconciler and its age in milliseconds by the database's clock; null before the first. */
export async function findHeartbeat(sql: Queryable): Promise<(Heartbeat & { ageMs: number }) | null> {
  const [row] = await sql<{ detail: Partial<Heartbeat> & Pick<Heartbeat, "leader" | "redisMark">; ageMs: number }[]>`
    select detail, extract(epoch from clock_timestamp() - at)::float8 * 1000 as "ageMs"
    from heartbeats
    where name = ${RECONCILER}`;
  // a leader of an older version reports no tasks
  return row === undefined ? null : { failures: {}, tasks: [], ...row.detail, ageMs: row.ageMs };
}
