import { type Job as QueuedRun, WaitingError } from "bullmq";
import type { Log } from "../../log.ts";
import { createAttempts } from "./attempt.ts";
import {
  type Attempt,
  delayRun,
  type Facts,
  fail,
  giveUp,
  isGivenUp,
  isLogged,
  permanentFailure,
  requireFewCrashes,
} from "./failure.ts";
import type { Counts, Job, JobContext } from "../job.ts";
import { createMissedTicks } from "./missed-ticks.ts";
import { problemsOf } from "../queues.ts";
import type { RunReport } from "../report.ts";
import { createTraces } from "../traces.ts";

/** A run without work, to wake a queue whose delayed runs are not picked up (taskforcesh/bullmq#3516). */
export const WAKE = "wake";

/** Counts that are no result: a run of polls without new rounds is logged at debug level. */
const NO_RESULTS: ReadonlySet<string> = new Set(["skipped", "behind", "requests", "unchanged"]);
const BUSY_WAIT_MS = 1_000;

/** The runs of one job in one process. */
export interface Runner {
  /** The processor for BullMQ. `ending` is aborted when the process takes no more work. */
  process(queued: QueuedRun, token: string | undefined, signals: Signals): Promise<void>;
  /** The number of active runs. */
  active(): number;
  /** Milliseconds since runs began to start without one that completed; 0 if the last one completed. */
  unfinishedMs(): number;
  /** Whether the failure with this error has been logged. */
  isLogged(error: Error): boolean;
  /** Counts a run that failed outside of `process`, because its worker process died too often. */
  lost(): void;
}

interface Signals {
  /** Of BullMQ: aborted when the run is cancelled. */
  signal: AbortSignal | undefined;
  ending: AbortSignal;
}

/**
 * Runs one job and reports the outcome to the queue:
 *
 * - it returned its counts: done, with one log line, at debug level if nothing was done;
 * - it threw, timed out or lost its lock: retried after a back-off, until its attempts are spent;
 * - PermanentError, or an invalid payload: failed permanently;
 * - ThrottledError, or PostgreSQL out of reach: delayed without spending an attempt;
 * - its worker stops: put back for another worker.
 *
 * A tick, which is a scheduled run of a job with one attempt, is never delayed: the next tick does the same work, and
 * delayed ticks would pile up. A run that lasts until the next tick queues that tick again if it arrived too early. In this
 * process one run per key is active at a time; see {@link createAttempts}.
 */
export function createRunner(options: {
  job: Job<unknown>;
  context: Omit<JobContext, "signal" | "ending" | "log" | "follow">;
  log: Log;
  stop: AbortSignal;
  /** Called when a run has ended. */
  ran?: ((report: RunReport) => void) | undefined;
}): Runner {
  const { job, context, stop } = options;
  const attempts = createAttempts({ timeoutMs: job.timeoutMs, stop });
  const ticks = job.lasts === undefined ? null : createMissedTicks(job, context);
  let active = 0;
  let unfinishedSince: number | null = null;

  async function run(queued: QueuedRun, token: string | undefined, signals: Signals): Promise<void> {
    const begun = beginAttempt(queued, token, options);
    const payload = parsePayload(begun);
    await requireFewCrashes(begun, payload, context.sql);
    const key = job.key(payload);
    const attempt = { ...begun, log: begun.log.child({ key }) };
    if (!attempts.isBusy(key)) {
      const work = () => make(attempt, key, payload, signals);
      return ticks === null ? work() : ticks.run(key, payload, work);
    }
    ticks?.note(key, payload);
    return skip(attempt);
  }

  async function make(attempt: Attempt, key: string, payload: unknown, signals: Signals): Promise<void> {
    unfinishedSince ??= attempt.startedAt;
    const { follow, lines } = createTraces();
    const { ending } = signals;
    const work = (signal: AbortSignal) => job.run(payload, { ...context, log: attempt.log, signal, ending, follow });
    const outcome = await attempts.make(key, work, attempt.log, signals.signal ?? stop);
    if (outcome.kind === "done") unfinishedSince = active > 1 ? performance.now() : null;
    const facts = factsOf(attempt, lines());
    if (outcome.kind === "done") return complete(attempt, facts, outcome.counts);
    if (outcome.kind === "stopped") return putBack(attempt, facts);
    if (isGivenUp(attempt, outcome.error)) await giveUp(attempt, payload, context.sql, outcome.error);
    return fail(attempt, facts, outcome.error);
  }

  return {
    async process(queued, token, signals) {
      if (queued.name === WAKE) return;
      active++;
      try {
        await run(queued, token, signals);
      } finally {
        active--;
      }
    },
    active: () => active,
    unfinishedMs: () => (unfinishedSince === null ? 0 : performance.now() - unfinishedSince),
    isLogged,
    lost: () => options.ran?.({ queue: job.name, outcome: "failed", seconds: 0, counts: null }),
  };
}

function beginAttempt(
  queued: QueuedRun,
  token: string | undefined,
  { job, log, ran }: Pick<Parameters<typeof createRunner>[0], "job" | "log" | "ran">,
): Attempt {
  const startedAt = performance.now();
  return {
    job,
    queued,
    token,
    number: queued.attemptsMade + 1,
    isTick: job.lasts !== undefined || (queued.repeatJobKey !== undefined && job.retry.attempts === 1),
    log: log.child({ queue: job.name }),
    startedAt,
    report(outcome, counts) {
      ran?.({ queue: job.name, outcome, seconds: (performance.now() - startedAt) / 1_000, counts: counts ?? null });
    },
  };
}

/** @throws UnrecoverableError if the payload is not valid. */
function parsePayload(attempt: Attempt): unknown {
  const { data, error } = attempt.job.payload.safeParse(attempt.queued.data);
  if (error === undefined) return data;
  attempt.report("failed");
  throw permanentFailure(attempt.log, `the payload is not valid: ${problemsOf(error)}`);
}

/** Another run of this key is active: a tick is dropped, any other run is delayed. */
async function skip(attempt: Attempt): Promise<void> {
  attempt.report("skipped");
  attempt.log.debug({ attempt: attempt.number }, "skipped: a run of this key is still active");
  if (!attempt.isTick) throw await delayRun(attempt, BUSY_WAIT_MS);
}

/** The facts for the log. Names of payloads that do not fit into one line get their own lines. */
function factsOf({ number, startedAt, log }: Attempt, [traces, ...more]: string[][]): Facts {
  for (const names of more) log.info({ traces: names }, "the run that ends with the next line is also about these");
  const ms = Math.round(performance.now() - startedAt);
  return { attempt: number, ms, ...(traces === undefined ? {} : { traces }) };
}

function complete(attempt: Attempt, facts: Facts, counts: Counts): void {
  attempt.report("done", counts);
  attempt.log[didNothing(counts) ? "debug" : "info"]({ ...facts, counts }, "done");
}

async function putBack(attempt: Attempt, facts: Facts): Promise<never> {
  attempt.report("stopped");
  attempt.log.info(facts, "stopped with its worker; another one runs it again");
  await attempt.queued.moveToWait(attempt.token);
  throw new WaitingError();
}

function didNothing(counts: Counts): boolean {
  return Object.entries(counts).every(([name, count]) => NO_RESULTS.has(name) || count === 0);
}
