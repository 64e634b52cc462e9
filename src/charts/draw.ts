import { Worker } from "node:worker_threads";
import type { TopLevelSpec } from "vega-lite";
import type { Drawing, Order } from "./draw-thread.ts";

/** A plot: what it is called, what it shows in a sentence or two, and how it is drawn. */
export interface Plot {
  title: string;
  description: string;
  spec: TopLevelSpec;
}

/** Draws plots as SVG. */
export interface Drawer {
  /** @throws Error where it cannot be drawn, or not in time */
  draw(plot: Plot): Promise<string>;
  /** Ends the thread, where there is one. */
  close(): Promise<void>;
}

/** Drawings that are kept: a page that is looked at again has the same numbers; about 2 MB. */
const MOST_KEPT = 100;
/** Loading takes most of it, on a machine that is busy. */
const PATIENCE_MS = 15_000;
/** A thread that nobody has asked for so long is ended: it holds some 80 MB. */
const IDLE_MS = 120_000;

interface Waiting {
  of: Worker;
  done(svg: string): void;
  failed(error: Error): void;
}

/**
 * Makes a drawer. Its thread is started by the first plot and ended when none was asked for in two minutes; it keeps no
 * process alive.
 */
export function createDrawer({ idleMs = IDLE_MS }: { idleMs?: number } = {}): Drawer {
  const kept = new Map<string, string>(); // least recently asked for first
  const waiting = new Map<number, Waiting>();
  let thread: Worker | null = null;
  let idle: NodeJS.Timeout | undefined;
  let orders = 0;

  function begin(): Worker {
    const begun = new Worker(new URL("draw-thread.ts", import.meta.url));
    begun.unref();
    begun.on("message", (drawing: Drawing) => {
      const asked = waiting.get(drawing.id);
      waiting.delete(drawing.id);
      if ("svg" in drawing) asked?.done(drawing.svg);
      else asked?.failed(new Error(`expected a plot, got: ${drawing.problem}`));
    });
    const end = (cause: Error) => {
      if (thread === begun) thread = null;
      for (const [id, asked] of waiting) {
        if (asked.of !== begun) continue; // the next thread may be at work before the end of this one is heard of
        waiting.delete(id);
        asked.failed(cause);
      }
    };
    begun.on("error", (error) => end(error instanceof Error ? error : new Error(String(error))));
    begun.on("exit", () => end(new Error("the thread that draws has ended")));
    return begun;
  }

  async function close(): Promise<void> {
    clearTimeout(idle);
    const ended = thread;
    thread = null;
    await ended?.terminate();
  }

  function ask(order: Omit<Order, "id">): Promise<string> {
    const id = ++orders;
    thread ??= begin();
    clearTimeout(idle);
    idle = setTimeout(() => void close(), idleMs).unref();
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const tooLong = setTimeout(() => {
      waiting.get(id)?.failed(new Error(`the plot was not drawn within ${PATIENCE_MS / 1000} s`));
      void close(); // whatever it does, the next plot gets a new thread
    }, PATIENCE_MS);
    const settle = (then: () => void) => {
      clearTimeout(tooLong);
      waiting.delete(id);
      then();
    };
    waiting.set(id, {
      of: thread,
      done: (svg) => settle(() => resolve(svg)),
      failed: (error) => settle(() => reject(error)),
    });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window, it has no origin
    thread.postMessage({ id, ...order });
    return promise;
  }

  return {
    close,
    async draw({ title, description, spec }) {
      const key = JSON.stringify([title, description, spec]);
      const known = kept.get(key);
      if (known !== undefined) {
        kept.delete(key);
        kept.set(key, known);
        return known;
      }
      const svg = await ask({ title, description, spec });
      kept.set(key, svg);
      if (kept.size > MOST_KEPT) for (const oldest of kept.keys().take(1)) kept.delete(oldest);
      return svg;
    },
  };
}

/** The drawer of this process. */
export const drawer: Drawer = createDrawer();
