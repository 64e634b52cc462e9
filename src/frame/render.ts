import { fileURLToPath } from "node:url";
import { Eta } from "eta";
import type { Crumb } from "./shown.ts";
import { helpersFor } from "./format.ts";

/** What the layout says around the content. */
export interface Frame {
  title: string;
  /** Path and parameters of the request. */
  url: string;
  /** Null before somebody has signed in. */
  visitor: object | null;
  /** What the last action came to; empty for none. */
  flash: string;
  crumbs: readonly Crumb[];
  refreshSeconds: number | null;
  nav: readonly { label: string; href: string }[];
  assets: { style: string; script: string };
}

/** Templates live beside the pages they show. What is written with `<%= %>` is escaped. */
const eta = new Eta({
  views: fileURLToPath(new URL("..", import.meta.url)),
  cache: true,
  autoEscape: true,
  autoTrim: [false, "nl"],
  functionHeader: "const { h, visitor } = it;",
});

/**
 * A whole page: a template with its data, inside a layout, both named from `src` on (`ops/board/board`). Beside the data a
 * template has `h`, the helpers of src/frame/format.ts, and `visitor`, who is looking.
 */
export function renderPage(names: { template: string; layout: string }, data: object, frame: Frame): string {
  const h = helpersFor({ now: new Date(), url: frame.url });
  const content = eta.render(`./${names.template}`, { ...data, h, visitor: frame.visitor, frame });
  return eta.render(`./${names.layout}`, { h, visitor: frame.visitor, frame, content });
}
