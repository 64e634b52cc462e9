import { say } from "./output.ts";

/**
 * Ctrl-C and SIGTERM end the work between two steps, so that it can leave its place, and say so at once; `end` stops
 * listening.
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
