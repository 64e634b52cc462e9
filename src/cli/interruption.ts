/** Ctrl-C and SIGTERM end the work between two steps, so that it can leave its place; `end` stops listening. */
export function listenForInterruption(reason: string): { signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const stop = () => controller.abort(new Error(reason));
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
