import type { Queryable } from "../db/client.ts";
import { COMPARISON_SILENT_SECONDS, type Pair } from "./comparison-store.ts";
import { SILENT_SECONDS } from "./manual-run-store.ts";

/**
 * So many workers in a row may be lost over the same piece of work. Each takes down with it whatever else its process
 * does, so work that kills whoever takes it up must not be handed round forever.
 */
const MOST_LOST_TURNS = 5;

const REASON = `${MOST_LOST_TURNS} workers in a row ended without a word over this; look in the log of their machine for what killed them (memory?), then ask again`;

/**
 * Ends a run manually that waits for a worker and has lost too many of them since its last checkpoint. Gives the reason,
 * which the run keeps; null if it may be taken up. A person can let it continue.
 */
export async function giveUpLostRun(sql: Queryable, run: string): Promise<string | null> {
  const rows = await sql`
    update calibration_runs
    set
      status = 'failed',
      -- what a process that wakes up again still writes is refused
      epoch = epoch + 1,
      lost_turns = lost_turns + 1,
      reason = ${REASON},
      finished_at = clock_timestamp()
    where id = ${run}
      and kind = 'manual'
      and runner = 'worker'
      and status = 'running'
      and heartbeat_at < clock_timestamp() - ${SILENT_SECONDS} * interval '1 second'
      and lost_turns + 1 >= ${MOST_LOST_TURNS}
    returning id`;
  return rows.length === 0 ? null : REASON;
}

/** Ends a comparison that has lost too many workers, as {@link giveUpLostRun} does a run. A person can ask for it again. */
export async function giveUpLostComparison(sql: Queryable, [a, b]: Pair): Promise<string | null> {
  const rows = await sql`
    update calibration_comparisons
    set
      status = 'failed',
      lost_turns = lost_turns + 1,
      reason = ${REASON},
      finished_at = clock_timestamp()
    where a_id = ${a}
      and b_id = ${b}
      and status = 'running'
      and heartbeat_at < clock_timestamp() - ${COMPARISON_SILENT_SECONDS} * interval '1 second'
      and lost_turns + 1 >= ${MOST_LOST_TURNS}
    returning a_id`;
  return rows.length === 0 ? null : REASON;
}
