import { say } from "./output.ts";
import { onStopSignal } from "./stop-signal.ts";

/**
 * Turns Ctrl-C and SIGTERM into an abort with `reason`, to be honored between two steps so that the command can save its
 * position. `end` removes the listeners, see {@link onStopSignal}.
 */
export function listenForInterruption(reason: string): { signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const end = onStopSignal(() => {
    say("stopping");
    controller.abort(new Error(reason));
  });
  return { signal: controller.signal, end };
}
