import type { ServerResponse } from "node:http";
import { NOTICE } from "../forecasts/accuracy/present.ts";
import { FONT } from "../frame/assets.ts";
import { type Frame, renderPage } from "../frame/render.ts";
import type { Crumb, PageHeader } from "../frame/shown.ts";
import { SITE_SCRIPT, SITE_STYLE } from "./assets.ts";

/** What pages may load and where their forms go: this server alone. Every page works without its script. */
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
/** The foot of every page. */
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
  /** How it is laid out; `page` where not given. Home and docs have headers of their own. */
  kind?: "page" | "reading" | "home" | "docs";
  crumbs?: readonly Crumb[];
  header?: PageHeader;
  /** Sections of links next to the content; of the documentation. */
  sidebar?: readonly { label: string; entries: readonly { label: string; href: string }[] }[];
}

/** What the layout says beside what every layout does. */
interface SiteFrame extends Frame {
  description: string;
  /** Its address for search engines, whatever parameters it was asked with; null for none. */
  canonical: string | null;
  notice: string;
  more: typeof MORE;
  kind: string;
  sidebar: NonNullable<SitePage["sidebar"]>;
  site: string;
  assets: Frame["assets"] & { font: string };
}

/** Sends a page; `url` is the path with its parameters as it was asked for. */
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
  response.setHeader("Content-Security-Policy", CONTENT_POLICY);
  sendText(response, "text/html", text);
}

/** Sends a text of this type. */
export function sendText(response: ServerResponse, type: string, text: string): void {
  response.setHeader("Content-Type", `${type}; charset=utf-8`);
  response.end(text);
}
