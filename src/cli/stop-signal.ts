import { say } from "./output.ts";

/** One Ctrl-C may arrive twice, from the terminal and from npm; a second one within this time is ignored. */
const SAME_CTRL_C_MS = 1_000;

/**
 * Returns a handler for signals: the first call runs `stop`, further calls within a second are ignored, and a later one
 * runs `cutShort`.
 */
export function stopHandler(stop: () => void, cutShort: () => void): () => void {
  let firstAt: number | null = null;
  return () => {
    if (firstAt === null) {
      firstAt = performance.now();
      stop();
    } else if (performance.now() - firstAt >= SAME_CTRL_C_MS) cutShort();
  };
}

/**
 * Calls `stop` at the first Ctrl-C or SIGTERM; one a second later ends the process with exit code 1.
 *
 * The returned function removes the listeners if no signal has arrived. Otherwise they stay: a signal may arrive again
 * after the work has stopped.
 */
export function onStopSignal(stop: () => void): () => void {
  let isStopped = false;
  const listener = stopHandler(
    () => {
      isStopped = true;
      stop();
    },
    () => {
      say("cut short");
      process.exit(1);
    },
  );
  process.on("SIGINT", listener);
  process.on("SIGTERM", listener);
  return () => {
    if (isStopped) return;
    process.off("SIGINT", listener);
    process.off("SIGTERM", listener);
  };
}
