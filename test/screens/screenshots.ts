import { mkdir } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import postgres from "postgres";
import type { Browser, Page } from "playwright-core";
import { pages as consolePages } from "../../src/console/index.ts";
import { pages as opsPages } from "../../src/ops/index.ts";
import { openBrowser } from "../support/browser.ts";
import { createCamera } from "./camera.ts";
import { findPages } from "./found-pages.ts";
import { exhaust, signUp, useConsole } from "./holder.ts";
import { type Instance, startFaultyHouse, startInstance } from "./instance.ts";
import {
  CONSOLE_DOORS,
  CONSOLE_VIEWS,
  EMPTY_CONSOLE_PAGES,
  EXHAUSTED_CONSOLE_PAGES,
  FAULTY_SITE_PAGES,
  OPS_DOORS,
  OPS_VIEWS,
  SITE_PAGES,
} from "./pages.ts";
import {
  decideOnFaults,
  errorScenes,
  failRun,
  formScenes,
  FRESH_MS,
  signInStaff,
  stepUpScenes,
  tooManyScenes,
  workAtOps,
} from "./staff.ts";

const USAGE = `Usage: npm run screenshots -- --out DIR [--only TEXT] [--url URL --ops-url URL]

Photographs every page of site, console and ops in light and dark at 1280 and 375 px, dialogs and errors too.
Without --url it starts an instance of its own with two more houses, a faulty one and one that never responds, works in it
as a holder and as staff would, and stops it at the end. With --url it only looks at what is there.

Options:
  --out DIR      where the PNG files go; it is created
  --only TEXT    only pages whose name contains this, or one of several, separated by commas
  --warm SECONDS how long the instance plays before the first photo (default 90)
  --url URL      an instance that runs already
  --ops-url URL  the link that signs its operator in
  --help         show this`;

const { values } = parseArgs({
  options: {
    out: { type: "string" },
    only: { type: "string", default: "" },
    warm: { type: "string", default: "90" },
    url: { type: "string" },
    "ops-url": { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (values.help || values.out === undefined) {
  console.log(USAGE);
  process.exit(values.help ? 0 : 2);
}
await mkdir(values.out, { recursive: true });
const faulty = await startFaultyHouse();
const own = values.url === undefined ? await startInstance() : null;
const url = values.url ?? own?.url ?? "";
const opsUrl = values["ops-url"] ?? own?.opsUrl;
const camera = createCamera({ url, out: values.out, only: values.only.split(",") });
const missing: string[] = [];
const browser = await openBrowser();
try {
  if (own !== null) await photographOwn(browser, own);
  else await photographGiven(browser);
} finally {
  await browser.close();
  await own?.stop();
  await faulty.close().catch(() => undefined); // it was closed to open its circuit
}
console.log(`${camera.photos()} screenshots in ${values.out}`);
for (const [title, lines] of [
  ["faults", camera.faults()],
  ["pages without a link, or that require a query", missing],
] as const) {
  if (lines.length > 0) console.log(`${title}:\n${lines.join("\n")}`);
}
if (camera.photos() === 0) process.exitCode = 1;

async function photographGiven(from: Browser): Promise<void> {
  const page = await openPage(from);
  await camera.shoot(page, { ...SITE_PAGES, ...CONSOLE_DOORS, ...OPS_DOORS });
  if (opsUrl === undefined) return;
  await page.goto(opsUrl);
  await shootAll(page, "/ops", opsPages);
}

async function photographOwn(from: Browser, instance: Instance): Promise<void> {
  const [visitor, holder, machine, admin, viewer] = (await Promise.all(
    Array.from({ length: 5 }, () => openPage(from)),
  )) as [Page, Page, Page, Page, Page];
  const warm = delay(Number(values.warm) * 1_000);
  await machine.goto(instance.opsUrl);
  await signInStaff(admin, viewer, instance);
  const signedInAt = Date.now();
  await signUp(holder, instance);
  await camera.shoot(holder, EMPTY_CONSOLE_PAGES);
  const { key, reference } = await useConsole(holder, instance);
  await instance.addHouses(faulty);
  await decideOnFaults(instance);
  await faulty.close(); // its circuit opens within seconds
  await workAtOps(admin, instance);
  await failRun(instance);
  await warm;

  await camera.shoot(visitor, { ...SITE_PAGES, ...FAULTY_SITE_PAGES, ...CONSOLE_DOORS, ...OPS_DOORS });
  await shootAll(admin, "/ops", opsPages, Object.values(OPS_VIEWS));
  await camera.shoot(admin, { ...OPS_VIEWS, ...formScenes(url, reference) });
  await shootAll(holder, "/console", consolePages);
  await camera.shoot(holder, CONSOLE_VIEWS);
  await exhaust(holder, instance, key);
  await camera.shoot(holder, EXHAUSTED_CONSOLE_PAGES);
  await camera.shoot(viewer, errorScenes(url));
  await camera.shoot(visitor, tooManyScenes(url));
  const stepUp = stepUpScenes(url);
  await camera.shoot(machine, stepUp.fresh);
  if (camera.wants(...Object.keys(stepUp.stale))) {
    await delay(Math.max(0, signedInAt + FRESH_MS + 1_000 - Date.now()));
    await camera.shoot(admin, stepUp.stale);
  }
  await photographFailures(visitor, admin, instance);
}

/** Every page of a list, with the objects to which links lead. */
async function shootAll(
  page: Page,
  base: string,
  list: readonly { path: string }[],
  from: readonly string[] = [],
): Promise<void> {
  if (!camera.wants(base.slice(1)) && values.only.split(",").every((part) => !part.startsWith(base.slice(1)))) return;
  const found = await findPages(page, { url, base, paths: list.map(({ path }) => path), from });
  missing.push(...found.missing.map((path) => base + path));
  await camera.shoot(page, found.scenes);
}

/** What is shown after an error that nobody expected, here a table that was lost, and while PostgreSQL refuses connections. */
async function photographFailures(visitor: Page, admin: Page, instance: Instance): Promise<void> {
  if (!camera.wants("site-failed", "ops-failed", "ops-unavailable")) return;
  const { database_url: databaseUrl } = await instance.servers();
  const sql = postgres(databaseUrl, { max: 1 });
  await sql`alter table notices rename to notices_lost`;
  await camera.shoot(visitor, { "site-failed": "/status" });
  await camera.shoot(admin, { "ops-failed": "/ops/notices" });
  await sql.end();
  const name = new URL(databaseUrl).pathname.slice(1);
  const other = postgres(new URL("/postgres", databaseUrl).href, { max: 1 });
  await other`alter database ${other(name)} with allow_connections false`;
  await other`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
  await camera.shoot(admin, { "ops-unavailable": "/ops" });
  await other.end();
}

/** A page whose browser has the fonts already: the first page of a visit is drawn without those that are late. */
async function openPage(from: Browser): Promise<Page> {
  const page = await (await from.newContext()).newPage();
  await page.goto(`${url}/docs`);
  return page;
}
