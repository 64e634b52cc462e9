/**
 * Loaded into each process of a simulation before anything else (`node --import`), so that its clock can be stepped as
 * somebody setting it would step it, and so that it ends with whoever started it, however that one ends.
 */
import { isMainThread } from "node:worker_threads";

/** What the simulation tells one of its processes: how far its clock is from the true one from now on. */
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
  process.channel.unref(); // it keeps no process from its end
}
