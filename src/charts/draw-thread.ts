/**
 * Draws plots in a thread: loading the libraries takes 150 ms of a core and a plot 20 ms, and meanwhile the process
 * could not respond.
 */
import { parse, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import { reasonOf } from "../errors.ts";
import { runTasks } from "../thread.ts";
import { tidySvg } from "./tidy.ts";
import { THEME } from "./theme.ts";

/** One plot to draw. */
export interface DrawingTask {
  spec: TopLevelSpec;
  title: string;
  description: string;
}

runTasks(async ({ spec, title, description }: DrawingTask): Promise<string> => {
  try {
    const view = new View(parse(compile(spec, { config: THEME }).spec), { renderer: "none" });
    const svg = tidySvg(await view.toSVG(), { title, description });
    view.finalize();
    return svg;
  } catch (error) {
    throw new Error(`the plot could not be drawn: ${reasonOf(error)}`, { cause: error });
  }
});
