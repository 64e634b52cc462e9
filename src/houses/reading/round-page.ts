import { z } from "zod";
import type { Known } from "../contract.ts";

/** The first game to request until one is stored; raising it later skips what lies between. */
export const firstRoundId = z
  .union([z.int().min(1), z.string().regex(/^[1-9]\d{0,17}$/)], {
    error: "expected the number of a recent game, where polling begins",
  })
  .transform(String);

/** The next game to request: the one after the newest stored, but none before the configured first one. */
export function nextId(feed: { first_round_id: string }, { newest }: Known): bigint {
  const first = BigInt(feed.first_round_id);
  return newest === null || newest + 1n < first ? first : newest + 1n;
}

/** The id in the requested path, without its query; null if the path is another one. */
export function requestedId(path: string | undefined, pattern: RegExp): string | null {
  return pattern.exec(path?.replace(/[?#].*$/s, "") ?? "")?.[1] ?? null;
}

const COMMENT = "<!--";
/** Elements whose content is not text for readers. */
const UNSEEN = /^<(script|style|noscript|template)\b/i;

/**
 * A page of HTML as visible text: scripts, styles and tags are replaced by a space, comments by nothing, since
 * server-rendered pages have them inside numbers. One pass over the page, so that even a broken page is fast; an unclosed
 * element hides the rest.
 */
export function visibleText(html: string): string {
  const seen: string[] = [];
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf("<", at);
    if (open === -1) break;
    seen.push(html.slice(at, open), html.startsWith(COMMENT, open) ? "" : " ");
    at = endOfMarkup(html, open);
  }
  if (at < html.length) seen.push(html.slice(at));
  return seen.join("").replaceAll(/&nbsp;|&#160;|&#xa0;/gi, " ");
}

function endOfMarkup(html: string, open: number): number {
  if (html.startsWith(COMMENT, open)) return after(html, "-->", open);
  const unseen = UNSEEN.exec(html.slice(open, open + 12))?.[1];
  if (unseen === undefined) return after(html, ">", open);
  const close = new RegExp(`</${unseen}`, "gi");
  close.lastIndex = open;
  const end = close.exec(html);
  return end === null ? html.length : after(html, ">", end.index);
}

function after(html: string, mark: string, from: number): number {
  const found = html.indexOf(mark, from);
  return found === -1 ? html.length : found + mark.length;
}
