import { setTimeout as delay } from "node:timers/promises";
import { startDeadline, unlessAborted, type Deadline } from "../../abort.ts";
import type { Log } from "../../log.ts";
import type { Counts } from "../job.ts";

/** How long an aborted run may take to end before it is abandoned. */
const ABORT_GRACE_MS = 2_000;

/** The outcome of an attempt. */
type Outcome = { kind: "done"; counts: Counts } | { kind: "failed"; error: unknown } | { kind: "stopped" };

/** The attempts of one job in one process. */
export interface Attempts {
  /** Whether a run of this key is active, or abandoned and not known to have ended. */
  isBusy(key: string): boolean;
  /** Runs one attempt. Never throws: a failure is an outcome. */
  make(key: string, work: (signal: AbortSignal) => Promise<Counts>, log: Log, cancelled: AbortSignal): Promise<Outcome>;
}

/**
 * Limits the time of attempts: work is aborted after `timeoutMs`, when it is cancelled, or when `stop` is aborted.
 *
 * An aborted run has two seconds to end. One that ignores its signal counts as failed; it cannot be killed, so it keeps
 * its key busy until it ends or for another `timeoutMs`, whichever is sooner. After that, and in other processes from the
 * start, two runs of one key can overlap: leases and constraints in PostgreSQL make that harmless.
 */
export function createAttempts({ timeoutMs, stop }: { timeoutMs: number; stop: AbortSignal }): Attempts {
  const busy = new Map<string, Promise<Outcome>>();
  const active = new Set<Deadline>();
  stop.addEventListener("abort", () => {
    for (const attempt of active) attempt.abort(stop.reason);
  });

  return {
    isBusy: (key) => busy.has(key),
    async make(key, work, log, cancelled) {
      const attempt = startDeadline(cancelled, timeoutMs);
      const { signal } = attempt;
      if (stop.aborted) attempt.abort(stop.reason);
      active.add(attempt);
      const outcome = outcomeOf(work, signal);
      const free = () => {
        if (busy.get(key) === outcome) busy.delete(key);
      };
      busy.set(key, outcome);
      void outcome.then(free);
      const first = await unlessAborted(outcome, signal).catch(() => "aborted" as const);
      attempt.end();
      active.delete(attempt);
      if (first !== "aborted") return first;
      const second = await Promise.race([outcome, delay(ABORT_GRACE_MS, "ignored" as const, { ref: false })]);
      if (second === "ignored") {
        setTimeout(free, timeoutMs).unref();
        void abandon(outcome, log);
      } else if (second.kind === "done") return second; // it ended although it was aborted
      return stop.aborted ? { kind: "stopped" } : { kind: "failed", error: signal.reason };
    },
  };
}

async function outcomeOf(work: (signal: AbortSignal) => Promise<Counts>, signal: AbortSignal): Promise<Outcome> {
  try {
    return { kind: "done", counts: await work(signal) };
  } catch (error) {
    return { kind: "failed", error };
  }
}

async function abandon(outcome: Promise<Outcome>, log: Log): Promise<void> {
  const since = performance.now();
  log.error("a run ignores that it was aborted and is abandoned; its job must check its signal");
  const { kind } = await outcome;
  const ms = Math.round(performance.now() - since);
  log.warn({ ms }, `the abandoned run has ended: ${kind}`);
}
