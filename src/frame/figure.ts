import { drawer, type Plot } from "../charts/draw.ts";
import { callsPlot } from "../charts/over-time.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { number } from "./text/format.ts";

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

/** The calls of an account by day, given newest first; null if there are none, since an empty plot shows nothing. */
export async function callsFigure(
  log: Log,
  title: string,
  days: readonly { date: string; requests: bigint }[],
): Promise<Figure | null> {
  if (days.every(({ requests }) => requests === 0n)) return null;
  const plotted = days.toReversed().map(({ date, requests }) => ({ date, requests: Number(requests) }));
  const rows = days.map(({ date, requests }) => [date, number(requests)]);
  return figureOf(log, callsPlot(title, plotted), { columns: ["UTC day", "Calls"], rows });
}
