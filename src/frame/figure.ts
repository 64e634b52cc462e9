import { drawer, type Plot } from "../charts/draw.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";

/** A plot on a page with the table of its numbers; without its drawing where that failed. */
export interface Figure {
  title: string;
  svg: string | null;
  columns: readonly string[];
  rows: readonly (readonly string[])[];
}

/** Draws a plot for a page. A plot that cannot be drawn is missing, which is logged, and its numbers are there. */
export async function figureOf(log: Log, plot: Plot, numbers: Pick<Figure, "columns" | "rows">): Promise<Figure> {
  try {
    return { title: plot.title, svg: await drawer.draw(plot), ...numbers };
  } catch (error) {
    log.warn(`the plot ${JSON.stringify(plot.title)} is missing: ${reasonOf(error)}`);
    return { title: plot.title, svg: null, ...numbers };
  }
}
