import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { openBrowser, overflow } from "../support/browser.ts";
import { CONSOLE_DOORS, OPS_DOORS, SITE_PAGES } from "./pages.ts";
import { startInstance } from "./instance.ts";

const USAGE = `Usage: npm run screenshots -- --out DIR [--only TEXT] [--url URL --ops-url URL]

Photographs every page of site, console and ops in light and dark at 1280 and 375 px.
Without --url it starts an instance of its own and stops it at the end.

Options:
  --out DIR      where the PNG files go; it is created
  --only TEXT    only pages whose name contains this, or one of several, separated by commas
  --warm SECONDS how long the instance plays before the first photo (default 90)
  --url URL      an instance that runs already
  --ops-url URL  the link that signs its operator in
  --help         show this`;

const WIDTHS = [1280, 375] as const;
const SCHEMES = ["light", "dark"] as const;
/** A page that is longer than this is cut: what is below looks the same. */
const MOST_HEIGHT = 6_000;
const HOLDER = { email: "ann@example.org", password: "a rather long passphrase of ann" };

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
const { out, only } = values;
let photos = 0;
const wide: string[] = [];

await mkdir(out, { recursive: true });
const own = values.url === undefined ? await startInstance() : null;
const url = values.url ?? own?.url ?? "";
const opsUrl = values["ops-url"] ?? own?.opsUrl ?? "";
const browser = await openBrowser();
try {
  if (own !== null) await delay(Number(values.warm) * 1_000);
  await photographAll(browser);
} finally {
  await browser.close();
  await own?.stop();
}
console.log(`${photos} screenshots in ${out}`);
if (wide.length > 0) console.log(`wider than the window:\n${wide.join("\n")}`);
if (photos === 0) process.exitCode = 1;

async function photographAll(from: Browser): Promise<void> {
  const visitor = await from.newContext();
  await photograph(visitor, { ...SITE_PAGES, ...CONSOLE_DOORS, ...OPS_DOORS });
  await visitor.close();
  const ops = await from.newContext();
  const page = await ops.newPage();
  await page.goto(opsUrl);
  await page
    .getByRole("button")
    .last()
    .click()
    .catch(() => undefined);
  await page.goto(`${url}/ops`);
  await photograph(ops, await linksBelow(page, "/ops", "ops"));
  await ops.close();
  const holder = await from.newContext();
  const signedIn = await signUp(holder);
  if (signedIn !== null) await photograph(holder, await linksBelow(signedIn, "/console", "console"));
  await holder.close();
}

/** Pages that are linked from the start page of a surface, and from those, by a name made of their path; one of each kind. */
async function linksBelow(page: Page, base: string, name: string): Promise<Record<string, string>> {
  const found = new Map<string, string>([[name, base]]);
  for (const path of [base, ...(await linksOf(page, base))]) {
    if (path !== base) add(path);
    await page.goto(url + path);
    for (const link of await linksOf(page, base)) add(link);
  }
  return Object.fromEntries(found);

  /** Of pages about one thing each, the first is enough. */
  function add(path: string): void {
    const [plain = ""] = path.split(/[?#]/);
    const parts = plain.slice(base.length + 1).split("/");
    const kind =
      parts.length < 2
        ? parts.join("-")
        : `${parts[0]}-${
            parts.length > 2
              ? `one-${parts
                  .at(-1)
                  ?.replaceAll(/[^a-z]/g, "")
                  .slice(0, 12)}`
              : "one"
          }`;
    const key = `${name}-${kind}`;
    if (kind !== "" && !/sign-out|\.(?:csv|json)|download|bull/.test(path) && !found.has(key) && found.size < 60)
      found.set(key, path);
  }
}

/** Links of the page that is open, below a path. */
async function linksOf(page: Page, base: string): Promise<string[]> {
  const links: unknown = await page.evaluate(
    `[...document.querySelectorAll('a[href^="${base}/"]')].map((link) => link.getAttribute("href"))`,
  );
  return [...new Set((links as string[]).map((link) => link.split("#")[0] ?? ""))];
}

/** Signs a holder up by the link that is printed where no mail is sent; null for an instance that is not ours. */
async function signUp(context: BrowserContext): Promise<Page | null> {
  if (own === null) return null;
  const page = await context.newPage();
  await page.goto(`${url}/console/sign-up`);
  await page.getByLabel("E-mail").fill(HOLDER.email);
  const passwords = page.locator('input[type="password"]');
  for (const password of await passwords.all()) await password.fill(HOLDER.password);
  for (const box of await page.getByRole("checkbox").all()) await box.check();
  await page.getByRole("main").getByRole("button").last().click();
  await page.goto(await own.printedLink("/console/confirm"));
  for (const password of await passwords.all()) await password.fill(HOLDER.password);
  await page.getByRole("main").getByRole("button").last().click();
  await useConsole(page);
  await page.goto(`${url}/console`);
  return page;
}

/** Takes the way of a newcomer, so that the pages show a bought plan, a key with a call, a receipt and a pending transfer. */
async function useConsole(page: Page): Promise<void> {
  const main = page.getByRole("main");
  await page.goto(`${url}/console/top-up`);
  await main.getByRole("button", { name: "Add demo money" }).click();
  await main.getByRole("link", { name: "Buy Starter" }).click();
  for (const box of await main.getByRole("checkbox").all()) await box.check();
  await main.getByRole("button", { name: /^Pay / }).click();
  await main.getByRole("button", { name: "Create key" }).click();
  await main.getByRole("button", { name: "Make a call with this key" }).click();
  await main.getByText("This call was counted.").waitFor();
  await page.goto(`${url}/console/top-up/bank`);
  await main.getByLabel(/^Amount/).fill("250.00");
  await main.getByRole("button").last().click();
  await main.getByText("Write the reference into the transfer exactly.").waitFor();
}

async function photograph(context: BrowserContext, pages: Readonly<Record<string, string>>): Promise<void> {
  const page = await context.newPage();
  for (const [name, path] of Object.entries(pages)) {
    if (!only.split(",").some((part) => name.includes(part))) continue;
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(url + path);
        if ((await overflow(page)) > 0) wide.push(`${path} at ${width} px`);
        const height = Number(await page.evaluate("document.documentElement.scrollHeight"));
        await page.setViewportSize({ width, height: Math.min(MOST_HEIGHT, Math.max(900, height)) });
        await page.screenshot({ path: join(out ?? "", `${name}-${colorScheme}-${width}.png`) });
        photos += 1;
      }
    }
  }
  await page.close();
}
