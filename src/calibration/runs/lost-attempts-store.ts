import type { Queryable } from "../../db/client.ts";
import { COMPARISON_SILENT_SECONDS, type Pair } from "../comparison-store.ts";
import { SILENT_SECONDS } from "./manual-run-store.ts";
import { ROLLING_SILENT_SECONDS } from "./rolling-run-store.ts";

/**
 * Attempts of a run or comparison that may be lost in a row. A lost worker also stops the other work of its process, so
 * work that kills its workers must not be retried without limit.
 */
const MOST_LOST_ATTEMPTS = 5;

const DIED = `${MOST_LOST_ATTEMPTS} workers in a row died during this; find the reason in the log of their machine (memory?)`;
const REASON = `${DIED}, then start it again`;

/**
 * Fails a manual run that has lost too many workers since its last checkpoint. Returns the stored reason; null if the run
 * may be claimed. An operator can resume it.
 */
export async function giveUpLostRun(sql: Queryable, run: string): Promise<string | null> {
  const rows = await sql`
    update calibration_runs
    set
      status = 'failed',
      -- a process that resumes after a stop is refused
      epoch = epoch + 1,
      lost_attempts = lost_attempts + 1,
      reason = ${REASON},
      finished_at = clock_timestamp()
    where id = ${run}
      and kind = 'manual'
      and runner = 'worker'
      and status = 'running'
      and heartbeat_at < clock_timestamp() - ${SILENT_SECONDS} * interval '1 second'
      and lost_attempts + 1 >= ${MOST_LOST_ATTEMPTS}
    returning id`;
  return rows.length === 0 ? null : REASON;
}

/** Like {@link giveUpLostRun}, for a rolling run, which is released instead: its sweep finds it 15 minutes later. */
export async function releaseLostRun(sql: Queryable, run: string): Promise<string | null> {
  const rows = await sql`
    update calibration_runs
    set
      status = 'queued',
      epoch = epoch + 1,
      lost_attempts = 0,
      reason = ${DIED},
      heartbeat_at = clock_timestamp()
    where id = ${run}
      and kind = 'rolling'
      and status = 'running'
      and heartbeat_at < clock_timestamp() - ${ROLLING_SILENT_SECONDS} * interval '1 second'
      and lost_attempts + 1 >= ${MOST_LOST_ATTEMPTS}
    returning id`;
  return rows.length === 0 ? null : DIED;
}

/** Like {@link giveUpLostRun}, for a comparison. An operator can request it again. */
export async function giveUpLostComparison(sql: Queryable, [a, b]: Pair): Promise<string | null> {
  const rows = await sql`
    update calibration_comparisons
    set
      status = 'failed',
      lost_attempts = lost_attempts + 1,
      reason = ${REASON},
      finished_at = clock_timestamp()
    where a_id = ${a}
      and b_id = ${b}
      and status = 'running'
      and heartbeat_at < clock_timestamp() - ${COMPARISON_SILENT_SECONDS} * interval '1 second'
      and lost_attempts + 1 >= ${MOST_LOST_ATTEMPTS}
    returning a_id`;
  return rows.length === 0 ? null : REASON;
}
