import { closeSync, openSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../log.ts";
import { reasonOf } from "../../errors.ts";
import { stopHandler } from "../stop-signal.ts";
import { watchParent } from "./parent.ts";

/** The default limit of a stop after the drain; what still runs then is aborted. */
const STOP_WITHIN_MS = 19_000;

/** What a long-running command receives for its start and its stop. */
export interface Life {
  /** Aborted when a stop is requested: nothing new is started after it. */
  ending: AbortSignal;
  /** Registers how to undo a step; the last registered is undone first. */
  onStop(what: string, undo: () => Promise<unknown>): void;
  /** The handler of SIGHUP. */
  onHangup(reload: () => Promise<void>): void;
  /** Stops the command in order, with exit code 1. */
  fail(why: string): void;
}

/** Time limits of a stop. */
export interface Ending {
  /**
   * How long everything continues after SIGTERM, with `ending` already aborted: a load balancer needs that time to notice.
   * Ctrl-C does not wait, and a second signal cuts it short.
   */
  drainMs?: number;
  /** The limit after that; see {@link STOP_WITHIN_MS}. */
  stopWithinMs?: number;
}

/**
 * Runs a command until SIGINT or SIGTERM: `begin` takes the steps, and at the end each is undone.
 *
 * Whatever ends it (a signal, a failed step, a dead server, an uncaught error), the steps taken so far are undone, last
 * first, within `stopWithinMs` (19 seconds) after the drain. A second Ctrl-C a second later cuts that short. Sets exit
 * code 1 unless a stop was requested and every step was undone. A closed terminal and the end of the npm that runs us count
 * as requests to stop; any other SIGHUP as a request to reload.
 * @throws the error of `begin`, after undoing its steps.
 */
export async function live(
  log: Log,
  begin: (life: Life) => Promise<void>,
  { drainMs = 0, stopWithinMs = STOP_WITHIN_MS }: Ending = {},
): Promise<void> {
  const undos: Undo[] = [];
  const stop = createStop(log, drainMs);
  const { ending } = stop;
  let reload: (() => Promise<void>) | null = null;
  const removeListeners = listenToSignals(log, stop, () => reload);

  let failure: { thrown: unknown } | null = null;
  let unwatch = () => {};
  try {
    unwatch = await watchParent(() => stop.end("npm ended: stopping"));
    await begin({
      ending,
      onStop: (what, undo) => undos.push({ what, undo }),
      onHangup: (action) => (reload = action),
      fail: (why) => stop.fail(why),
    });
    if (!ending.aborted) {
      await new Promise((resolve) => ending.addEventListener("abort", resolve, { once: true }));
    }
    await stop.drained();
  } catch (thrown) {
    // A step that was aborted because of the stop is no failure.
    if (!ending.aborted) failure = { thrown };
  }
  stop.abort("a step failed");
  await undoAll(undos, stopWithinMs, log);
  unwatch();
  removeListeners();
  if (failure !== null) throw failure.thrown;
}

interface Undo {
  what: string;
  undo: () => Promise<unknown>;
}

/** The requests to stop a command. */
interface Stop {
  ending: AbortSignal;
  /** Stops in order. */
  end(why: string): void;
  /** Stops in order, with exit code 1. */
  fail(why: string): void;
  interrupt(): void;
  terminate(): void;
  /** Waits for the drain after SIGTERM. */
  drained(): Promise<void>;
  /** Aborts `ending`, if that has not happened. */
  abort(why: string): void;
}

function createStop(log: Log, drainMs: number): Stop {
  const ending = new AbortController();
  const drain = new AbortController();
  let isTerminated = false;
  const abort = (why: string) => {
    if (!ending.signal.aborted) ending.abort(new Error(why));
  };
  const end = (why: string) => {
    if (ending.signal.aborted) return;
    log.info(why);
    abort(why);
  };
  const cutShort = () => {
    log.warn("cut short");
    process.exit(1); // the servers go with us, and recover at the next start
  };
  return {
    ending: ending.signal,
    end,
    abort,
    fail(why) {
      process.exitCode = 1;
      drain.abort();
      if (!ending.signal.aborted) log.fatal(why);
      abort(why);
    },
    interrupt: stopHandler(
      () => (ending.signal.aborted ? cutShort() : end("stopping, Ctrl-C again cuts it short")),
      cutShort,
    ),
    terminate() {
      if (ending.signal.aborted) return drain.abort();
      isTerminated = true;
      end(drainMs > 0 ? `draining for ${drainMs / 1_000} s, then stopping` : "stopping");
    },
    async drained() {
      // it rejects when the drain is cut short
      if (isTerminated) await delay(drainMs, undefined, { signal: drain.signal }).catch(() => undefined);
    },
  };
}

/** Connects the signals of the process to a stop; `reload` is the handler of SIGHUP. Returns a function that disconnects them. */
function listenToSignals(log: Log, stop: Stop, reload: () => (() => Promise<void>) | null): () => void {
  const atTerminal = process.stdin.isTTY;
  const hangup = () => {
    if (atTerminal && terminalIsGone()) return stop.end("the terminal was closed: stopping");
    const action = reload();
    if (action === null || stop.ending.aborted) return;
    action().catch((error: unknown) =>
      log.error(`not reloaded, the previous settings stay in use: ${reasonOf(error)}`),
    );
  };
  const crash = (thrown: unknown) => {
    log.fatal({ stack: thrown instanceof Error ? thrown.stack : undefined }, `this is a bug: ${reasonOf(thrown)}`);
    stop.fail("stopping after an unexpected error");
  };
  const listeners = {
    SIGINT: () => stop.interrupt(),
    SIGTERM: () => stop.terminate(),
    SIGHUP: hangup,
    uncaughtException: crash,
  } as const;
  for (const [event, listener] of Object.entries(listeners)) process.on(event, listener);
  return () => {
    for (const [event, listener] of Object.entries(listeners)) process.off(event, listener);
  };
}

/** Undoes all steps, the last one first. Exits after `stopWithinMs`. */
async function undoAll(undos: readonly Undo[], stopWithinMs: number, log: Log): Promise<void> {
  const deadline = setTimeout(() => {
    log.error(`not everything stopped within ${stopWithinMs / 1_000} s; cut short`);
    process.exit(1);
  }, stopWithinMs);
  for (const { what, undo } of undos.toReversed()) {
    try {
      await undo();
    } catch (error) {
      process.exitCode = 1;
      log.error(`${what} did not stop cleanly: ${reasonOf(error)}`);
    }
  }
  clearTimeout(deadline);
}

/** Whether the terminal that started us is closed; a SIGHUP sent manually leaves it open. */
function terminalIsGone(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return false;
  } catch {
    return true; // ENXIO or EIO: it cannot be opened any more
  }
}
