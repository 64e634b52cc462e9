import { fileURLToPath } from "node:url";
import { Eta } from "eta";
import { helpersFor } from "./format.ts";
import type { NavEntry } from "./nav.ts";
import type { Crumb, PageHeader, Width } from "./shown.ts";

/** What the layout shows around the content. */
export interface Frame {
  title: string;
  /** Path and parameters of the request. */
  url: string;
  /** Null before sign-in. */
  visitor: object | null;
  /** The outcome of the last action; empty for none. */
  flash: string;
  crumbs: readonly Crumb[];
  refreshSeconds: number | null;
  nav: readonly NavEntry[];
  /** How wide the content is: `reading` for texts and forms, else all there is. */
  width?: Width;
  /** What the page header holds next to the title. */
  header?: PageHeader;
  /** Addresses; the font is loaded early where it is given. */
  assets: { style: string; script: string; font?: string };
}

/** Templates live next to the pages they show. What is written with `<%= %>` is escaped. */
const eta = new Eta({
  views: fileURLToPath(new URL("..", import.meta.url)),
  cache: true,
  autoEscape: true,
  autoTrim: [false, "nl"],
  functionHeader: "const { h, ui, visitor } = it;",
});

/**
 * A whole page: a template with its data, inside a layout, both named from `src` on (`ops/board/board`). Next to the data
 * a template has `h`, the helpers of src/frame/format.ts; `ui(name, properties)`, the components of
 * src/frame/components; and `visitor`, who is signed in.
 */
export function renderPage(names: { template: string; layout: string }, data: object, frame: Frame): string {
  const h = helpersFor({ now: new Date(), url: frame.url });
  const ui = (name: string, properties: object = {}): string =>
    eta.render(`./frame/components/${name}`, { ...properties, h, ui }).trim();
  const shared = { h, ui, visitor: frame.visitor, frame };
  const content = eta.render(`./${names.template}`, { ...data, ...shared });
  return eta.render(`./${names.layout}`, { ...shared, content });
}
