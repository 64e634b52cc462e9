import type { Decided, Refusal } from "../../audit/decision.ts";
import type { Transaction } from "../../db/client.ts";
import { findRun, type ListedRun, type RunLabels } from "./run-list-store.ts";

/** Sets the note and the tags of a run. */
export async function labelRun(tx: Transaction, id: string, labels: Omit<RunLabels, "run">): Promise<Decided> {
  const before = await lockRun(tx, id);
  if (before === null) return unknownRun(id);
  const { note, tags } = labels;
  await tx`
    update calibration_runs
    set note = ${note}, tags = ${[...tags]}::text[]
    where id = ${id}`;
  return {
    ok: true,
    target: `run ${id} of ${before.table}`,
    before: { note: before.note, tags: before.tags },
    after: { note, tags },
    message: `Note and tags of run ${id} saved`,
  };
}

/** Makes runs that were requested together one batch, which their first run names. */
export async function joinBatch(tx: Transaction, runs: readonly string[]): Promise<void> {
  await tx`
    update calibration_runs
    set batch_id = ${runs[0] ?? null}
    where id = any(${[...runs]}::bigint[])`;
}

/**
 * Cancels a run: immediately if no live process works on it; else its process stops at the next chunk and saves a
 * checkpoint.
 */
export async function cancelRun(tx: Transaction, id: string): Promise<Decided> {
  const before = await lockRun(tx, id);
  if (before === null) return unknownRun(id);
  if (before.status !== "queued" && before.status !== "running")
    return { ok: false, problem: `run ${id} is ${before.status} already` };
  if (before.isStopping && !before.isSilent) return { ok: false, problem: `run ${id} is stopping already` };
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
export async function resumeRun(tx: Transaction, id: string): Promise<Decided> {
  const before = await lockRun(tx, id);
  if (before === null) return unknownRun(id);
  if (before.status !== "cancelled" && before.status !== "failed")
    return { ok: false, problem: `run ${id} is ${before.status}; only a cancelled or failed run can be resumed` };
  if (before.outFile !== null)
    return {
      ok: false,
      problem: `run ${id} writes the file ${before.outFile}, so it must be resumed on the machine with the file: roundhouse calibrate --table ${before.table} --resume ${id} --out ${before.outFile}`,
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

function unknownRun(id: string): Refusal {
  return { ok: false, problem: `there is no manual run ${id}`, isUnknown: true };
}

async function changed(tx: Transaction, before: ListedRun): Promise<Decided> {
  const { id } = before;
  const after = await findRun(tx, id);
  if (after === null) throw new Error(`the run ${id} was removed meanwhile`);
  const outcome = after.status === "queued" ? "queued; it resumes from its last checkpoint" : "cancelled";
  return {
    ok: true,
    target: `run ${id} of ${after.table}`,
    before: factsOf(before),
    after: factsOf(after),
    message: `Run ${id} ${after.isStopping ? "stops at its next chunk" : outcome}`,
  };
}

function factsOf({ status, isStopping, atSeq }: ListedRun) {
  return { status: isStopping ? "stopping" : status, at_seq: atSeq === null ? null : String(atSeq) };
}
