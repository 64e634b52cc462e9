import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { SCRIPT_PATH, STYLE_PATH } from "./paths.ts";

/** A file that every page loads. */
export interface Asset {
  path: string;
  type: string;
  text: string;
  /** With a mark of its content, so that a browser that keeps it for ever still sees a new one. */
  url: string;
}

/** The stylesheet and the script. */
export const STYLE = load(STYLE_PATH, "text/css");
export const SCRIPT = load(SCRIPT_PATH, "text/javascript");

function load(path: string, type: string): Asset {
  const text = readFileSync(new URL(`frame${path}`, import.meta.url), "utf8");
  const mark = createHash("sha256").update(text).digest("hex").slice(0, 12);
  return { path, type: `${type}; charset=utf-8`, text, url: `${path}?v=${mark}` };
}
