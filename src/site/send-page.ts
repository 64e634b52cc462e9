import type { ServerResponse } from "node:http";
import { NOTICE } from "../forecasts/accuracy/present.ts";
import { FONT } from "../frame/assets.ts";
import { type Frame, renderPage } from "../frame/render.ts";
import type { Crumb, PageHeader } from "../frame/view.ts";
import { SITE_SCRIPT, SITE_STYLE } from "./assets.ts";

/** Pages load from, and send forms to, this server only. Every page works without its script. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "connect-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The main navigation. */
const NAV = [
  { label: "Houses", href: "/houses", group: "" },
  { label: "Accuracy", href: "/accuracy", group: "" },
  { label: "Docs", href: "/docs", group: "" },
  { label: "Plans", href: "/plans", group: "" },
  { label: "Status", href: "/status", group: "" },
];
/** The links in the footer. */
const MORE = [
  { label: "Houses", href: "/houses", group: "Product" },
  { label: "Accuracy", href: "/accuracy", group: "Product" },
  { label: "Method", href: "/method", group: "Product" },
  { label: "Plans", href: "/plans", group: "Product" },
  { label: "Documentation", href: "/docs", group: "Developers" },
  { label: "Quick start", href: "/docs/quick-start", group: "Developers" },
  { label: "Errors", href: "/docs/errors", group: "Developers" },
  { label: "Status", href: "/status", group: "Developers" },
  { label: "Console", href: "/console", group: "Developers" },
  { label: "Terms", href: "/terms", group: "Legal" },
  { label: "Privacy", href: "/privacy", group: "Legal" },
  { label: "Responsible gambling", href: "/responsible-gambling", group: "Legal" },
];

/** A page of the public site: a template below `src/site` and its data. */
export interface SitePage {
  /** Its path without parameters; null if search engines must not index it. */
  path: string | null;
  template: string;
  title: string;
  /** One or two sentences for search results. */
  description: string;
  data: object;
  status?: number;
  retryAfterSeconds?: number;
  /** Its layout, `page` by default. Home and docs have headers of their own. */
  kind?: "page" | "reading" | "home" | "docs";
  crumbs?: readonly Crumb[];
  header?: PageHeader;
  /** Sections of links next to the content, in the documentation. */
  sidebar?: readonly { label: string; entries: readonly { label: string; href: string }[] }[];
}

/** What the layout shows in addition to {@link Frame}. */
interface SiteFrame extends Frame {
  description: string;
  /** Its address for search engines, without parameters; null for none. */
  canonical: string | null;
  notice: string;
  more: typeof MORE;
  kind: string;
  sidebar: NonNullable<SitePage["sidebar"]>;
  site: string;
  assets: Frame["assets"] & { font: string };
}

/** Sends a page; `url` is the path with the parameters of the request. */
export function sendPage(response: ServerResponse, page: SitePage, { url, site }: { url: string; site: string }): void {
  const frame: SiteFrame = {
    title: page.title,
    url,
    visitor: null,
    flash: "",
    crumbs: page.crumbs ?? [],
    header: page.header ?? {},
    kind: page.kind ?? "page",
    sidebar: page.sidebar ?? [],
    site,
    refreshSeconds: null,
    nav: NAV,
    more: MORE,
    assets: { style: SITE_STYLE.url, script: SITE_SCRIPT.url, font: FONT.url },
    description: page.description,
    canonical: page.path === null ? null : site + page.path,
    notice: NOTICE,
  };
  const text = renderPage({ template: `site/${page.template}`, layout: "site/layout" }, page.data, frame);
  response.statusCode = page.status ?? 200;
  if (page.retryAfterSeconds !== undefined) response.setHeader("Retry-After", page.retryAfterSeconds);
  response.setHeader("Content-Security-Policy", CONTENT_POLICY);
  sendText(response, "text/html", text);
}

/** Sends a text of a content type. */
export function sendText(response: ServerResponse, type: string, text: string): void {
  response.setHeader("Content-Type", `${type}; charset=utf-8`);
  response.end(text);
}
