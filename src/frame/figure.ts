import { drawer, type Plot } from "../charts/draw.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";

/** A plot with the table of its numbers; without the drawing if that failed. */
export interface Figure {
  title: string;
  svg: string | null;
  columns: readonly string[];
  rows: readonly (readonly string[])[];
}

/** Draws a plot for a page. If it fails, the error is logged and the page has the numbers alone. */
export async function figureOf(log: Log, plot: Plot, numbers: Pick<Figure, "columns" | "rows">): Promise<Figure> {
  try {
    return { title: plot.title, svg: await drawer.draw(plot), ...numbers };
  } catch (error) {
    log.warn(`the plot ${JSON.stringify(plot.title)} is missing: ${reasonOf(error)}`);
    return { title: plot.title, svg: null, ...numbers };
  }
}
