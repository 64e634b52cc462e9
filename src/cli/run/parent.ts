import { isRunByNpm } from "../../config/environment.ts";
import { leadsItsGroup } from "../../embedded/pids.ts";

/** A stop begins at most this much later than the parent's end; a check costs one system call. */
const CHECK_MS = 500;

/**
 * Calls `onGone` once if npm runs this process and ends before it: kill -9 of npm forwards no signal. A process that
 * something else started, or that was detached on purpose (setsid), outlives its parent. The returned function ends the
 * watch, which keeps no process alive.
 */
export async function watchParent(onGone: () => void): Promise<() => void> {
  const parent = process.ppid;
  if (!isRunByNpm() || (await leadsItsGroup())) return () => undefined;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onGone();
  }, CHECK_MS).unref();
  return () => clearInterval(timer);
}
