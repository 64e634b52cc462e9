import { setTimeout as delay } from "node:timers/promises";
import { reasonOf } from "../../src/errors.ts";
import type { Testbed } from "./testbed.ts";

const TIMEOUT_MS = 120_000;
const CHECK_EVERY_MS = 250;

/**
 * Waits until the effects of earlier faults are over: every process responds, each worker is registered with a correct
 * clock, one of them leads, and no alert is open. Returns null, or the remaining problems after two minutes.
 */
export async function waitForHealth(testbed: Testbed): Promise<string | null> {
  let wrong: string[] = [];
  for (const until = performance.now() + TIMEOUT_MS; performance.now() < until; await delay(CHECK_EVERY_MS)) {
    wrong = await listProblems(testbed).catch((error: unknown) => [`PostgreSQL does not respond: ${reasonOf(error)}`]);
    if (wrong.length === 0) return null;
  }
  return wrong.join("; ");
}

async function listProblems({ sql, api, workers }: Testbed): Promise<string[]> {
  const silent = [api, ...workers].filter((managed) => managed.url() === null);
  const pids = workers.map((worker) => worker.pid() ?? 0);
  const rows = await sql<{ what: string }[]>`
    select format('the process %s is not registered as a worker', pid) as what
    from unnest(${pids}::integer[]) as pid
    where not exists (
        select
        from workers w
        where w.pid = pid.pid
          and w.seen_at > clock_timestamp() - interval '15 seconds'
      )
    union all
    select format('worker %s: %s', pid, clock_problem)
    from workers
    where pid = any(${pids}::integer[])
      and clock_problem is not null
    union all
    select 'no worker leads'
    where not exists (
        select
        from heartbeats
        where name = 'reconcile'
          and at > clock_timestamp() - interval '15 seconds'
      )
    union all
    select format('the alert %s (%s) is open: %s', kind, subject, text)
    from alerts
    where closed_at is null`;
  return [...silent.map(({ name }) => `${name} does not respond`), ...rows.map(({ what }) => what)];
}
