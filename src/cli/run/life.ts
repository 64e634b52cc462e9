import { closeSync, openSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../log.ts";
import { reasonOf } from "../../errors.ts";
import { watchParent } from "./parent.ts";

/** A stop takes no longer than this after the drain, if the command sets nothing else; what still runs then is cut off. */
const STOP_WITHIN_MS = 19_000;
/** One Ctrl-C arrives up to twice, from the terminal and from npm; a second within this time is the same one. */
const SAME_CTRL_C_MS = 1_000;

/** What a long-running command is given to begin and to end with. */
export interface Life {
  /** Aborted when the end is asked for: nothing new is begun after it. */
  ending: AbortSignal;
  /** How to undo a step that was taken; the last one taken is undone first. */
  onStop(what: string, undo: () => Promise<unknown>): void;
  /** What SIGHUP does. */
  onHangup(reload: () => Promise<void>): void;
  /** Ends the command in order, with exit code 1. */
  fail(why: string): void;
}

/** How long a command may take to end. */
export interface Ending {
  /**
   * How long everything continues after SIGTERM, with `ending` aborted already: a load balancer needs that time to notice.
   * Ctrl-C does not wait, and a second signal cuts it short.
   */
  drainMs?: number;
  /** The time after that; see {@link STOP_WITHIN_MS}. */
  stopWithinMs?: number;
}

/**
 * Runs a command that lives until SIGINT or SIGTERM: `begin` takes the steps, and in the end each is undone.
 *
 * However it ends (asked for, a step that fails, a server that died, an error nobody caught) the steps taken so far are undone,
 * last first, within `stopWithinMs` (19 seconds) after the drain. A second Ctrl-C a second later cuts that short. Sets exit code 1 unless the end was asked for and every
 * step could be undone. A terminal that was closed, and the end of the npm that runs us, count as asking for the end; SIGHUP otherwise
 * as asking for a reload.
 * @throws what `begin` threw, after undoing what it had begun.
 */
export async function live(
  log: Log,
  begin: (life: Life) => Promise<void>,
  { drainMs = 0, stopWithinMs = STOP_WITHIN_MS }: Ending = {},
): Promise<void> {
  const ending = new AbortController();
  const drain = new AbortController();
  let isTerminated = false;
  const undos: { what: string; undo: () => Promise<unknown> }[] = [];
  let reload: (() => Promise<void>) | null = null;

  const end = (why: string) => {
    if (ending.signal.aborted) return;
    log.info(why);
    ending.abort(new Error(why));
  };
  const fail = (why: string) => {
    process.exitCode = 1;
    drain.abort();
    if (!ending.signal.aborted) log.fatal(why);
    ending.abort(new Error(why));
  };
  const crash = (thrown: unknown) => {
    log.fatal({ stack: thrown instanceof Error ? thrown.stack : undefined }, `this is a bug: ${reasonOf(thrown)}`);
    fail("stopping after an error that nobody expected");
  };
  let interruptedAt = -Infinity;
  const interrupt = () => {
    const isSame = performance.now() - interruptedAt < SAME_CTRL_C_MS;
    if (!isSame) interruptedAt = performance.now();
    if (!ending.signal.aborted) return end("stopping, Ctrl-C again cuts it short");
    drain.abort();
    if (isSame) return;
    log.warn("cut short");
    process.exit(1); // the servers go with us, and recover at the next start
  };
  const terminate = () => {
    if (ending.signal.aborted) return drain.abort();
    isTerminated = true;
    end(drainMs > 0 ? `draining for ${drainMs / 1_000} s, then stopping` : "stopping");
  };
  const atTerminal = process.stdin.isTTY;
  const hangup = () => {
    if (atTerminal && terminalIsGone()) return end("the terminal was closed: stopping");
    if (reload === null || ending.signal.aborted) return;
    reload().catch((error: unknown) => log.error(`not reloaded, everything goes on as before: ${reasonOf(error)}`));
  };
  const listeners = { SIGINT: interrupt, SIGTERM: terminate, SIGHUP: hangup, uncaughtException: crash } as const;
  for (const [event, listener] of Object.entries(listeners)) process.on(event, listener);

  let failure: { thrown: unknown } | null = null;
  let unwatch = () => {};
  try {
    unwatch = await watchParent(() => end("npm ended: stopping"));
    await begin({
      ending: ending.signal,
      onStop: (what, undo) => undos.push({ what, undo }),
      onHangup: (action) => (reload = action),
      fail,
    });
    if (!ending.signal.aborted) {
      await new Promise((resolve) => ending.signal.addEventListener("abort", resolve, { once: true }));
    }
    // it rejects when the drain is cut short
    if (isTerminated) await delay(drainMs, undefined, { signal: drain.signal }).catch(() => undefined);
  } catch (thrown) {
    // A step that gave up because the end was asked for is no failure.
    if (!ending.signal.aborted) failure = { thrown };
  }
  if (!ending.signal.aborted) ending.abort(new Error("a step failed"));

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
  unwatch();
  for (const [event, listener] of Object.entries(listeners)) process.off(event, listener);
  if (failure !== null) throw failure.thrown;
}

/** Whether the terminal we were started from is no more; a signal sent by hand leaves it there. */
function terminalIsGone(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return false;
  } catch {
    return true; // ENXIO or EIO: it cannot be opened any more
  }
}
