import type { Express } from "express";
import { LRUCache } from "lru-cache";
import type { CallHandler } from "../http/call.ts";
import { urlOf, type Reply } from "../http/request.ts";
import { resource } from "../http/resource.ts";
import { within } from "../within.ts";
import type { Memory } from "../published/memory.ts";
import { legalText } from "../accounts/legal.ts";
import type { Settings } from "../config/environment.ts";
import { networkOf } from "../limits/address.ts";
import type { Buckets, Size } from "../limits/buckets.ts";
import type { Sql } from "../db/client.ts";
import type { Log } from "../log.ts";
import { accuracyPages } from "./accuracy/accuracy.ts";
import { sendPage, sendText, type SitePage } from "./send-page.ts";
import { addAssets } from "./assets.ts";
import { busyPage, slowPage } from "./busy/busy.ts";
import { docsPage } from "./docs/docs.ts";
import { errorsPage } from "./docs/errors.ts";
import { changesFeed, changesPage } from "./docs/changes.ts";
import { guidePages } from "./docs/guides.ts";
import { housePage, housesPage } from "./houses/houses.ts";
import { distributionOf, tablePage } from "./houses/table.ts";
import { measureTable } from "./accuracy/lines.ts";
import { reliabilityOf, type ToDraw } from "./accuracy/plots.ts";
import { drawing } from "./accuracy/drawings.ts";
import { delayedReading } from "./delayed.ts";
import { featuredOf, homePage } from "./home/home.ts";
import { type MeasuredRecord, recordOf } from "./home/record.ts";
import { gamblingPage } from "./legal/gambling.ts";
import { readHelplines } from "./legal/helplines.ts";
import { privacyPage } from "./legal/privacy.ts";
import { termsPage } from "./legal/terms.ts";
import { PART_TIMEOUT_MS } from "./loader.ts";
import { loadsOf } from "./loads.ts";
import { methodPage } from "./method/method.ts";
import { addLog } from "./log/log.ts";
import { isForPeople, notFoundPage } from "./not-found.ts";
import { plansPage } from "./plans/plans.ts";
import { componentsOf, PARTS_MEASURED, statusFeed, statusPage } from "./status/status.ts";

/** Sums over ten thousand tables take this process some milliseconds. */
const RECORD_CACHED_MS = 5_000;
/** Home page loads per client address: far above what a person needs, and programs have the API. */
const FIRST_PAGE: Size = { points: 120, seconds: 60 };

/** Settings that pages mention; an absent one is left out. */
export type SiteSettings = Partial<Pick<Settings, "HELPLINES_FILE" | "OPERATOR_NAME" | "PAYLOAD_RETENTION_HOURS">>;

/** What the site needs. */
export interface SiteParts {
  memory: Memory;
  sql: Sql;
  version: string;
  /** The public address without a trailing slash; known once the server listens. */
  site: () => string;
  settings: SiteSettings;
  log: Log;
  buckets: Pick<Buckets, "draw">;
  /** The rate limit of the home page per client address; 120 per minute by default. */
  firstPage?: Size | undefined;
}

/**
 * Adds the public pages: plain HTML that works without a script, sets no cookie and loads nothing from other sites.
 * Parts from the database are waited for up to 2 s; a page names a missing part and shows the rest.
 *
 * @throws UsageError if HELPLINES_FILE cannot be used
 */
export function addPages(app: Express, parts: SiteParts): void {
  const { memory, sql, site, log } = parts;
  const loads = loadsOf(parts);
  const draw = drawingOf(log);
  const pages = { ...mainPages(parts, { loads, draw }), ...guides(site) };
  for (const [path, page] of Object.entries(pages)) {
    resource(app, path, ...(path === "/" ? [limitFirstPage(parts)] : []), async (request, response) => {
      sendPage(response, await page(urlOf(request).query), { url: request.originalUrl, site: site() });
    });
  }
  const pageOf = housePages(parts, { loads, draw });
  for (const path of ["/houses/:house", "/houses/:house/:game/:market"]) {
    resource(app, path, async (request, response, next) => {
      const page = await pageOf(request.params as Record<string, string>);
      if (page === null) return next("route");
      sendPage(response, page, { url: request.originalUrl, site: site() });
    });
  }
  resource(app, "/status.atom", async (_, response) => {
    sendText(response, "application/atom+xml", statusFeed(site(), (await loads.incidents()) ?? []));
  });
  resource(app, "/docs/changes.atom", (_, response) => sendText(response, "application/atom+xml", changesFeed(site())));
  addLog(app, sql, log);
  resource(app, "/terms.txt", (_, response) => sendText(response, "text/plain", legalText("terms").text));
  addAssets(app);
  resource(app, "/robots.txt", (_, response) => sendText(response, "text/plain", robots(site())));
  resource(app, "/sitemap.xml", (_, response) =>
    sendText(response, "application/xml", sitemap(site(), [...Object.keys(pages), ...pathsOf(memory)])),
  );
  app.use((request, response, next) => {
    if (!isForPeople(request, urlOf(request).path)) return next();
    const { requestId } = (response as Reply & typeof response).locals;
    sendPage(response, notFoundPage(requestId), { url: request.originalUrl, site: site() });
  });
}

/** Draws one plot of a page; the drawings of a name are cached. */
function drawingOf(log: Log) {
  const draw = drawing(log);
  return (name: string, plot: ToDraw | null) =>
    draw(name, () => Promise.resolve({ all: plot === null ? [] : [plot], missing: "" }));
}

/** What pages with a part of their own share. */
interface Shared {
  loads: ReturnType<typeof loadsOf>;
  draw: ReturnType<typeof drawingOf>;
}

type Page = (params: URLSearchParams) => SitePage | Promise<SitePage>;

/** The pages with a fixed path, by path. */
function mainPages(parts: SiteParts, { loads, draw }: Shared): Record<string, Page> {
  const { memory, sql, site, settings, log } = parts;
  const { OPERATOR_NAME: operator, PAYLOAD_RETENTION_HOURS: payloadHours } = settings;
  const helplines = readHelplines(settings.HELPLINES_FILE);
  const records = new LRUCache<"all", MeasuredRecord>({
    max: 1,
    ttl: RECORD_CACHED_MS,
    memoMethod: () => recordOf(memory.tables.tables),
  });
  let docs: ReturnType<typeof docsPage> | undefined;
  return {
    async "/"() {
      const [houses, plans] = await Promise.all([loads.houses(), loads.plans()]);
      const record = records.memo("all");
      const table = featuredOf(memory);
      const measured = table && measureTable(table, { feature: "next_color", period: "30d" });
      const [drawn, past] = await Promise.all([
        draw("home", measured && reliabilityOf(measured)),
        table && loads.past(String(table.id)),
      ]);
      const featured = table && { table, past, reading: delayedReading(table, memory.clock().nowMs) };
      return homePage({ memory, record, site: site(), houses, plans, featured, drawn });
    },
    "/houses": async () => housesPage(await loads.houses(), { memory }),
    "/accuracy": accuracyPages({ memory, sql, log }),
    "/method": async () => methodPage(await loads.publicLog()),
    "/plans": async () => plansPage(await loads.plans()),
    "/status": () => loadStatusPage(parts, loads),
    "/terms": () => termsPage(operator),
    "/privacy": () => privacyPage({ operator, payloadHours }),
    "/responsible-gambling": () => gamblingPage(helplines),
    async "/docs"() {
      docs ??= docsPage({ site: site() });
      return docs(await loads.plans());
    },
    "/docs/errors": () => errorsPage(),
    "/docs/changes": () => changesPage(),
  };
}

/** All parts have one deadline, although which houses have their history shown depends on their states. */
async function loadStatusPage({ memory, version }: SiteParts, loads: Shared["loads"]): Promise<SitePage> {
  const [ageSeconds, { liveWindowMs }] = [memory.ageSeconds(), memory.clock()];
  const loaded = loads.houses();
  const history = loaded.then((all) => all && loads.houseUptimes(componentsOf(all.houses, liveWindowMs).join(" ")));
  const [houses, polls, work, notices, uptime, houseUptimes] = await Promise.all([
    loaded,
    loads.polls(),
    loads.work(),
    loads.notices(),
    loads.uptime(PARTS_MEASURED.join(" ")),
    within(PART_TIMEOUT_MS, "PostgreSQL", history).catch(() => null), // its loader logs why
  ]);
  return statusPage({ version, ageSeconds, liveWindowMs, houses, polls, work, notices, uptime, houseUptimes });
}

function guides(site: () => string): Record<string, Page> {
  const paths = Object.keys(guidePages(""));
  return Object.fromEntries(paths.map((path) => [path, () => guidePages(site())[path] ?? notFoundPage("")]));
}

/** Returns the page of a house or of a table; null if there is none. */
function housePages({ memory }: SiteParts, { loads, draw }: Shared) {
  return async ({ house: id = "", game, market }: Record<string, string>): Promise<SitePage | null> => {
    if (game === undefined) {
      const houses = await loads.houses();
      if (houses === null) return slowPage();
      const house = houses.houses.find((one) => one.id === id);
      if (house === undefined) return null;
      const [uptime, incidents] = await Promise.all([loads.uptime(`house:${id}`), loads.houseIncidents(id)]);
      return housePage({ memory, house, uptime, incidents });
    }
    const table = memory.tables.byHouse.get(id)?.find((one) => one.game === game && one.market === market);
    if (table === undefined) return null;
    const key = String(table.id);
    const [facts, past, incidents] = await Promise.all([loads.facts(key), loads.past(key), loads.tableIncidents(key)]);
    const drawn = await draw(`table ${key}`, facts && distributionOf(facts));
    const reading = delayedReading(table, memory.clock().nowMs);
    return tablePage({ memory, table, facts, past, reading, incidents, drawn });
  };
}

/** Limits how often one address loads the home page. */
function limitFirstPage({ buckets, firstPage = FIRST_PAGE, site }: SiteParts): CallHandler {
  return async (request, response, next) => {
    const { isGranted, waitMs } = await buckets.draw(`first-page:${networkOf(request.ip ?? "")}`, firstPage);
    if (isGranted) return next();
    const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
    sendPage(response, busyPage(seconds), { url: request.originalUrl, site: site() });
  };
}

/** One variant of a filtered view is enough for a search engine. */
function robots(site: string): string {
  return [
    "User-agent: *",
    "Disallow: /api/",
    "Disallow: /console",
    "Disallow: /ops",
    "Disallow: /accuracy?",
    "",
    `Sitemap: ${site}/sitemap.xml`,
    "",
  ].join("\n");
}

/** The pages of houses and tables, at most as many as a sitemap may have. */
function pathsOf({ tables: { byHouse } }: Memory): string[] {
  return [...byHouse]
    .flatMap(([house, tables]) => [
      `/houses/${house}`,
      ...tables.map(({ game, market }) => `/houses/${house}/${game}/${market}`),
    ])
    .slice(0, 49_000);
}

function sitemap(site: string, paths: readonly string[]): string {
  const urls = paths.map((path) => `  <url><loc>${site}${path}</loc></url>`).join("\n");
  return `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${urls}\n</urlset>\n`;
}
