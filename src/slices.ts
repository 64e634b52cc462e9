import { setImmediate as eventLoop } from "node:timers/promises";

const SLICE_MS = 10;

/** Divides long work of a thread into slices, between which its other work runs. */
export class Slices {
  #endsAt = performance.now() + SLICE_MS;

  /** Call it between two steps: if the slice took 10 ms, it waits for the next tick of the event loop. */
  async next(): Promise<void> {
    if (performance.now() < this.#endsAt) return;
    await eventLoop();
    this.#endsAt = performance.now() + SLICE_MS;
  }
}
