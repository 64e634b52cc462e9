import { say } from "./output.ts";

/**
 * Turns Ctrl-C and SIGTERM into an abort with `reason`, to be honored between two steps so that the command can save its
 * position. `end` removes the listeners.
 */
export function listenForInterruption(reason: string): { signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const stop = () => {
    say("stopping");
    controller.abort(new Error(reason));
  };
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  return {
    signal: controller.signal,
    end: () => {
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
    },
  };
}
