import { once } from "node:events";
import { setFlagsFromString } from "node:v8";
import { parentPort, Worker } from "node:worker_threads";
import { startDeadline, type Deadline } from "./abort.ts";
import { codeOf } from "./errors.ts";

/**
 * A worker thread for tasks that must not block the process. The first task starts it; it ends after `idleMs` without
 * one, and it does not keep the process alive.
 *
 * piscina 5.3 and tinypool 2.2 were tried with one thread: after a task was aborted, the task queued behind it was
 * never run.
 */
export interface Thread<Task, Result> {
  /**
   * Runs a task after those before it, unless its signal is aborted before it starts.
   * @throws ThreadLimitError if it exceeds a limit; its thread is terminated then, and the next task gets another.
   * @throws ThreadBusyError if too many tasks wait.
   * @throws Error with the message of what the task threw.
   */
  run(task: Task, signal?: AbortSignal): Promise<Result>;
  /** Terminates the thread; its tasks reject. The next task starts another one. */
  close(): Promise<void>;
}

/** What a thread and each of its tasks may use. */
export interface ThreadLimits {
  /** For one task, with the start of the thread and without the wait for other tasks. */
  deadlineMs: number;
  idleMs: number;
  /** Running and waiting. */
  maxTasks: number;
  heapMb: number;
}

/** A task took too long or too much memory, or too many were waiting. */
export class ThreadLimitError extends Error {}

/** Too many tasks wait: nothing is wrong with the one that was refused. */
export class ThreadBusyError extends ThreadLimitError {}

type Reply<Result> = { ok: true; result: Result } | { ok: false; message: string };

/** A thread that runs a file which calls {@link runTasks}. Tasks and results are structured clones. */
export function createThread<Task, Result>(
  file: URL,
  { deadlineMs, idleMs, maxTasks, heapMb }: ThreadLimits,
): Thread<Task, Result> {
  let worker: Worker | null = null;
  let closing = new AbortController();
  let last: Promise<unknown> = Promise.resolve();
  let tasks = 0;
  let idle: NodeJS.Timeout | undefined;

  const forget = (ended: Worker) => void (worker = worker === ended ? null : worker);
  async function runNow(task: Task, closed: AbortSignal, signal?: AbortSignal): Promise<Result> {
    for (const one of [closed, signal]) one?.throwIfAborted();
    clearTimeout(idle);
    const current = (worker ??= startWorker(file, heapMb, forget));
    const deadline = startDeadline(closed, deadlineMs);
    current.ref();
    try {
      return await askWorker<Result>(current, task, deadline.signal);
    } catch (error) {
      if (isLate(error, deadline)) await end(current);
      throwIfLimited(error, deadline, { deadlineMs, heapMb });
      closed.throwIfAborted();
      throw error;
    } finally {
      deadline.end();
      current.unref();
      idle = setTimeout(() => void close(), idleMs).unref();
    }
  }

  async function end(ended: Worker): Promise<void> {
    forget(ended);
    await ended.terminate();
  }

  async function close(): Promise<void> {
    clearTimeout(idle);
    closing.abort(new Error("the thread has ended"));
    closing = new AbortController();
    if (worker !== null) await end(worker);
  }

  return {
    close,
    async run(task, signal) {
      if (tasks >= maxTasks) throw new ThreadBusyError(`expected at most ${maxTasks} tasks to wait; try again`);
      tasks += 1;
      const { signal: closed } = closing;
      const running = last.then(() => runNow(task, closed, signal));
      last = running.catch(() => undefined); // reported to the caller below
      try {
        return await running;
      } finally {
        tasks -= 1;
      }
    },
  };
}

/**
 * For new objects of a thread: without a limit up to 192 MB, which it would fill before it frees any. V8 ends the whole
 * process if a thread exceeds its limit by 16 MB in one step, as when many new objects become old ones.
 */
const YOUNG_MB = 12;

function startWorker(file: URL, heapMb: number, onError: (failed: Worker) => void): Worker {
  const resourceLimits = { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: YOUNG_MB };
  // the flag would have precedence over the limit; the memory of the process itself was set at its start
  setFlagsFromString("--max-semi-space-size=0");
  const started = new Worker(file, { resourceLimits });
  started.on("error", () => onError(started)); // without a listener, the error of an idle thread ends the process
  return started;
}

function isLate(error: unknown, deadline: Deadline): boolean {
  return deadline.isLate() && codeOf(error) === "ABORT_ERR";
}

/** @throws ThreadLimitError if the task took too long or too much memory. */
function throwIfLimited(
  error: unknown,
  deadline: Deadline,
  { deadlineMs, heapMb }: Pick<ThreadLimits, "deadlineMs" | "heapMb">,
): void {
  if (isLate(error, deadline))
    throw new ThreadLimitError(`the task did not end within ${deadlineMs / 1000} s`, { cause: error });
  if (codeOf(error) === "ERR_WORKER_OUT_OF_MEMORY")
    throw new ThreadLimitError(`the task needs more than ${heapMb} MB`, { cause: error });
}

async function askWorker<Result>(worker: Worker, task: unknown, signal: AbortSignal): Promise<Result> {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window, it has no origin
  worker.postMessage(task);
  const [reply] = (await once(worker, "message", { signal })) as [Reply<Result>];
  if (reply.ok) return reply.result;
  throw new Error(reply.message);
}

/** Called by the file of a thread: replies to every task of {@link Thread.run} with what `run` returns or throws. */
export function runTasks(run: (task: never) => unknown): void {
  const replyTo = async (task: unknown): Promise<Reply<unknown>> => {
    try {
      return { ok: true, result: await run(task as never) };
    } catch (error) {
      return { ok: false, message: error instanceof Error ? error.message : String(error) };
    }
  };
  parentPort?.on("message", (task: unknown) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window, it has no origin
    void replyTo(task).then((reply) => parentPort?.postMessage(reply));
  });
}
