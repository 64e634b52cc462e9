import type { TopLevelSpec } from "vega-lite";
import { createThread } from "../thread.ts";
import type { DrawingTask } from "./draw-thread.ts";

/** A plot: its title, a description of one or two sentences, and its specification. */
export interface Plot {
  title: string;
  description: string;
  spec: TopLevelSpec;
}

/** The same plot at the full width of a page, where its numbers are next to it. */
export function fullWidth(plot: Plot): Plot {
  return { ...plot, spec: { ...plot.spec, width: 960 } };
}

/** Draws plots as SVG. */
export interface Drawer {
  /** @throws Error if it cannot be drawn, or not within 15 s */
  draw(plot: Plot): Promise<string>;
  /** Stops its thread, if there is one. */
  close(): Promise<void>;
}

/** About 2 MB. */
const MOST_KEPT = 100;
/** An idle thread holds some 80 MB. The deadline is for a busy machine: a plot takes 20 ms. */
const LIMITS = { deadlineMs: 15_000, idleMs: 120_000, maxTasks: 100, heapMb: 512 };

/**
 * Returns a drawer. It caches the last drawings, because a reloaded page has the same numbers. The thread starts with
 * the first drawing: loading the libraries takes most of the first second.
 */
export function createDrawer(): Drawer {
  const kept = new Map<string, string>(); // least recently used first
  const thread = createThread<DrawingTask, string>(new URL("draw-thread.ts", import.meta.url), LIMITS);
  return {
    close: () => thread.close(),
    async draw({ title, description, spec }) {
      const key = JSON.stringify([title, description, spec]);
      const known = kept.get(key);
      if (known !== undefined) {
        kept.delete(key);
        kept.set(key, known);
        return known;
      }
      const svg = await thread.run({ title, description, spec });
      kept.set(key, svg);
      if (kept.size > MOST_KEPT) for (const oldest of kept.keys().take(1)) kept.delete(oldest);
      return svg;
    },
  };
}

/** The drawer of this process. */
export const drawer: Drawer = createDrawer();
