import type { Express } from "express";
import type { CallHandler } from "../http/call.ts";
import { urlOf, type Reply } from "../http/request.ts";
import { resource } from "../http/resource.ts";
import type { Memory } from "../published/memory.ts";
import { legalText } from "../accounts/legal.ts";
import { listPlans } from "../callers/plan-store.ts";
import type { Settings } from "../config/environment.ts";
import { networkOf } from "../limits/address.ts";
import type { Buckets, Size } from "../limits/buckets.ts";
import type { Sql, Transaction } from "../db/client.ts";
import type { Log } from "../log.ts";
import { accuracyPages } from "./accuracy/accuracy.ts";
import { sendPage, sendText, type SitePage } from "./send-page.ts";
import { addAssets } from "./assets.ts";
import { busyPage } from "./busy/busy.ts";
import { docsPage } from "./docs/docs.ts";
import { errorsPage } from "./docs/errors.ts";
import { changesFeed, changesPage } from "./docs/changes.ts";
import { guidePages } from "./docs/guides.ts";
import { housePage, housesPage } from "./houses/houses.ts";
import { distributionOf, ROUNDS_COUNTED, tablePage, THRESHOLDS } from "./houses/table.ts";
import { measureTable } from "./accuracy/lines.ts";
import { reliabilityOf, type ToDraw } from "./accuracy/plots.ts";
import { drawing } from "./accuracy/drawings.ts";
import { delayReadings, ROUNDS_WITHHELD, SECONDS_WITHHELD } from "./delayed.ts";
import { featuredOf, homePage } from "./home/home.ts";
import { type MeasuredRecord, recordOf } from "./home/record.ts";
import { timedCache } from "./timed-cache.ts";
import { gamblingPage } from "./legal/gambling.ts";
import { readHelplines } from "./legal/helplines.ts";
import { privacyPage } from "./legal/privacy.ts";
import { termsPage } from "./legal/terms.ts";
import { loader, loaders } from "./loader.ts";
import { methodPage, readShownLog } from "./method/method.ts";
import { addLog } from "./log/log.ts";
import { isForPeople, notFoundPage } from "./not-found.ts";
import { plansPage } from "./plans/plans.ts";
import {
  listIncidents,
  listPollSuccess,
  listSiteHouses,
  listSiteNotices,
  listUptime,
  readBriefly,
  readPastForecast,
  readTableFacts,
  readWork,
} from "./site-store.ts";
import { statusFeed, statusPage } from "./status/status.ts";
import { UPTIME_DAYS } from "./uptime.ts";

/** Prices and limits are changed manually. */
const PLANS_BELIEVED_MS = 10_000;
/** Shorter than a poll interval, so a badge is never late by more than one poll. */
const HOUSES_BELIEVED_MS = 2_000;
const WORK_BELIEVED_MS = 5_000;
/** PostgreSQL takes 300 ms for a day of polls of a hundred houses. */
const POLLS_BELIEVED_MS = 30_000;
const LOG_BELIEVED_MS = 5_000;
/** Sums over ten thousand tables take this process some milliseconds. */
const RECORD_BELIEVED_MS = 5_000;
/** Home page loads per client address: far above what a person needs, and programs have the API. */
const FIRST_PAGE: Size = { points: 120, seconds: 60 };
const NOTICES_SHOWN = 20;
const INCIDENTS_SHOWN = 20;
const HOUSES_WITH_HISTORY = 30;
const INCIDENTS_OF_ONE = 20;
/** History changes every few minutes. */
const HISTORY_BELIEVED_MS = 30_000;
/** PostgreSQL takes some milliseconds for ten thousand rounds of a table. */
const FACTS_BELIEVED_MS = 60_000;
const PAST_BELIEVED_MS = 5_000;

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
  const { memory, sql, version, site, settings, log, buckets, firstPage = FIRST_PAGE } = parts;
  const load = <Value>(what: string, believedMs: number, read: Parameters<typeof readBriefly<Value>>[1]) =>
    loader(what, () => readBriefly(sql, read), { believedMs, log });
  const plans = load("the plans", PLANS_BELIEVED_MS, listPlans);
  const houses = load("the houses", HOUSES_BELIEVED_MS, listSiteHouses);
  const work = load("the state of the workers", WORK_BELIEVED_MS, readWork);
  const polls = load("the results of polls", POLLS_BELIEVED_MS, listPollSuccess);
  const notices = load("the notices", WORK_BELIEVED_MS, (tx) => listSiteNotices(tx, NOTICES_SHOWN));
  const publicLog = load("the public log", LOG_BELIEVED_MS, readShownLog);
  const records = timedCache<MeasuredRecord>({ forMs: RECORD_BELIEVED_MS, most: 1 });
  const accuracy = accuracyPages({ memory, sql, log });
  const helplines = readHelplines(settings.HELPLINES_FILE);
  const { OPERATOR_NAME: operator, PAYLOAD_RETENTION_HOURS: payloadHours } = settings;
  const incidents = load("the incidents", HISTORY_BELIEVED_MS, (tx) => listIncidents(tx, { limit: INCIDENTS_SHOWN }));
  const each = <Value>(what: string, believedMs: number, read: (tx: Transaction, of: string) => Promise<Value>) =>
    loaders(what, (of: string) => readBriefly(sql, (tx) => read(tx, of)), { believedMs, log });
  const uptime = each("the history of availability", HISTORY_BELIEVED_MS, (tx, of) =>
    listUptime(tx, of.split(" "), UPTIME_DAYS),
  );
  const ownIncidents = each("the incidents", HISTORY_BELIEVED_MS, (tx, of) =>
    listIncidents(tx, {
      limit: INCIDENTS_OF_ONE,
      ...(of.startsWith("#") ? { tableId: Number(of.slice(1)) } : { house: of }),
    }),
  );
  const facts = each("the facts of a table", FACTS_BELIEVED_MS, (tx, id) =>
    readTableFacts(tx, Number(id), { rounds: ROUNDS_COUNTED, thresholds: THRESHOLDS }),
  );
  const past = each("a past forecast", PAST_BELIEVED_MS, (tx, id) =>
    readPastForecast(tx, Number(id), { rounds: ROUNDS_WITHHELD, seconds: SECONDS_WITHHELD }),
  );
  const readingOf = delayReadings();
  const draw = drawing(log);
  const drawOne = async (name: string, plot: ToDraw | null) =>
    (await draw(name, () => Promise.resolve({ all: plot === null ? [] : [plot], missing: "" }))).figures;
  let docs: ReturnType<typeof docsPage> | undefined;

  const pages: Record<string, (params: URLSearchParams) => SitePage | Promise<SitePage>> = {
    async "/"() {
      const [loadedHouses, loadedPlans] = await Promise.all([houses(), plans()]);
      const record = records.find("") ?? records.keep("", recordOf(memory));
      const table = featuredOf(memory);
      const shown = table && measureTable(table, { feature: "next_color", period: "30d" });
      const [figures, shownPast] = await Promise.all([
        drawOne("home", shown && reliabilityOf(shown)),
        table && past(String(table.id)),
      ]);
      const featured = table && { table, past: shownPast, reading: readingOf(table, memory.clock().nowMs) };
      return homePage({ memory, record, site: site(), houses: loadedHouses, plans: loadedPlans, featured, figures });
    },
    "/houses": async () => housesPage(await houses(), { memory }),
    "/accuracy": accuracy,
    "/method": async () => methodPage(await publicLog()),
    "/plans": async () => plansPage(await plans()),
    async "/status"() {
      const ids = memory.tables.byHouse.keys().take(HOUSES_WITH_HISTORY);
      const components = ["polling", ...ids.map((id) => `house:${id}`)].join(" ");
      const loaded = await Promise.all([houses(), polls(), work(), notices(), uptime(components), incidents()]);
      const [ageSeconds, { liveWindowMs }] = [memory.ageSeconds(), memory.clock()];
      const [shownHouses, shownPolls, shownWork, shownNotices, shownUptime, shownIncidents] = loaded;
      return statusPage({
        version,
        ageSeconds,
        liveWindowMs,
        houses: shownHouses,
        polls: shownPolls,
        work: shownWork,
        notices: shownNotices,
        uptime: shownUptime,
        incidents: shownIncidents,
      });
    },
    "/terms": () => termsPage(operator),
    "/privacy": () => privacyPage({ operator, payloadHours }),
    "/responsible-gambling": () => gamblingPage(helplines),
    async "/docs"() {
      docs ??= docsPage({ site: site() });
      return docs(await plans());
    },
    "/docs/errors": () => errorsPage(),
    "/docs/changes": () => changesPage(),
  };
  const limitFirstPage: CallHandler = async (request, response, next) => {
    const { isGranted, waitMs } = await buckets.draw(`first-page:${networkOf(request.ip ?? "")}`, firstPage);
    if (isGranted) return next();
    const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
    response.setHeader("Retry-After", seconds);
    sendPage(response, busyPage(seconds), { url: request.originalUrl, site: site() });
  };
  for (const path of Object.keys(guidePages(""))) {
    pages[path] = () => guidePages(site())[path] ?? notFoundPage("");
  }
  for (const [path, page] of Object.entries(pages)) {
    resource(app, path, ...(path === "/" ? [limitFirstPage] : []), async (request, response) => {
      sendPage(response, await page(urlOf(request).query), { url: request.originalUrl, site: site() });
    });
  }

  /** The page of a house or table; null if there is none. */
  async function pageOf({ house: id = "", game, market }: Record<string, string>): Promise<SitePage | null> {
    const own = memory.tables.byHouse.get(id) ?? [];
    if (game === undefined) {
      const house = (await houses())?.houses.find((one) => one.id === id);
      if (house === undefined) return null;
      const [history, notes] = await Promise.all([uptime(`house:${id}`), ownIncidents(id)]);
      return housePage({ memory, house, uptime: history, incidents: notes });
    }
    const table = own.find((one) => one.game === game && one.market === market);
    if (table === undefined) return null;
    const key = String(table.id);
    const loaded = await Promise.all([facts(key), past(key), ownIncidents(`#${key}`)]);
    const figures = await drawOne(`table ${key}`, loaded[0] && distributionOf(loaded[0]));
    const reading = readingOf(table, memory.clock().nowMs);
    return tablePage({ memory, table, facts: loaded[0], past: loaded[1], reading, incidents: loaded[2], figures });
  }
  for (const path of ["/houses/:house", "/houses/:house/:game/:market"]) {
    resource(app, path, async (request, response, next) => {
      const page = await pageOf(request.params as Record<string, string>);
      if (page === null) return next("route");
      sendPage(response, page, { url: request.originalUrl, site: site() });
    });
  }

  resource(app, "/status.atom", async (_, response) => {
    sendText(response, "application/atom+xml", statusFeed(site(), (await incidents()) ?? []));
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
