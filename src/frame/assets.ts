import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** A file that pages load. */
export interface Asset {
  path: string;
  type: string;
  body: string | Buffer;
  /** Contains a hash of the content, so that it can be cached permanently. */
  url: string;
}

const modules = createRequire(import.meta.url);
const here = (file: string) => new URL(file, import.meta.url);

/** The font of all pages: Latin letters, one file for all weights. */
export const FONT: Asset = font("/fonts/inter.woff2", "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2");
export const FONTS: readonly Asset[] = [
  FONT,
  font(
    "/fonts/jetbrains-mono.woff2",
    "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2",
  ),
];

/** The stylesheets of the design system: tokens, elements, components. */
const DESIGN = ["tokens", "base", "components"].map((name) => here(`styles/${name}.css`));

/** The stylesheet and the script of console and ops, available without sign-in. */
export const STYLE: Asset = styleOf("/frame.css", [here("styles/shell.css")]);
export const SCRIPT: Asset = scriptOf("/frame.js", ["refresh", "copy", "dialog", "search", "step-up"].map(scriptFile));

/** The file of a script of the design system. */
export function scriptFile(name: string): URL {
  return here(`scripts/${name}.js`);
}

/** A stylesheet: the design system, then these files. */
export function styleOf(path: string, files: readonly URL[]): Asset {
  const text = [...DESIGN, ...files].map((file) => readFileSync(file, "utf8")).join("\n");
  const named = FONTS.reduce((css, { path: fontPath, url }) => css.replaceAll(`"${fontPath}"`, `"${url}"`), text);
  return asset(path, "text/css; charset=utf-8", named);
}

/** A script of these files, in their order. */
export function scriptOf(path: string, files: readonly URL[]): Asset {
  return asset(path, "text/javascript; charset=utf-8", files.map((file) => readFileSync(file, "utf8")).join("\n"));
}

function font(path: string, file: string): Asset {
  return asset(path, "font/woff2", readFileSync(modules.resolve(file)));
}

function asset(path: string, type: string, body: string | Buffer): Asset {
  const hash = createHash("sha256").update(body).digest("hex").slice(0, 12);
  return { path, type, body, url: `${path}?v=${hash}` };
}
