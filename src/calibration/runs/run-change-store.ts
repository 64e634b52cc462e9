import type { Transaction } from "../../db/client.ts";
import { findRun, type ListedRun, type RunLabels } from "./run-list-store.ts";

/** Sets the note and the tags of a run; null if there is none. */
export async function labelRun(
  tx: Transaction,
  id: string,
  { note, tags }: Omit<RunLabels, "run">,
): Promise<{ before: ListedRun; after: ListedRun } | null> {
  const before = await lockRun(tx, id);
  if (before === null) return null;
  await tx`
    update calibration_runs
    set note = ${note}, tags = ${[...tags]}::text[]
    where id = ${id}`;
  return { before, after: { ...before, note, tags } };
}

/** Makes runs that were requested together one batch, which their first run names. */
export async function joinBatch(tx: Transaction, runs: readonly string[]): Promise<void> {
  await tx`
    update calibration_runs
    set batch_id = ${runs[0] ?? null}
    where id = any(${[...runs]}::bigint[])`;
}

/** Result of a change: the run before and after, or why nothing changed. */
export type RunChange = { ok: true; before: ListedRun; after: ListedRun } | { ok: false; reason: string };

/**
 * Cancels a run: immediately if no live process works on it; else its process stops at the next chunk and saves a
 * checkpoint.
 */
export async function cancelRun(tx: Transaction, id: string): Promise<RunChange | null> {
  const before = await lockRun(tx, id);
  if (before === null) return null;
  if (before.status !== "queued" && before.status !== "running")
    return { ok: false, reason: `run ${id} is ${before.status} already` };
  if (before.isStopping && !before.isSilent) return { ok: false, reason: `run ${id} is stopping already` };
  if (before.status === "queued" || before.isSilent) {
    await tx`
      update calibration_runs
      set
        status = 'cancelled',
        -- a process that resumes after a stop is refused
        epoch = epoch + 1,
        reason = ${before.status === "queued" ? "cancelled before it began" : "cancelled while its process sent no heartbeat"},
        cancel_asked_at = clock_timestamp(),
        finished_at = clock_timestamp()
      where id = ${id}`;
  } else {
    await tx`
      update calibration_runs
      set cancel_asked_at = clock_timestamp()
      where id = ${id}`;
  }
  return changed(tx, before);
}

/** Queues a cancelled or failed run; the next worker resumes it from its last checkpoint. */
export async function resumeRun(tx: Transaction, id: string): Promise<RunChange | null> {
  const before = await lockRun(tx, id);
  if (before === null) return null;
  if (before.status !== "cancelled" && before.status !== "failed")
    return { ok: false, reason: `run ${id} is ${before.status}; only a cancelled or failed run can be resumed` };
  if (before.outFile !== null)
    return {
      ok: false,
      reason: `run ${id} writes the file ${before.outFile}, so it must be resumed on the machine with the file: roundhouse calibrate --table ${before.table} --resume ${id} --out ${before.outFile}`,
    };
  await tx`
    update calibration_runs
    set
      status = 'queued',
      runner = 'worker',
      lost_attempts = 0,
      reason = null,
      cancel_asked_at = null,
      finished_at = null
    where id = ${id}`;
  return changed(tx, before);
}

async function lockRun(tx: Transaction, id: string): Promise<ListedRun | null> {
  await tx`
    select
    from calibration_runs
    where id = ${id}
      and kind = 'manual'
    for update`;
  return findRun(tx, id); // a second statement sees the commit of the previous lock holder
}

async function changed(tx: Transaction, before: ListedRun): Promise<RunChange> {
  const after = await findRun(tx, before.id);
  if (after === null) throw new Error(`the run ${before.id} was removed meanwhile`);
  return { ok: true, before, after };
}
