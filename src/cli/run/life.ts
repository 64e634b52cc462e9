import { closeSync, openSync } from "node:fs";
import type { Log } from "../../log.ts";
import { reasonOf } from "../../errors.ts";
import { watchParent } from "./parent.ts";

/** A stop takes no longer than this, the promise of SIGTERM; whatever still runs then is cut off. */
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

/**
 * Runs a command that lives until SIGINT or SIGTERM: `begin` takes the steps, and in the end each is undone.
 *
 * However it ends (asked for, a step that fails, a server that died, an error nobody caught) the steps taken so far are undone,
 * last first, within 19 seconds. A second Ctrl-C a second later cuts that short. Sets exit code 1 unless the end was asked for and every
 * step could be undone. A terminal that was closed, and the end of the npm that runs us, count as asking for the end; SIGHUP otherwise
 * as asking for a reload.
 * @throws what `begin` threw, after undoing what it had begun.
 */
export async function live(log: Log, begin: (life: Life) => Promise<void>): Promise<void> {
  const ending = new AbortController();
  const undos: { what: string; undo: () => Promise<unknown> }[] = [];
  let reload: (() => Promise<void>) | null = null;

  const end = (why: string) => {
    if (ending.signal.aborted) return;
    log.info(why);
    ending.abort(new Error(why));
  };
  const fail = (why: string) => {
    process.exitCode = 1;
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
    if (isSame) return;
    log.warn("cut short");
    process.exit(1); // the servers go with us, and recover at the next start
  };
  const terminate = () => end("stopping");
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
  } catch (thrown) {
    // A step that gave up because the end was asked for is no failure.
    if (!ending.signal.aborted) failure = { thrown };
  }
  if (!ending.signal.aborted) ending.abort(new Error("a step failed"));

  const deadline = setTimeout(() => {
    log.error(`not everything stopped within ${STOP_WITHIN_MS / 1000} s; cut short`);
    process.exit(1);
  }, STOP_WITHIN_MS);
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
