import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** A file that every page loads. */
export interface Asset {
  path: string;
  type: string;
  text: string;
  /** With a mark of its content, so that a browser that keeps it for ever still sees a new one. */
  url: string;
}

/** The stylesheet and the script: outside of what wants a sign-in. */
export const STYLE = load("/frame.css", "text/css");
export const SCRIPT = load("/frame.js", "text/javascript");

function load(path: string, type: string): Asset {
  const text = readFileSync(new URL(`.${path}`, import.meta.url), "utf8");
  const mark = createHash("sha256").update(text).digest("hex").slice(0, 12);
  return { path, type: `${type}; charset=utf-8`, text, url: `${path}?v=${mark}` };
}
