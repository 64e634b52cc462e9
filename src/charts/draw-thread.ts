/**
 * Draws plots in a thread of its own: to load the libraries takes 150 ms of a core and a plot some 20, in which the
 * process that asks would answer nobody.
 */
import { parentPort } from "node:worker_threads";
import { parse, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import { tidySvg } from "./tidy.ts";
import { THEME } from "./theme.ts";

/** One plot to draw. */
export interface Order {
  id: number;
  spec: TopLevelSpec;
  title: string;
  description: string;
}

/** What came of it. */
export type Drawing = { id: number; svg: string } | { id: number; problem: string };

async function draw({ id, spec, title, description }: Order): Promise<Drawing> {
  try {
    const view = new View(parse(compile(spec, { config: THEME }).spec), { renderer: "none" });
    const svg = tidySvg(await view.toSVG(), { title, description });
    view.finalize();
    return { id, svg };
  } catch (error) {
    return { id, problem: error instanceof Error ? error.message : String(error) };
  }
}

parentPort?.on("message", (order: Order) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window, it has no origin
  void draw(order).then((drawing) => parentPort?.postMessage(drawing));
});
