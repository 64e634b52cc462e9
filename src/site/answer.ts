import type { ServerResponse } from "node:http";
import { NOTICE } from "../forecasts/accuracy/present.ts";
import { STYLE } from "../frame/assets.ts";
import { type Frame, renderPage } from "../frame/render.ts";

/** What our pages may load and where their forms go: here alone, and no script at all. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The pages that visitors find at once. */
const NAV = [
  { label: "Accuracy", href: "/accuracy" },
  { label: "Method", href: "/method" },
  { label: "Plans", href: "/plans" },
  { label: "Status", href: "/status" },
  { label: "API", href: "/docs" },
];
/** And at the foot of every page. */
const MORE = [
  { label: "Terms", href: "/terms" },
  { label: "Privacy", href: "/privacy" },
  { label: "Responsible gambling", href: "/responsible-gambling" },
  { label: "Status", href: "/status" },
  { label: "API", href: "/docs" },
  { label: "Errors", href: "/docs/errors" },
  { label: "Console", href: "/console" },
];

/** A page of the public site: a template below `src/site`, and what it shows. */
export interface SitePage {
  /** Where it is, without parameters; null for one that search engines must not keep. */
  path: string | null;
  template: string;
  title: string;
  /** A sentence or two for those who have not opened it. */
  description: string;
  data: object;
  status?: number;
}

/** What the layout says beside what every layout does. */
interface SiteFrame extends Frame {
  description: string;
  /** Its address for search engines, whatever parameters it was asked with; null for none. */
  canonical: string | null;
  notice: string;
  more: typeof MORE;
}

/** Sends a page; `url` is the path with its parameters as it was asked for. */
export function sendPage(response: ServerResponse, page: SitePage, { url, site }: { url: string; site: string }): void {
  const frame: SiteFrame = {
    title: page.title,
    url,
    visitor: null,
    flash: "",
    crumbs: [],
    refreshSeconds: null,
    nav: NAV,
    more: MORE,
    assets: { style: STYLE.url, script: "" },
    description: page.description,
    canonical: page.path === null ? null : site + page.path,
    notice: NOTICE,
  };
  const text = renderPage({ template: `site/${page.template}`, layout: "site/layout" }, page.data, frame);
  response.statusCode = page.status ?? 200;
  response.setHeader("Content-Security-Policy", CONTENT_POLICY);
  sendText(response, "text/html", text);
}

/** Sends a text of this type. */
export function sendText(response: ServerResponse, type: string, text: string): void {
  response.setHeader("Content-Type", `${type}; charset=utf-8`);
  response.end(text);
}
