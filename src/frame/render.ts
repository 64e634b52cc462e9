import { fileURLToPath } from "node:url";
import { Eta } from "eta";
import { helpersFor } from "./text/format.ts";
import type { NavEntry } from "./nav.ts";
import type { Crumb, PageHeader, Width } from "./view.ts";

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
  /** The width of the content: `reading` for texts and forms, otherwise full. */
  width?: Width;
  /** The content of the page header next to the title. */
  header?: PageHeader;
  /** URLs; the font, if given, is preloaded. */
  assets: { style: string; script: string; font?: string };
}

/** Templates are next to the code of their pages. `<%= %>` escapes. */
const eta = new Eta({
  views: fileURLToPath(new URL("..", import.meta.url)),
  cache: true,
  autoEscape: true,
  autoTrim: [false, "nl"],
  functionHeader: "const { h, ui, visitor } = it;",
});

/**
 * Renders a page: a template with its data inside a layout, both named relative to `src` (`ops/board/board`). A
 * template also has `h`, the helpers of src/frame/text/format.ts; `ui(name, properties)`, the components of
 * src/frame/components; and `visitor`, the person who is signed in.
 */
export function renderPage(names: { template: string; layout: string }, data: object, frame: Frame): string {
  const h = helpersFor({ now: new Date(), url: frame.url });
  const ui = (name: string, properties: object = {}): string =>
    eta.render(`./frame/components/${name}`, { ...properties, h, ui }).trim();
  const shared = { h, ui, visitor: frame.visitor, frame };
  const content = eta.render(`./${names.template}`, { ...data, ...shared });
  return eta.render(`./${names.layout}`, { ...shared, content });
}
