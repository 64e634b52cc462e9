/**
 * Preloaded into each process of a simulation (`node --import`). Makes its clock adjustable, and kills it when the
 * simulation is gone, also after `kill -9`.
 */
import { isMainThread } from "node:worker_threads";

/** A message from the simulation: how far the clock is ahead of the true one from now on. */
export interface ClockStep {
  clockMs: number;
}

if (isMainThread && process.channel) {
  const trueNow = Date.now.bind(Date);
  let aheadMs = Number(process.env["SIMULATED_CLOCK_MS"] ?? 0);
  const now = () => trueNow() + aheadMs;
  Date.now = now;
  globalThis.Date = new Proxy(Date, {
    construct: (target, given: unknown[], made) =>
      Reflect.construct(target, given.length === 0 ? [now()] : given, made) as object,
  });
  process.on("message", ({ clockMs }: ClockStep) => (aheadMs = clockMs));
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel.unref(); // an open channel would keep the process alive
}
