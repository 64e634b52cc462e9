import { mkdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ConsoleWorld, openConsoleWorld } from "../console/world.ts";
import { publishLog } from "../../src/record/log/publish-log.ts";
import { PAUSE_MS } from "../forecasts/world.ts";
import { playTurns } from "../ops/data-world.ts";
import { accessibilityFaults, openBrowser, overflow } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { makeTable } from "../support/make.ts";

/** A folder for screenshots, to be looked at; none are made without it. */
const { SHOTS } = process.env;
const PAGES: Record<string, string> = {
  home: "/",
  accuracy: "/accuracy",
  "accuracy-house": "/accuracy?of=acme",
  method: "/method",
  plans: "/plans",
  status: "/status",
  terms: "/terms",
  privacy: "/privacy",
  gambling: "/responsible-gambling",
  docs: "/docs",
  houses: "/houses",
  house: "/houses/acme",
  table: "/houses/acme/crash/global",
  "quick-start": "/docs/quick-start",
  polling: "/docs/guides/polling",
  verify: "/docs/guides/verify",
  "accuracy-guide": "/docs/guides/accuracy",
  changes: "/docs/changes",
  errors: "/docs/errors",
  missing: "/nothing-here",
};

let world: ConsoleWorld;
let browser: Browser;

beforeAll(async () => {
  [world, browser] = await Promise.all([openConsoleWorld(), openBrowser()]);
  const { sql } = world;
  const house = { id: "acme", name: "Acme with a name that is rather long for a telephone" };
  const table = await makeTable(sql, { house_edge: 0.01, pause_ms: PAUSE_MS }, house);
  await playTurns(sql, table, [150, 320, 1200, 101, 250, 180, 420, 130]);
  await sql`
    insert into notices (table_id, kind, text)
    select id, 'conflict', 'round 1234567890123456789012345678901234567890 came twice'
    from tables`;
  await sql`
    update table_heads
    set version = version + 1, changed_at = clock_timestamp(), last_polled_round_at = now()`;
  const folder = await mkdtemp(join(tmpdir(), "log-"));
  await publishLog(sql, { folder, publicUrl: undefined, witnesses: [] }, new AbortController().signal);
  await rm(folder, { recursive: true });
  await sql`select pg_notify('roundhouse_published', '')`;
  await eventually(async () =>
    (await (await fetch(`${world.url}/accuracy?of=acme`)).text()).includes('<svg role="img"'),
  );
  if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
});
afterAll(async () => {
  await browser.close();
  await world.close();
});

it("has no fault for a screen reader in light or dark, nothing to scroll sideways at 320 px, and breaks no policy", async () => {
  const page = await browser.newPage();
  const said: string[] = [];
  page.on("console", (message) => message.type() === "error" && said.push(message.text()));
  for (const [name, path] of Object.entries(PAGES)) {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(world.url + path);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const faults = await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" });
      expect(faults, `${name}, ${colorScheme}`).toEqual([]);
      if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-${colorScheme}.png`, fullPage: true });
    }
    await page.setViewportSize({ width: 320, height: 800 });
    expect(await overflow(page), `${name} at 320 px`).toBe(0);
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-320.png`, fullPage: true });
  }
  // a page that is not there says so in the browser's own words
  expect(said.filter((text) => !text.includes("404"))).toEqual([]);
  await page.close();
});

it("shows figures and plots whole on a phone", async () => {
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  for (const path of ["/", "/accuracy", "/accuracy?of=acme", "/accuracy?of=acme/crash/global"]) {
    await page.goto(world.url + path);
    if (path !== "/") await page.locator(".plot > .wide > svg").first().waitFor();
    const hidden = await page
      .locator(".plot > .wide, [aria-label='measured accuracy'], [aria-label=models]")
      .evaluateAll((boxes) => boxes.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth));
    expect(
      hidden.filter((pixels) => pixels > 0),
      path,
    ).toEqual([]);
    if (SHOTS !== undefined) {
      await page.screenshot({ path: `${SHOTS}/phone${path.replaceAll(/\W+/g, "-")}.png`, fullPage: true });
    }
  }
  expect(await page.locator("td[data-name='First hour (UTC)']").first().isVisible()).toBe(true);
  await page.close();
});

it("can be read and used without JavaScript, and with the keys alone", async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(world.url);
  await page.keyboard.press("Tab");
  expect(await page.locator(":focus").textContent()).toBe("Skip to content");
  expect(await page.getByRole("link", { name: /^Acme/ }).isVisible()).toBe(true);
  expect(await page.getByRole("heading", { name: "Starter" }).isVisible()).toBe(true);
  await page.getByRole("banner").getByRole("link", { name: "Accuracy" }).click();
  await page.getByLabel("House or table").selectOption("acme (house)");
  await page.getByLabel("Period").selectOption("24h");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByRole("heading", { name: "Measured accuracy: acme" }).waitFor();
  await page.getByRole("columnheader", { name: "mean stated" }).first().waitFor();
  expect(new URL(page.url()).searchParams.get("period")).toBe("24h");
  await context.close();
});

it("has only links that work, including those to the console", async () => {
  const seen = new Set<string>();
  const waiting = ["/", "/robots.txt", "/sitemap.xml"];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const response = await fetch(world.url + path, { headers: { accept: "text/html" } });
    expect(response.status, path).toBe(200);
    const isOurs = response.headers.get("content-type")?.startsWith("text/html") === true;
    if (!isOurs || path.startsWith("/console")) continue;
    for (const [, link = ""] of (await response.text()).matchAll(/(?:href|src|action)="(\/[^"#]*)/g)) {
      waiting.push(link.replaceAll("&amp;", "&"));
    }
  }
  expect([...seen]).toEqual(
    expect.arrayContaining(["/console", "/console/sign-up", "/plans", "/log/checkpoint", "/terms.txt"]),
  );
});
